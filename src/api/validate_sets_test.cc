// Goal: what upstream refuses of StatefulSets and the like is refused in its words. Method: rows
// that break one thing each, with the genuine server's messages.

#include "api/validate_fixture.h"

namespace berth::api {
namespace {

TEST(ValidateSetsTest, ReplicationControllers) {
  ExpectRows(KindId::kReplicationController,
             R"({"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"x","na)"
             R"(mespace":"n"},"spec":{"replicas":1,"selector":{"a":"b"},"template":{"metadat)"
             R"(a":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})",
             {
                 {R"({"spec":{"replicas":-1}})",
                  "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
                 {R"({"spec":{"minReadySeconds":-1}})",
                  "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
                 {R"({"spec":{"template":null}})", "spec.template: Required value"},
                 {R"({"spec":{"selector":{"a":"x"}}})",
                  "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does n"
                  "ot match template `labels`"},
                 {R"({"spec":{"selector":null,"template":{"metadata":{"labels":null}}}})",
                  "spec.selector: Required value"},
                 {R"({"spec":{"template":{"spec":{"restartPolicy":"Never"}}}})",
                  "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported valu"
                  "es: \"Always\""},
                 {R"({"spec":{"template":{"spec":{"activeDeadlineSeconds":5}}}})",
                  "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in "
                  "ReplicationController is not Supported"},
                 {R"({"metadata":{"name":"X_"}})",
                  "metadata.name: Invalid value: \"X_\": a lowercase RFC 1123 subdomain must cons"
                  "ist of lower case alphanumeric characters, '-' or '.', and must start and end "
                  "with an alphanumeric character (e.g. 'example.com', regex used for validation "
                  "is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"},
             });
}

}  // namespace
}  // namespace berth::api
