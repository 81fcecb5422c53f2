"""What kubectl shows: tables, output formats, describe, discovery."""

import json
import re

import objects
from harness import RUN, case, words

AGE = r"\d+[smhd]\w*|<invalid>"


def header(text):
    return text.splitlines()[0].split()


def check_header(test, text, expected):
    # Column titles may hold blanks; widths do not matter.
    actual = [title for line in words(text)[:1] for title in line]
    test.equal(actual, expected, "columns")


def row(test, text, name):
    for line in words(text)[1:]:
        if line[0] == name:
            return line
    test.true(False, f"no row {name} in {text!r}")


def running_pod(test, name, **options):
    test.kubectl("create", "-f", "-", stdin=objects.pod(name, **options))
    path = test.path("pods", name)
    test.wait(f"{name} runs", lambda: objects.is_true(test.get(path), "Ready"))


@case("pods have the usual columns", needs=RUN, each_kubectl=True)
def pods_table(test):
    running_pod(test, "web", labels={"app": "web"})
    text = test.kubectl("get", "pods").stdout
    check_header(test, text, ["NAME", "READY", "STATUS", "RESTARTS", "AGE"])
    cells = row(test, text, "web")
    test.equal(cells[:4], ["web", "1/1", "Running", "0"], "cells")
    test.match(f"^({AGE})$", cells[4], "age")


@case("pods in wide output name node and address", needs=RUN, each_kubectl=True)
def pods_wide(test):
    running_pod(test, "web")
    text = test.kubectl("get", "pods", "-o", "wide").stdout
    test.match(
        r"^NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\n", text
    )
    pod = test.pod("web")
    cells = row(test, text, "web")
    test.equal(cells[5:7], [pod["status"]["podIP"], pod["spec"]["nodeName"]], "IP and node")
    test.equal(cells[7:], ["<none>", "<none>"], "nominated node and gates")


@case("a finished pod says Completed or Error", needs=RUN)
def pods_finished(test):
    for name, code in (("good", 0), ("bad", 3)):
        test.kubectl("create", "-f", "-", stdin=objects.short_pod(name, exit_code=code))
    test.wait(
        "both ended",
        lambda: all(p["status"].get("phase") in ("Succeeded", "Failed") for p in test.pods()),
    )
    text = test.kubectl("get", "pods").stdout
    test.equal(row(test, text, "good")[1:3], ["0/1", "Completed"], "the good one")
    test.equal(row(test, text, "bad")[1:3], ["0/1", "Error"], "the bad one")
    state = test.pod("bad")["status"]["containerStatuses"][0]["state"]["terminated"]
    test.equal(state["exitCode"], 3, "exit code")


@case("nodes have the usual columns", needs=("nodes", "controllers"), each_kubectl=True)
def nodes_table(test):
    text = test.kubectl("get", "nodes").stdout
    check_header(test, text, ["NAME", "STATUS", "ROLES", "AGE", "VERSION"])
    ready = [line for line in words(text)[1:] if line[1] == "Ready"]
    test.true(len(ready) >= 3, f"fewer than 3 nodes are Ready: {text}")
    # Those that other cases make have none.
    versions = [line[4] for line in ready if len(line) > 4]
    test.true(versions and all(re.match(r"v1\.\d+\.\d+", version) for version in versions), f"versions: {text}")


@case("nodes in wide output tell addresses and system", needs=("nodes",), each_kubectl=True)
def nodes_wide(test):
    text = test.kubectl("get", "nodes", "-o", "wide").stdout
    test.match(
        r"^NAME +STATUS +ROLES +AGE +VERSION +INTERNAL-IP +EXTERNAL-IP +OS-IMAGE +KERNEL-VERSION"
        r" +CONTAINER-RUNTIME\n",
        text,
    )
    test.match(r"\n\S+ +Ready\S* .* \d+\.\d+\.\d+\.\d+ ", text)


@case("deployments have the usual columns", needs=RUN, each_kubectl=True)
def deployments_table(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    text = test.kubectl("get", "deployments").stdout
    check_header(test, text, ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"])
    test.equal(row(test, text, "web")[:4], ["web", "2/2", "2", "2"], "cells")
    wide = test.kubectl("get", "deploy", "-o", "wide").stdout
    test.equal(header(wide)[-3:], ["CONTAINERS", "IMAGES", "SELECTOR"], "wide columns")
    test.equal(row(test, wide, "web")[5:], ["c", "nginx:1", "app=web"], "wide cells")


@case("replicasets have the usual columns", needs=RUN, each_kubectl=True)
def replicasets_table(test):
    test.kubectl("create", "-f", "-", stdin=objects.replica_set("web", replicas=2))
    path = test.path("replicasets", "web", "apps/v1")
    test.wait("both are ready", lambda: test.get(path)["status"].get("readyReplicas") == 2)
    text = test.kubectl("get", "rs").stdout
    check_header(test, text, ["NAME", "DESIRED", "CURRENT", "READY", "AGE"])
    test.equal(row(test, text, "web")[:4], ["web", "2", "2", "2"], "cells")
    wide = test.kubectl("get", "rs", "-o", "wide").stdout
    test.equal(header(wide)[-3:], ["CONTAINERS", "IMAGES", "SELECTOR"], "wide columns")


@case("jobs have the usual columns", needs=RUN, each_kubectl=True)
def jobs_table(test):
    test.kubectl("create", "-f", "-", stdin=objects.job("count", run_for="100ms"))
    test.kubectl("wait", "job/count", "--for=condition=Complete", "--timeout=60s")
    text = test.kubectl("get", "jobs").stdout
    check_header(test, text, ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"])
    test.equal(row(test, text, "count")[:3], ["count", "Complete", "1/1"], "cells")


@case("configmaps, secrets, accounts, namespaces, leases and priority classes have their columns")
def other_tables(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("settings", {"a": "1", "b": "2"}))
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "key"},
        "stringData": {"password": "x"},
    }
    test.kubectl("create", "-f", "-", stdin=secret)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    }
    test.kubectl("create", "-f", "-", stdin=lease)
    text = test.kubectl("get", "configmaps").stdout
    check_header(test, text, ["NAME", "DATA", "AGE"])
    test.equal(row(test, text, "settings")[1], "2", "DATA")
    text = test.kubectl("get", "secrets").stdout
    check_header(test, text, ["NAME", "TYPE", "DATA", "AGE"])
    test.equal(row(test, text, "key")[1:3], ["Opaque", "1"], "type and count")
    text = test.kubectl("get", "leases").stdout
    check_header(test, text, ["NAME", "HOLDER", "AGE"])
    test.equal(row(test, text, "leader")[1], "me", "HOLDER")
    text = test.kubectl("get", "serviceaccounts").stdout
    test.match(r"^NAME .*AGE\s*\n(.*\n)*default ", text)
    text = test.kubectl("get", "ns").stdout
    check_header(test, text, ["NAME", "STATUS", "AGE"])
    for name in ("default", "kube-system", "kube-public", "kube-node-lease", test.namespace):
        test.equal(row(test, text, name)[1], "Active", name)
    text = test.kubectl("get", "priorityclasses").stdout
    test.match(r"^NAME +VALUE +GLOBAL-DEFAULT +AGE +PREEMPTIONPOLICY\s*\n", text)
    test.match(r"\nsystem-cluster-critical +2000000000 +false ", text)
    test.match(r"\nsystem-node-critical +2000001000 +false ", text)


@case("events have the usual columns", needs=("scheduler",), each_kubectl=True)
def events_table(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("big", cpu="100000"))
    test.wait("an event", lambda: test.get(test.path("events"))["items"])
    text = test.kubectl("get", "events").stdout
    check_header(test, text, ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"])
    test.match(r"\n\S+ +Warning +FailedScheduling +pod/big +0/\d+ nodes are available", text)
    test.match(r"FailedScheduling +Pod/big", test.kubectl("events").stdout, "kubectl events")


@case("an empty list says that there is nothing", each_kubectl=True)
def nothing_found(test):
    ran = test.kubectl("get", "pods")
    test.equal(
        (ran.stdout, ran.stderr),
        ("", f"No resources found in {test.namespace} namespace.\n"),
        "text",
    )


@case("get of what is missing tells the kind and the name", each_kubectl=True)
def missing(test):
    test.equal(
        test.refused("get", "pod", "nosuch"),
        'Error from server (NotFound): pods "nosuch" not found\n',
        "pod",
    )
    test.equal(
        test.refused("get", "deploy", "nosuch"),
        'Error from server (NotFound): deployments.apps "nosuch" not found\n',
        "deployment",
    )
    test.equal(
        test.refused("get", "nosuch"),
        'error: the server doesn\'t have a resource type "nosuch"\n',
        "type",
    )
    test.equal(test.kubectl("get", "pod", "nosuch", "--ignore-not-found").stdout, "", "ignored")


@case("get -w shows each change as it comes", each_kubectl=True)
def get_watch(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("first"))
    watching = test.start_kubectl("get", "configmaps", "-w")

    def shows(*pieces):
        return lambda: any(line.split()[: len(pieces)] == list(pieces) for line in watching.lines())

    test.wait("the first is shown", shows("first", "0"))
    test.kubectl("create", "-f", "-", stdin=objects.config_map("second", {"a": "1"}))
    test.wait("the second is shown", shows("second", "1"))
    test.kubectl("patch", "cm", "second", "-p", '{"data":{"b":"2"}}')
    test.wait("its change is shown", shows("second", "2"))
    watching.end()
    names = [
        line.split()[0] for line in watching.lines() if not line.startswith("kube-root-ca.crt")
    ]
    test.equal(names, ["NAME", "first", "second", "second"], "lines")


@case("get -w of pods follows a pod from Pending to Completed", needs=RUN, each_kubectl=True)
def get_watch_pod(test):
    # What is shown of this pod tells that the watch has begun.
    test.create(test.path("pods"), objects.pod("here", schedulerName="nobody"))
    watching = test.start_kubectl("get", "pods", "-w", "--output-watch-events")
    test.wait("the watch begins", lambda: any(" here " in line for line in watching.lines()))
    slow = objects.short_pod("p", run_for="300ms")
    slow["metadata"]["annotations"]["berth.dev/start-after"] = "600ms"
    test.kubectl("create", "-f", "-", stdin=slow)
    test.wait("it is complete", lambda: any("Completed" in line for line in watching.lines()))
    test.kubectl("delete", "pod", "p")
    test.wait("its end is shown", lambda: any("DELETED" in line for line in watching.lines()))
    states = [line.split()[3] for line in watching.lines() if " p " in line]
    order = [s for s in ("Pending", "ContainerCreating", "Running", "Completed") if s in states]
    seen = list(dict.fromkeys(states))
    test.equal(seen, order, "order of states")
    for state in ("Pending", "ContainerCreating", "Running"):
        test.true(state in seen, f"never {state}: {seen}")


@case("-o yaml, json, name, jsonpath and custom-columns give the object", each_kubectl=True)
def output_formats(test):
    made = objects.config_map(
        "settings", {"color": "blue", "text": "a: b\n- 'c'\n"}, {"team": "red"}
    )
    test.kubectl("create", "-f", "-", stdin=made)
    item = json.loads(test.kubectl("get", "cm", "settings", "-o", "json").stdout)
    test.equal(item["apiVersion"] + item["kind"], "v1ConfigMap", "kind")
    test.equal(item["data"], made["data"], "data")
    yaml = test.kubectl("get", "cm", "settings", "-o", "yaml").stdout
    test.match(r"^apiVersion: v1\ndata:\n  color: blue\n", yaml)
    test.match(r"\nkind: ConfigMap\nmetadata:\n  creationTimestamp: \"20", yaml)
    test.equal(
        test.kubectl("get", "cm", "settings", "-o", "name").stdout, "configmap/settings\n", "name"
    )
    path = "jsonpath={.metadata.labels.team} {.data.color}"
    test.equal(test.kubectl("get", "cm", "settings", "-o", path).stdout, "red blue", "jsonpath")
    columns = "custom-columns=N:.metadata.name,C:.data.color"
    text = test.kubectl("get", "cm", "-l", "team=red", "-o", columns).stdout
    test.equal(
        [line.split() for line in text.splitlines()], [["N", "C"], ["settings", "blue"]], "columns"
    )
    listed = json.loads(test.kubectl("get", "cm", "-l", "team=red", "-o", "json").stdout)
    test.equal((listed["kind"], len(listed["items"])), ("List", 1), "list")
    test.equal(listed["items"][0]["kind"], "ConfigMap", "kind of an item")


@case("selectors, sorting, --show-labels and -A choose and order rows")
def choosing(test):
    for name, labels in (("a", {"tier": "x"}), ("b", {"tier": "y"}), ("c", {})):
        test.kubectl("create", "-f", "-", stdin=objects.config_map(name, labels=labels))

    def names(*options):
        text = test.kubectl("get", "cm", "-o", "name", *options).stdout
        found = [line.removeprefix("configmap/") for line in text.splitlines()]
        return [name for name in found if name != "kube-root-ca.crt"]

    test.equal(names("-l", "tier=x"), ["a"], "tier=x")
    test.equal(names("-l", "tier!=x"), ["b", "c"], "tier!=x")
    test.equal(names("-l", "tier in (x,y)"), ["a", "b"], "in")
    test.equal(names("-l", "tier notin (x)"), ["b", "c"], "notin")
    test.equal(names("-l", "tier"), ["a", "b"], "exists")
    test.equal(names("-l", "!tier"), ["c"], "not exists")
    test.equal(names("--field-selector", "metadata.name=b"), ["b"], "field")
    test.equal(names("--field-selector", "metadata.name!=b"), ["a", "c"], "field !=")
    test.equal(names("--sort-by", "{.metadata.name}"), ["a", "b", "c"], "sorted")
    test.equal(names("--chunk-size=1"), ["a", "b", "c"], "in chunks of one")
    text = test.kubectl("get", "cm", "--show-labels").stdout
    test.match(r"\na +0 +\S+ +tier=x", text)
    text = test.kubectl("get", "cm", "-A").stdout
    test.match(r"^NAMESPACE +NAME +DATA +AGE", text)
    test.match(rf"\n{test.namespace} +a +0 ", text)
    text = test.kubectl("get", "cm", "-L", "tier").stdout
    test.match(r"^NAME +DATA +AGE +TIER", text)


@case("get all lists the workloads", needs=RUN, each_kubectl=True)
def get_all(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web"))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    text = test.kubectl("get", "all").stdout
    test.match(r"pod/web-\S+ +1/1 +Running", text)
    test.match(r"deployment.apps/web +1/1", text)
    test.match(r"replicaset.apps/web-\S+ +1 +1 +1", text)


@case(
    "describe shows pod, node, deployment, replicaset, job and namespace",
    needs=RUN,
    each_kubectl=True,
)
def describe(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", cpu="100m"))
    test.kubectl("create", "-f", "-", stdin=objects.job("count", run_for="50ms"))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.kubectl("wait", "job/count", "--for=condition=Complete", "--timeout=60s")
    pod = test.pods("app=web")[0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    scheduled = rf"Normal +Scheduled +.*Successfully assigned {test.namespace}/{name} to {node}"
    describe = lambda: test.kubectl("describe", "pod", name).stdout
    test.wait("its event is there", lambda: re.search(scheduled, describe()))
    text = describe()
    test.match(rf"(?m)^Name: +{name}$", text)
    test.match(rf"(?m)^Node: +{node}/", text)
    test.match(r"(?m)^Status: +Running$", text)
    test.match(r"(?m)^Controlled By: +ReplicaSet/web-", text)
    test.match(r"(?m)^ +cpu: +100m$", text)
    test.match(r"(?m)^  PodScheduled +True *$", text)
    text = test.kubectl("describe", "node", node).stdout
    test.match(rf"(?m)^Name: +{node}$", text)
    test.match(r"(?m)^  Ready +True ", text)
    test.match(rf"(?m)^  {test.namespace} +{name} ", text)
    text = test.kubectl("describe", "deployment", "web").stdout
    test.match(r"1 desired \| 1 updated \| 1 total \| 1 available \| 0 unavailable", text)
    test.match(r"(?m)^  Available +True +MinimumReplicasAvailable", text)
    test.match(r"(?m)^  Progressing +True +NewReplicaSetAvailable", text)
    test.match(r"(?m)^NewReplicaSet: +web-\S+ \(1/1 replicas created\)", text)
    text = test.kubectl("describe", "rs", "-l", "app=web").stdout
    test.match(r"Controlled By: +Deployment/web", text)
    test.match(r"Pods Status: +1 Running / 0 Waiting / 0 Succeeded / 0 Failed", text)
    text = test.kubectl("describe", "job", "count").stdout
    test.match(r"Pods Statuses: +0 Active \(0 Ready\) / 1 Succeeded / 0 Failed", text)
    text = test.kubectl("describe", "ns", test.namespace).stdout
    test.match(r"Status: +Active", text)


@case("api-resources lists the kinds with their short names", each_kubectl=True)
def api_resources(test):
    text = test.kubectl("api-resources").stdout
    test.match(r"^NAME +SHORTNAMES +APIVERSION +NAMESPACED +KIND", text)
    rows = [line.split() for line in text.splitlines()]
    for expected in (
        ["bindings", "v1", "true", "Binding"],
        ["configmaps", "cm", "v1", "true", "ConfigMap"],
        ["events", "ev", "v1", "true", "Event"],
        ["namespaces", "ns", "v1", "false", "Namespace"],
        ["nodes", "no", "v1", "false", "Node"],
        ["pods", "po", "v1", "true", "Pod"],
        ["secrets", "v1", "true", "Secret"],
        ["serviceaccounts", "sa", "v1", "true", "ServiceAccount"],
        ["deployments", "deploy", "apps/v1", "true", "Deployment"],
        ["replicasets", "rs", "apps/v1", "true", "ReplicaSet"],
        ["jobs", "batch/v1", "true", "Job"],
        ["leases", "coordination.k8s.io/v1", "true", "Lease"],
        ["events", "ev", "events.k8s.io/v1", "true", "Event"],
        ["priorityclasses", "pc", "scheduling.k8s.io/v1", "false", "PriorityClass"],
    ):
        if expected == ["bindings", "v1", "true", "Binding"] and expected not in rows:
            continue  # A resource that can only be created; not everybody lists it.
        test.true(expected in rows, f"no row {expected} in\n{text}")
    names = test.kubectl("api-resources", "--namespaced=false", "-o", "name").stdout.split()
    test.true("nodes" in names and "pods" not in names, f"not namespaced: {names}")
    versions = test.kubectl("api-versions").stdout.split()
    for version in ("v1", "apps/v1", "batch/v1", "scheduling.k8s.io/v1"):
        test.true(version in versions, f"no {version} in {versions}")


@case("explain tells types of fields", each_kubectl=True)
def explain(test):
    text = test.kubectl("explain", "pod.spec.nodeName").stdout
    test.match(r"KIND: +Pod\nVERSION: +v1\n", text)
    test.match(r"FIELD: nodeName <string>", text)
    text = test.kubectl("explain", "deployment.spec").stdout
    test.match(r"(?m)^  replicas\t<integer>", text)
    test.match(r"(?m)^  selector\t<LabelSelector> -required-", text)
    test.match('field "nosuch" does not exist', test.refused("explain", "pod.spec.nosuch"))


@case("health is told check by check, and without those that are excluded")
def health(test):
    for what in ("healthz", "livez", "readyz"):
        text = test.http("GET", f"/{what}?verbose", status=200).body.decode()
        test.match(rf"^\[\+\]ping ok\n(\[\+\]\S+ ok\n)+{what} check passed\n$", text)
        test.equal(test.http("GET", f"/{what}/etcd?verbose", status=200).body, b"ok", "one check")
        test.equal(test.http("GET", f"/{what}/nosuch", status=404).body, b"404 page not found\n", "no check")
        test.equal(test.http("GET", f"/{what}?exclude=etcd", status=200).body, b"ok", "without one")
        text = test.http("GET", f"/{what}?verbose&exclude=etcd&exclude=b&exclude=a", status=200).body.decode()
        test.match(r"(?m)^\[\+\]etcd excluded: ok$", text)
        warning = 'warn: some health checks cannot be excluded: no matches for "a","b"'
        test.true(text.endswith(f"{warning}\n{what} check passed\n"), text)
        test.http("GET", f"/{what}/ping", token=None, status=401)


@case("get --raw gives health, version and lists", each_kubectl=True)
def get_raw(test):
    for path in ("/healthz", "/livez", "/readyz"):
        test.equal(test.kubectl("get", "--raw", path).stdout, "ok", path)
    version = json.loads(test.kubectl("get", "--raw", "/version").stdout)
    test.equal(version["major"], "1", "major version")
    listed = json.loads(test.kubectl("get", "--raw", test.path("pods")).stdout)
    test.equal((listed["kind"], listed["items"]), ("PodList", []), "list")
    test.match("NotFound|not found|404", test.refused("get", "--raw", "/nosuch"), "error")
    test.match(r"Server Version: v1\.\d+", test.kubectl("version").stdout, "version")


@case("list with limit and continue gives every object once, at one version")
def paging(test):
    names = [f"m{i:02d}" for i in range(7)]
    for name in names:
        test.create(test.path("configmaps"), objects.config_map(name, labels={"page": "yes"}))
    seen, versions, token = [], set(), ""
    while True:
        query = f"?labelSelector=page%3Dyes&limit=3&continue={token}"
        listed = test.get(test.path("configmaps") + query)
        seen += [item["metadata"]["name"] for item in listed["items"]]
        versions.add(listed["metadata"]["resourceVersion"])
        token = listed["metadata"].get("continue", "")
        if len(seen) == 3:
            # Neither a new object nor the loss of one that is due shows on later pages.
            test.create(test.path("configmaps"), objects.config_map("m99", labels={"page": "yes"}))
            test.http("DELETE", test.path("configmaps", "m05"), status=200)
        if not token:
            break
    test.equal(seen, names, "names")
    test.equal(len(versions), 1, "versions")


@case("a list at a version sees the objects as they were, a newer bound waits for it")
def list_versions(test):
    made = test.create(test.path("configmaps"), objects.config_map("a", labels={"v": "1"}))
    version = made["metadata"]["resourceVersion"]
    listed = test.get(
        test.path("configmaps") + f"?resourceVersion={version}&resourceVersionMatch=NotOlderThan"
    )
    test.true("a" in [i["metadata"]["name"] for i in listed["items"]], "not there at its version")
    test.get(test.path("configmaps") + "?resourceVersion=0")
    answer = test.http("GET", test.path("configmaps") + "?resourceVersionMatch=Exact")
    test.equal(answer.status, 422 if answer.status == 422 else 400, "match without version")
    test.match("resourceVersionMatch", answer.message)


@case("documents in YAML have their keys in order")
def yaml_order(test):
    keys = ["a1", "a2", "a10", "A", "b-c", "b.c", "1", "10"]
    test.create(test.path("configmaps"), objects.config_map("keys", {key: "x" for key in keys}))
    yaml = {"Accept": "application/yaml"}
    text = test.http("GET", test.path("configmaps", "keys"), headers=yaml, status=200).body.decode()
    lines = text.splitlines()
    top = [line.split(":")[0] for line in lines if not line.startswith(" ")]
    test.equal(top, ["apiVersion", "data", "kind", "metadata"], "members")
    shown = [line.split(":")[0].strip(' "') for line in lines[lines.index("data:") + 1 : lines.index("kind: ConfigMap")]]
    test.equal(shown, ["1", "10", "A", "a1", "a2", "a10", "b-c", "b.c"], "keys")
    text = test.http("GET", test.path("configmaps", "nosuch"), headers=yaml, status=404).body.decode()
    test.match(r"^apiVersion: v1\ncode: 404\ndetails:\n  kind: configmaps\n  name: nosuch\nkind: Status\n", text)
    text = test.http("GET", test.path("configmaps"), headers=yaml, status=200).body.decode()
    top = [line.split(":")[0] for line in text.splitlines() if line[0] not in " -"]
    test.equal(top, ["apiVersion", "items", "kind", "metadata"], "members of a list")
