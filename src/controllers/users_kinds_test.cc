// Goal: objects of kinds that users defined are told of and asked for as others are, also while their
// definition goes. Method: the actor against a small API server (sets_fixture.h).
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

using UsersKinds = Sets;

TEST_F(UsersKinds, AnOwnerOfAnotherNamespaceIsToldOf) {
  MakeDefinition("");
  Make("/api/v1/namespaces/e/secrets", R"({"metadata":{"name":"o"}})");
  const std::string uid = Text("/api/v1/namespaces/e/secrets/o", "/metadata/uid");
  Make(kFoos, fmt::format(R"({{"metadata":{{"name":"f","ownerReferences":[{{"apiVersion":"v1",)"
                          R"("kind":"Secret","name":"o","uid":"{}"}}]}}}})",
                          uid));
  Pass(5);
  ASSERT_EQ(Told("f").size(), 1u);
  EXPECT_TRUE(Told("f").front().starts_with("Warning OwnerRefInvalidNamespace ownerRef "));
  const std::string event = api_.Paths("/namespaces/d/events/f.").front();
  EXPECT_EQ(Text(event, "/involvedObject/apiVersion"), "x.io/v1");
  EXPECT_EQ(Text(event, "/involvedObject/kind"), "Foo");
}

// Whether a namespace is empty is asked of each kind; one of them may be served no more by then.
TEST_F(UsersKinds, ANamespaceEndsWhileADefinitionGoes) {
  const std::string space = "/api/v1/namespaces/d";
  const auto finalized = [&] {
    return std::ranges::count_if(api_.log, [&](const std::string& line) {
      return line.find(space + "/finalize") != std::string::npos;
    });
  };
  MakeDefinition("");
  Patch(space, R"({"metadata":{"finalizers":["test/hold"]}})");
  Pass(5);
  api_.absent = {kFoos};
  Delete(space);
  Pass(5);
  EXPECT_EQ(finalized(), 0);
  Delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/foos.x.io");
  Pass(60);
  EXPECT_GE(finalized(), 1);
}

}  // namespace
}  // namespace berth::controllers
