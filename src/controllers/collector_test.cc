// Goal: what names an owner of a kind or version that the server doesn't serve is left alone, as
// upstream's garbage collector leaves it, and all else goes with its owner. Method: the actor
// against a small API server (sets_fixture.h); the plans alone are in plans_test.cc.
#include "controllers/sets_fixture.h"

namespace berth::controllers {
namespace {

const std::string kMaps = "/api/v1/namespaces/d/configmaps";
const std::string kSecrets = "/api/v1/namespaces/d/secrets";

class CollectorTest : public Sets {
 protected:
  void MakeOwned(const std::string& name, const std::string& api_version, const std::string& kind,
                 const std::string& owner, const std::string& uid) {
    Make(kMaps, fmt::format(R"({{"metadata":{{"name":"{}","ownerReferences":[{{"apiVersion":"{}",)"
                            R"("kind":"{}","name":"{}","uid":"{}"}}]}}}})",
                            name, api_version, kind, owner, uid));
  }
  bool IsThere(const std::string& name) { return api_.Find(kMaps + "/" + name) != nullptr; }
};

TEST_F(CollectorTest, AVersionThatIsNotServedIsNotThatOfTheOwnerThatIsGone) {
  Make(kSecrets, R"({"metadata":{"name":"s"}})");
  const std::string uid = Text(kSecrets + "/s", "/metadata/uid");
  MakeOwned("right", "v1", "Secret", "s", uid);
  MakeOwned("version", "v7", "Secret", "s", uid);
  MakeOwned("kind", "v1", "Nothing", "s", uid);
  MakeOwned("question", "authentication.k8s.io/v1", "TokenReview", "s", uid);
  Pass(2);
  Delete(kSecrets + "/s");
  Pass(5);
  EXPECT_FALSE(IsThere("right"));
  EXPECT_TRUE(IsThere("version"));
  EXPECT_TRUE(IsThere("kind"));
  EXPECT_TRUE(IsThere("question"));
  ExpectAtRest();
}

// A 404 of a path that isn't served says nothing of the object.
TEST_F(CollectorTest, AKindThatTheServerLacksThoughBerthKnowsItSaysNothingOfItsObjects) {
  MakeOwned("there", "kueue.x-k8s.io/v1beta2", "Workload", "w", "u");
  api_.absent = {"/apis/kueue.x-k8s.io"};
  Pass(30);
  EXPECT_TRUE(IsThere("there"));
  api_.absent = {};
  Pass(60);
  EXPECT_FALSE(IsThere("there"));
}

}  // namespace
}  // namespace berth::controllers
