// Goal: what upstream refuses of StatefulSets and the like is refused in its words. Method: rows
// that break one thing each, with the genuine server's messages.

#include "api/validate_fixture.h"

namespace berth::api {
namespace {

TEST(ValidateSetsTest, ReplicationControllers) {
  const std::string long_prefix =
      R"({"metadata":{"generateName":")" + std::string(300, 'x') + R"("}})";
  ExpectRows(KindId::kReplicationController,
             R"({"apiVersion":"v1","kind":"ReplicationController","metadata":{"name":"x","na)"
             R"(mespace":"n"},"spec":{"replicas":1,"selector":{"a":"b"},"template":{"metadat)"
             R"(a":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})",
             {
                 {long_prefix, ""},
                 {R"({"spec":{"replicas":-1}})",
                  "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
                 {R"({"spec":{"minReadySeconds":-1}})",
                  "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
                 {R"({"spec":{"template":null}})", "spec.template: Required value"},
                 // Of other kinds it is characters.
                 {R"({"metadata":{"name":")" + std::string(254, 'x') + R"("}})",
                  "metadata.name: Invalid value: \"" + std::string(254, 'x') +
                      "\": must be no more than 253 bytes"},
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

TEST(ValidateSetsTest, StatefulSets) {
  ExpectRows(
      KindId::kStatefulSet,
      R"({"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"x","namespa)"
      R"(ce":"n"},"spec":{"serviceName":"s","selector":{"matchLabels":{"a":"b"}},"tem)"
      R"(plate":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","i)"
      R"(mage":"i"}]}}}})",
      {
          {R"({"spec":{"replicas":-1}})",
           "spec.replicas: Invalid value: -1: must be greater than or equal to 0"},
          {R"({"spec":{"minReadySeconds":-2}})",
           "spec.minReadySeconds: Invalid value: -2: must be greater than or equal to 0"},
          {R"({"metadata":{"name":"x.y"}})",
           "metadata.name: Invalid value: \"x.y\": must not contain dots"},
          {R"({"spec":{"podManagementPolicy":"Maybe"}})",
           "spec.podManagementPolicy: Invalid value: \"Maybe\": must be 'OrderedReady' or "
           "'Parallel'"},
          {R"({"spec":{"updateStrategy":{"type":"Maybe"}}})",
           "spec.updateStrategy: Invalid value: {\"Type\":\"Maybe\",\"RollingUpdate\":null"
           "}: must be 'RollingUpdate' or 'OnDelete'"},
          {R"({"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":{"partition":1})"
           R"(}}})",
           "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavai"
           "lable\":null}: only allowed for updateStrategy 'RollingUpdate'"},
          {R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partitio)"
           R"(n":-1}}}})",
           "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greate"
           "r than or equal to 0"},
          {R"({"spec":{"volumeClaimTemplates":[{"metadata":{"name":"v"}}],"replicas":-1}})",
           "spec.volumeClaimTemplates[0].spec.accessModes: Required value: at least 1 access "
           "mode is required\nspec.volumeClaimTemplates[0].spec.resources[storage]: Required "
           "value\nspec.replicas: Invalid value: -1: must be greater than or equal to 0"},
          {R"({"spec":{"serviceName":"S_"}})",
           "spec.serviceName: Invalid value: \"S_\": a lowercase RFC 1123 label must consi"
           "st of lower case alphanumeric characters or '-', and must start and end with a"
           "n alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for valida"
           "tion is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"},
          {R"({"spec":{"selector":null}})",
           "spec.selector: Required value\nspec.template.metadata.labels: Invalid value: {"
           "\"a\":\"b\"}: `selector` does not match template `labels`"},
          {R"({"spec":{"selector":{"matchLabels":{"a":null}}}})",
           "spec.selector: Invalid value: {}: empty selector is invalid for statefulset"},
          {R"({"spec":{"selector":{"matchLabels":{"a":"x"}}}})",
           "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does n"
           "ot match template `labels`"},
          {R"({"spec":{"ordinals":{"start":-1}}})",
           "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0"},
          {R"({"spec":{"template":{"spec":{"restartPolicy":"Never","activeDeadlineSeconds")"
           R"(:5}}}})",
           "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported valu"
           "es: \"Always\"\nspec.template.spec.activeDeadlineSeconds: Forbidden: activeDea"
           "dlineSeconds in StatefulSet is not Supported"},
          {R"({"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Maybe"}}})",
           "spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: \"Ma"
           "ybe\": supported values: \"Retain\", \"Delete\""},
          {R"({"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i","volumeMo)"
           R"(unts":[{"name":"d","mountPath":"/d"}]}]}}}})",
           "spec.template.spec.containers[0].volumeMounts[0].name: Not found: \"d\""},
      });
}

TEST(ValidateSetsTest, DaemonSets) {
  ExpectRows(KindId::kDaemonSet,
             R"({"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"x","namespace)"
             R"(":"n"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{)"
             R"("labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}})",
             {
                 {R"({"spec":{"minReadySeconds":-1}})",
                  "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0"},
                 {R"({"spec":{"revisionHistoryLimit":-1}})",
                  "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to"
                  " 0"},
                 {R"({"spec":{"selector":null}})",
                  "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does n"
                  "ot match template `labels`"},
                 {R"({"spec":{"selector":{"matchLabels":{"a":null}}}})",
                  "spec.selector: Invalid value: {}: empty selector is invalid for daemonset"},
                 {R"({"spec":{"selector":{"matchLabels":{"a":"x"}}}})",
                  "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does n"
                  "ot match template `labels`"},
                 {R"({"spec":{"updateStrategy":{"type":"Maybe"}}})",
                  "spec.updateStrategy: Unsupported value: {\"Type\":\"Maybe\",\"RollingUpdate\":"
                  "null}: supported values: \"RollingUpdate\", \"OnDelete\""},
                 {R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge)"
                  R"(":1,"maxUnavailable":1}}}})",
                  "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set w"
                  "hen maxUnavailable is non-zero"},
                 {R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge)"
                  R"(":0,"maxUnavailable":0}}}})",
                  "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 "
                  "when maxSurge is 0"},
                 {R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnava)"
                  R"(ilable":"101%"}}}})",
                  "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": mus"
                  "t not be greater than 100%"},
                 {R"({"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnava)"
                  R"(ilable":"x"}}}})",
                  "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: \"x\": a vali"
                  "d percent string must be a numeric string followed by an ending '%' (e.g. '1%'"
                  ",  or '93%', regex used for validation is '[0-9]+%')\nspec.updateStrategy.roll"
                  "ingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"},
                 {R"({"spec":{"template":{"spec":{"restartPolicy":"OnFailure","activeDeadlineSeco)"
                  R"(nds":5}}}})",
                  "spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\": supported "
                  "values: \"Always\"\nspec.template.spec.activeDeadlineSeconds: Forbidden: activ"
                  "eDeadlineSeconds in DaemonSet is not Supported"},
             });
}

TEST(ValidateSetsTest, ControllerRevisions) {
  ExpectRows(
      KindId::kControllerRevision,
      R"({"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"name":"x",")"
      R"(namespace":"n"},"revision":1,"data":{"a":1}})",
      {
          {R"({"revision":-1})", "revision: Invalid value: -1: must be greater than or equal to 0"},
          {R"({"data":null})", "data: Required value: data is mandatory"},
          {R"({"data":5})", "data: Required value: data must be a valid JSON object"},
          {R"({"data":[1]})", "data: Required value: data must be a valid JSON object"},
      });
}

TEST(ValidateSetsTest, CronJobs) {
  ExpectRows(KindId::kCronJob,
             R"({"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"x","namespace")"
             R"(:"n"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"met)"
             R"(adata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{")"
             R"(name":"c","image":"i"}]}}}}}})",
             {
                 {R"({"spec":{"schedule":null}})", "spec.schedule: Required value"},
                 {R"({"spec":{"schedule":"error"}})",
                  "spec.schedule: Invalid value: \"error\": expected exactly 5 fields, found 1: ["
                  "error]"},
                 {R"({"spec":{"schedule":"61 * * * *"}})",
                  "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum "
                  "(59): 61"},
                 {R"({"spec":{"schedule":"TZ=UTC * * * * *"}})",
                  "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ i"
                  "n schedule, use timeZone field instead"},
                 {R"({"spec":{"schedule":"@often"}})",
                  "spec.schedule: Invalid value: \"@often\": unrecognized descriptor: @often"},
                 {R"({"spec":{"schedule":"@every x"}})",
                  "spec.schedule: Invalid value: \"@every x\": failed to parse duration @every x:"
                  " time: invalid duration \"x\""},
                 {R"({"spec":{"schedule":"*/0 * * * *"}})",
                  "spec.schedule: Invalid value: \"*/0 * * * *\": step of range should be a posit"
                  "ive number: */0"},
                 {R"({"spec":{"schedule":"x * * * *"}})",
                  "spec.schedule: Invalid value: \"x * * * *\": failed to parse int from x: strco"
                  "nv.Atoi: parsing \"x\": invalid syntax"},
                 {R"({"spec":{"schedule":"1-2-3 * * * *"}})",
                  "spec.schedule: Invalid value: \"1-2-3 * * * *\": too many hyphens: 1-2-3"},
                 {R"({"spec":{"schedule":"1/2/3 * * * *"}})",
                  "spec.schedule: Invalid value: \"1/2/3 * * * *\": too many slashes: 1/2/3"},
                 {R"({"spec":{"schedule":"* * * * 7"}})",
                  "spec.schedule: Invalid value: \"* * * * 7\": end of range (7) above maximum (6"
                  "): 7"},
                 {R"({"spec":{"schedule":"* * 0 * *"}})",
                  "spec.schedule: Invalid value: \"* * 0 * *\": beginning of range (0) below mini"
                  "mum (1): 0"},
                 {R"({"spec":{"schedule":"* 5-3 * * *"}})",
                  "spec.schedule: Invalid value: \"* 5-3 * * *\": beginning of range (5) beyond e"
                  "nd of range (3): 5-3"},
                 {R"({"spec":{"schedule":"* * * *"}})",
                  "spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found 4:"
                  " [* * * *]"},
                 {R"({"spec":{"schedule":"-1 * * * *"}})",
                  "spec.schedule: Invalid value: \"-1 * * * *\": failed to parse int from : strco"
                  "nv.Atoi: parsing \"\": invalid syntax"},
                 {R"({"spec":{"schedule":"1- * * * *"}})",
                  "spec.schedule: Invalid value: \"1- * * * *\": failed to parse int from : strco"
                  "nv.Atoi: parsing \"\": invalid syntax"},
                 {R"({"spec":{"timeZone":""}})",
                  "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"},
                 {R"({"spec":{"timeZone":"../x"}})",
                  "spec.timeZone: Invalid value: \"../x\": unknown time zone ../x"},
                 {R"({"spec":{"timeZone":"local"}})",
                  "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zon"
                  "e as defined in https://www.iana.org/time-zones\nspec.timeZone: Invalid value:"
                  " \"local\": unknown time zone local"},
                 {R"({"spec":{"concurrencyPolicy":"Maybe"}})",
                  "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \"Allo"
                  "w\", \"Forbid\", \"Replace\""},
                 {R"({"spec":{"startingDeadlineSeconds":-1}})",
                  "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal"
                  " to 0"},
                 {R"({"spec":{"successfulJobsHistoryLimit":-1}})",
                  "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or eq"
                  "ual to 0"},
                 {R"({"spec":{"failedJobsHistoryLimit":-1}})",
                  "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal "
                  "to 0"},
                 {R"({"metadata":{"name":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"})"
                  R"(})",
                  "metadata.name: Invalid value: \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                  "xxxxxxx\": must be no more than 52 characters"},
                 {R"({"spec":{"jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":null}}}})"
                  R"(}})",
                  "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid value"
                  "s: \"OnFailure\", \"Never\""},
                 {R"({"spec":{"jobTemplate":{"spec":{"selector":{"matchLabels":{"a":"b"}}}}}})",
                  "spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}"
                  ": `selector` will be auto-generated"},
                 {R"({"spec":{"jobTemplate":{"spec":{"manualSelector":true}}}})",
                  "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported value"
                  "s: \"nil\", \"false\""},
                 {R"({"spec":{"jobTemplate":{"spec":{"parallelism":-1}}}})",
                  "spec.jobTemplate.spec.parallelism: Invalid value: -1: must be greater than or "
                  "equal to 0"},
             });
}

TEST(ValidateSetsTest, Jobs) {
  ExpectRows(KindId::kJob,
             R"({"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x","namespace":"n")"
             R"(},"spec":{"completionMode":"Indexed","completions":5,"parallelism":2,"templa)"
             R"(te":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","contai)"
             R"(ners":[{"name":"c","image":"i"}]}}}})",
             {
                 {R"({"spec":{"maxFailedIndexes":6,"backoffLimitPerIndex":1}})",
                  "spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to complet"
                  "ions"},
                 {R"({"spec":{"maxFailedIndexes":1}})",
                  "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified"},
                 {R"({"spec":{"completions":200000,"backoffLimitPerIndex":1}})",
                  "spec.maxFailedIndexes: Required value: must be specified when completions is a"
                  "bove 100000"},
                 {R"({"spec":{"completions":200000,"backoffLimitPerIndex":1,"parallelism":20000,")"
                  R"(maxFailedIndexes":20000}})",
                  "spec.parallelism: Invalid value: 20000: must be less than or equal to 10000 wh"
                  "en completions are above 100000 and used with backoff limit per index\nspec.ma"
                  "xFailedIndexes: Invalid value: 20000: must be less than or equal to 10000 when"
                  " completions are above 100000 and used with backoff limit per index"},
                 {R"({"spec":{"maxFailedIndexes":200000,"backoffLimitPerIndex":1}})",
                  "spec.maxFailedIndexes: Invalid value: 200000: must be less than or equal to co"
                  "mpletions\nspec.maxFailedIndexes: Invalid value: 200000: must be less than or "
                  "equal to 100000"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailIndex","onExitCodes":{")"
                  R"(operator":"In","values":[1]}}]}}})",
                  "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires "
                  "the backoffLimitPerIndex to be set"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Maybe","onExitCodes":{"oper)"
                  R"(ator":"Is","values":[]}}]}}})",
                  "spec.podFailurePolicy.rules[0].action: Unsupported value: \"Maybe\": supported"
                  " values: \"Count\", \"FailIndex\", \"FailJob\", \"Ignore\"\nspec.podFailurePol"
                  "icy.rules[0].onExitCodes.operator: Unsupported value: \"Is\": supported values"
                  ": \"In\", \"NotIn\"\nspec.podFailurePolicy.rules[0].onExitCodes.values: Invali"
                  "d value: []: at least one value is required"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"FailJob"}]}}})",
                  "spec.podFailurePolicy.rules[0]: Invalid value: specifying one of OnExitCodes a"
                  "nd OnPodConditions is required"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"","onExitCodes":{"operator")"
                  R"(:"","containerName":"z","values":[3,1,1,0]}}]}}})",
                  "spec.podFailurePolicy.rules[0].action: Required value: valid values: [\"Count"
                  "\" \"FailIndex\" \"FailJob\" \"Ignore\"]\nspec.podFailurePolicy.rules[0].onExi"
                  "tCodes.operator: Required value: valid values: [\"In\" \"NotIn\"]\nspec.podFai"
                  "lurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"z\": must be o"
                  "ne of the container or initContainer names in the pod template\nspec.podFailur"
                  "ePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 1\nspec.podFailurePol"
                  "icy.rules[0].onExitCodes.values: Invalid value: [3,1,1,0]: must be ordered"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Count","onExitCodes":{"oper)"
                  R"(ator":"In","containerName":"z","values":[0,3,1,1]},"onPodConditions":[{"type)"
                  R"(":"x y","status":"No"}]}]}}})",
                  "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"z\""
                  ": must be one of the container or initContainer names in the pod template\nspe"
                  "c.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not "
                  "be 0 for the In operator\nspec.podFailurePolicy.rules[0].onExitCodes.values[3]"
                  ": Duplicate value: 1\nspec.podFailurePolicy.rules[0].onExitCodes.values: Inval"
                  "id value: [0,3,1,1]: must be ordered\nspec.podFailurePolicy.rules[0].onPodCond"
                  "itions[0].type: Invalid value: \"x y\": name part must consist of alphanumeric"
                  " characters, '-', '_' or '.', and must start and end with an alphanumeric char"
                  "acter (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation "
                  "is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')\nspec.podFailurePolicy.rules[0]"
                  ".onPodConditions[0].status: Unsupported value: \"No\": supported values: \"Fal"
                  "se\", \"True\", \"Unknown\"\nspec.podFailurePolicy.rules[0]: Invalid value: sp"
                  "ecifying both OnExitCodes and OnPodConditions is not supported"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[)"
                  R"({"type":"DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":)"
                  R"("DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":"Disrupt)"
                  R"(ionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarge)"
                  R"(t"}]},{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]},{")"
                  R"(action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]},{"action":)"
                  R"("Ignore","onPodConditions":[{"type":"DisruptionTarget"}]},{"action":"Ignore")"
                  R"(,"onPodConditions":[{"type":"DisruptionTarget"}]},{"action":"Ignore","onPodC)"
                  R"(onditions":[{"type":"DisruptionTarget"}]},{"action":"Ignore","onPodCondition)"
                  R"(s":[{"type":"DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"ty)"
                  R"(pe":"DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":"Dis)"
                  R"(ruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":"DisruptionT)"
                  R"(arget"}]},{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}])"
                  R"(},{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]},{"acti)"
                  R"(on":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]},{"action":"Ign)"
                  R"(ore","onPodConditions":[{"type":"DisruptionTarget"}]},{"action":"Ignore","on)"
                  R"(PodConditions":[{"type":"DisruptionTarget"}]},{"action":"Ignore","onPodCondi)"
                  R"(tions":[{"type":"DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[)"
                  R"({"type":"DisruptionTarget"}]},{"action":"Ignore","onPodConditions":[{"type":)"
                  R"("DisruptionTarget"}]}]}}})",
                  "spec.podFailurePolicy.rules: Too many: 21: must have at most 20 items"},
                 {R"({"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[)"
                  R"({"type":"DisruptionTarget"}]}]},"podReplacementPolicy":"TerminatingOrFailed")"
                  R"(}})",
                  "spec.podReplacementPolicy: Unsupported value: \"TerminatingOrFailed\": support"
                  "ed values: \"Failed\""},
                 {R"({"spec":{"successPolicy":{"rules":[]}}})",
                  "spec.successPolicy.rules: Required value: at least one rules must be specified"
                  " when the successPolicy is specified"},
                 {R"({"spec":{"successPolicy":{"rules":[{}]}}})",
                  "spec.successPolicy.rules[0]: Required value: at least one of succeededCount or"
                  " succeededIndexes must be specified"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededCount":6}]}}})",
                  "spec.successPolicy.rules[0].succeededCount: Invalid value: 6: must be less tha"
                  "n or equal to 5 (the number of specified completions)"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededCount":-1}]}}})",
                  "spec.successPolicy.rules[0].succeededCount: Invalid value: -1: must be greater"
                  " than or equal to 0"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-1","succeededCount)"
                  R"(":3}]}}})",
                  "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less tha"
                  "n or equal to 2 (the number of indexes in the specified succeededIndexes field"
                  ")"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"0-9"}]}}})",
                  "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"0-9\": error pa"
                  "rsing succeededIndexes: too large index: \"9\""},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"x"}]}}})",
                  "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"x\": error pars"
                  "ing succeededIndexes: cannot convert string to integer for index: \"x\""},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"2,1"}]}}})",
                  "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"2,1\": error pa"
                  "rsing succeededIndexes: non-increasing order, previous: 2, current: 1"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"2-1"}]}}})",
                  "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"2-1\": error pa"
                  "rsing succeededIndexes: non-increasing order, previous: 2, current: 1"},
                 {R"({"spec":{"successPolicy":{"rules":[{"succeededIndexes":"1-2-3"}]}}})",
                  "spec.successPolicy.rules[0].succeededIndexes: Invalid value: \"1-2-3\": error "
                  "parsing succeededIndexes: the fragment \"1-2-3\" violates the requirement that"
                  " an index interval can have at most two parts separated by '-'"},
                 {R"({"spec":{"completionMode":"NonIndexed","successPolicy":{"rules":[{"succeeded)"
                  R"(Count":1}]},"backoffLimitPerIndex":1}})",
                  "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"
                  "\nspec.successPolicy: Invalid value: {\"Rules\":[{\"SucceededIndexes\":null,\""
                  "SucceededCount\":1}]}: requires indexed completion mode"},
             });
}

}  // namespace
}  // namespace berth::api
