"""What kubectl changes: create, apply, patch, label, scale, replace, edit."""

import json

import objects
from harness import KEEP_OUT, case

TWO_DOCUMENTS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
data: {color: blue}
---
# A comment between documents.
apiVersion: v1
kind: ConfigMap
metadata:
  name: second
data:
  text: |
    two
    lines
"""


@case("create -f takes YAML with several documents, and JSON", each_kubectl=True)
def create(test):
    ran = test.kubectl("create", "-f", "-", stdin=TWO_DOCUMENTS)
    test.equal(ran.stdout, "configmap/first created\nconfigmap/second created\n", "output")
    test.equal(test.get(test.path("configmaps", "second"))["data"]["text"], "two\nlines\n", "text")
    ran = test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.equal(ran.stdout, "pod/p created\n", "output")
    spec = test.pod("p")["spec"]
    test.equal(spec["restartPolicy"], "Always", "default of restartPolicy")
    test.equal(spec["schedulerName"], "default-scheduler", "default of schedulerName")
    test.equal(spec["terminationGracePeriodSeconds"], 30, "default of the grace period")
    keys = sorted(toleration["key"] for toleration in spec["tolerations"])
    test.equal(
        keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"], "tolerations"
    )


@case("create of what exists is AlreadyExists", each_kubectl=True)
def create_twice(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a"))
    text = test.refused("create", "-f", "-", stdin=objects.config_map("a"))
    test.match(r'^Error from server \(AlreadyExists\): .*configmaps "a" already exists', text)


@case(
    "create with an unknown or a duplicate field is refused, with --validate=warn warned of",
    each_kubectl=True,
)
def create_strict(test):
    bad = objects.pod("p", foo=1)
    bad["spec"]["containers"][0]["imagee"] = "x"
    text = test.refused("create", "-f", "-", stdin=bad)
    test.match("strict decoding error", text)
    test.match(r'unknown field "spec.containers\[0\].imagee"', text)
    test.match('unknown field "spec.foo"', text)
    test.true(not test.exists(test.path("pods", "p")), "the refused pod exists")
    ran = test.kubectl("create", "--validate=warn", "-f", "-", stdin=bad)
    test.match('Warning: unknown field "spec.foo"', ran.stderr)
    test.true("foo" not in test.pod("p")["spec"], "the unknown field was kept")
    duplicate = (
        '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"d"},"data":{"a":"1","a":"2"}}'
    )
    headers = {"Content-Type": "application/json"}
    path = test.path("configmaps") + "?fieldValidation=Strict"
    answer = test.http("POST", path, duplicate, headers=headers, status=400)
    test.match(r'duplicate field "data.a"|duplicate field "a"', answer.message)


@case("kubectl create with a subcommand, which speaks protobuf", each_kubectl=True)
def create_imperative(test):
    ran = test.kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=0")
    test.equal(ran.stdout, "deployment.apps/web created\n", "output")
    web = test.get(test.path("deployments", "web", "apps/v1"))
    test.equal(web["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:1", "image")
    ran = test.kubectl("create", "configmap", "one", "--from-literal=a=b")
    test.equal(ran.stdout, "configmap/one created\n", "output")
    test.equal(test.get(test.path("configmaps", "one"))["data"], {"a": "b"}, "data")
    ran = test.kubectl("run", "one", "--image=nginx:1")
    test.equal(ran.stdout, "pod/one created\n", "output")


@case("create with generateName makes up a name")
def generate_name(test):
    made = objects.config_map("x")
    made["metadata"] = {"generateName": "job-"}
    names = {test.create(test.path("configmaps"), made)["metadata"]["name"] for _ in range(5)}
    test.equal(len(names), 5, "different names")
    for name in names:
        test.match(r"^job-[a-z0-9]{5}$", name)


@case("create --dry-run=server answers but stores nothing", each_kubectl=True)
def dry_run(test):
    ran = test.kubectl("create", "--dry-run=server", "-f", "-", stdin=objects.config_map("a"))
    test.equal(ran.stdout, "configmap/a created (server dry run)\n", "output")
    test.true(not test.exists(test.path("configmaps", "a")), "it exists")


@case("apply creates, changes nothing the second time, and changes what changed", each_kubectl=True)
def apply(test):
    def apply_it(manifest):
        return test.kubectl("apply", "-f", "-", stdin=manifest).stdout

    manifest = objects.deployment(
        "web", replicas=0, image="nginx:1", pod_spec={"nodeSelector": {"a": "b"}}
    )
    test.equal(apply_it(manifest), "deployment.apps/web created\n", "first")
    path = test.path("deployments", "web", "apps/v1")
    generation = test.get(path)["metadata"]["generation"]
    test.equal(apply_it(manifest), "deployment.apps/web unchanged\n", "second")
    test.equal(test.get(path)["metadata"]["generation"], generation, "generation")
    changed = objects.deployment("web", replicas=0, image="nginx:2")
    test.equal(apply_it(changed), "deployment.apps/web configured\n", "third")
    found = test.get(path)
    template = found["spec"]["template"]["spec"]
    test.equal(template["containers"][0]["image"], "nginx:2", "image")
    test.true("nodeSelector" not in template, "what left the manifest is still there")
    test.equal(found["metadata"]["generation"], generation + 1, "generation")


@case("apply merges lists by their keys and keeps what others added", each_kubectl=True)
def apply_merges(test):
    def with_containers(*containers):
        made = objects.deployment("web", replicas=0)
        made["spec"]["template"]["spec"]["containers"] = [
            {"name": name, "image": image} for name, image in containers
        ]
        return made

    test.kubectl("apply", "-f", "-", stdin=with_containers(("a", "x:1"), ("b", "x:1")))
    # Another's change that the manifest does not speak of.
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}}
    test.kubectl("patch", "deploy", "web", "-p", json.dumps(patch))
    test.kubectl("label", "deploy", "web", "mine=yes")
    test.kubectl("apply", "-f", "-", stdin=with_containers(("a", "x:2")))
    found = test.get(test.path("deployments", "web", "apps/v1"))
    containers = {c["name"]: c["image"] for c in found["spec"]["template"]["spec"]["containers"]}
    test.equal(containers, {"a": "x:2", "side": "s:1"}, "containers")
    test.equal(found["metadata"]["labels"], {"mine": "yes"}, "labels")


@case("diff shows what apply would change", each_kubectl=True)
def diff(test):
    test.kubectl("apply", "-f", "-", stdin=objects.config_map("a", {"k": "old"}))
    ran = test.kubectl("diff", "-f", "-", stdin=objects.config_map("a", {"k": "new"}), status=1)
    test.match(r"(?m)^-  k: old$", ran.stdout)
    test.match(r"(?m)^\+  k: new$", ran.stdout)


@case("patch merges, strategically merges, and takes JSON patches", each_kubectl=True)
def patch(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=0))
    path = test.path("deployments", "web", "apps/v1")

    def patch_it(kind, document):
        return test.kubectl(
            "patch", "deploy", "web", f"--type={kind}", "-p", json.dumps(document)
        ).stdout

    side = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s"}]}}}}
    test.equal(patch_it("strategic", side), "deployment.apps/web patched\n", "output")
    names = [c["name"] for c in test.get(path)["spec"]["template"]["spec"]["containers"]]
    test.equal(sorted(names), ["c", "side"], "containers after the strategic patch")
    drop = {"spec": {"template": {"spec": {"containers": [{"name": "c", "$patch": "delete"}]}}}}
    patch_it("strategic", drop)
    names = [c["name"] for c in test.get(path)["spec"]["template"]["spec"]["containers"]]
    test.equal(names, ["side"], "containers after $patch: delete")
    patch_it(
        "merge", {"spec": {"template": {"spec": {"containers": [{"name": "n", "image": "m"}]}}}}
    )
    names = [c["name"] for c in test.get(path)["spec"]["template"]["spec"]["containers"]]
    test.equal(names, ["n"], "containers after the merge patch")
    patch_it("merge", {"metadata": {"labels": {"a": "b", "c": "d"}}})
    patch_it("merge", {"metadata": {"labels": {"a": None}}})
    test.equal(test.get(path)["metadata"]["labels"], {"c": "d"}, "labels after null")
    patch_it(
        "json",
        [
            {"op": "test", "path": "/metadata/labels/c", "value": "d"},
            {"op": "replace", "path": "/spec/paused", "value": True},
            {"op": "add", "path": "/metadata/labels/x~1y", "value": "z"},
        ],
    )
    found = test.get(path)
    test.equal(found["spec"]["paused"], True, "paused after the JSON patch")
    test.equal(found["metadata"]["labels"], {"c": "d", "x/y": "z"}, "labels after the JSON patch")


@case("a patch that changes nothing says so", each_kubectl=True)
def patch_no_change(test):
    # kubectl compares what it read before with what the patch gave back: an object with a
    # controller may change in between.
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a", {"k": "v"}))
    ran = test.kubectl("patch", "cm", "a", "-p", '{"data":{"k":"v"}}')
    test.equal(ran.stdout, "configmap/a patched (no change)\n", "output")


@case("a JSON patch whose test or path fails is refused", each_kubectl=True)
def patch_refused(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a", {"k": "v"}))
    for operation in (
        {"op": "test", "path": "/data/k", "value": "other"},
        {"op": "replace", "path": "/nosuch/x", "value": 1},
        {"op": "remove", "path": "/data/nosuch"},
    ):
        text = test.refused("patch", "cm", "a", "--type=json", "-p", json.dumps([operation]))
        test.match("the server rejected our request due to an error in our request", text)
    test.match("NotFound", test.refused("patch", "cm", "nosuch", "-p", "{}"))
    test.equal(test.get(test.path("configmaps", "a"))["data"], {"k": "v"}, "data")


@case("patches of a status go to the status subresource only")
def patch_status(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.merge(test.path("pods", "p"), {"status": {"message": "by spec"}})
    test.true("message" not in test.pod("p")["status"], "the pod's own path changed the status")
    both = {"metadata": {"labels": {"x": "y"}}, "status": {"message": "by status"}}
    ran = test.kubectl(
        "patch", "pod", "p", "--subresource=status", "--type=merge", "-p", json.dumps(both)
    )
    test.equal(ran.stdout, "pod/p patched\n", "output")
    test.equal(test.pod("p")["status"]["message"], "by status", "message")


@case("label and annotate add, refuse to overwrite, overwrite and remove", each_kubectl=True)
def label(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a"))
    path = test.path("configmaps", "a")
    test.equal(test.kubectl("label", "cm", "a", "x=y").stdout, "configmap/a labeled\n", "output")
    test.match("already has a value", test.refused("label", "cm", "a", "x=z"))
    test.kubectl("label", "cm", "a", "x=z", "--overwrite")
    test.equal(test.get(path)["metadata"]["labels"], {"x": "z"}, "labels")
    test.equal(test.kubectl("label", "cm", "a", "x-").stdout, "configmap/a unlabeled\n", "output")
    test.true("labels" not in test.get(path)["metadata"], "the label is still there")
    test.equal(
        test.kubectl("annotate", "cm", "a", "note=hello").stdout,
        "configmap/a annotated\n",
        "output",
    )
    test.equal(test.get(path)["metadata"]["annotations"], {"note": "hello"}, "annotations")
    test.kubectl("annotate", "cm", "a", "note-")
    test.true("annotations" not in test.get(path)["metadata"], "the annotation is still there")


@case("scale sets the replicas, and only if the current number is as said", each_kubectl=True)
def scale(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=0))
    path = test.path("deployments", "web", "apps/v1")
    ran = test.kubectl("scale", "deploy", "web", "--replicas=2")
    test.equal(ran.stdout, "deployment.apps/web scaled\n", "output")
    test.equal(test.get(path)["spec"]["replicas"], 2, "replicas")
    text = test.refused("scale", "deploy", "web", "--current-replicas=9", "--replicas=1")
    test.match("xpected replicas to be 9, was 2", text)
    test.kubectl("scale", "deploy", "web", "--current-replicas=2", "--replicas=0")
    found = test.get(path + "/scale")
    test.equal(found["kind"], "Scale", "kind")
    test.equal(found["spec"].get("replicas", 0), 0, "replicas of the scale")
    test.equal(found["status"]["selector"], "app=web", "selector of the scale")


@case("replace and edit write the whole object", each_kubectl=True)
def replace(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a", {"k": "1", "gone": "x"}))
    ran = test.kubectl("replace", "-f", "-", stdin=objects.config_map("a", {"k": "2"}))
    test.equal(ran.stdout, "configmap/a replaced\n", "output")
    path = test.path("configmaps", "a")
    test.equal(test.get(path)["data"], {"k": "2"}, "data")
    environment = test.program.environment(test.cluster.kubeconfig)
    environment["KUBE_EDITOR"] = "sed -i s/'k: \"2\"'/'k: \"3\"'/"
    command = [test.program.path, "-n", test.namespace, "edit", "cm", "a"]
    test.equal(
        test.command(command, environment=environment).stdout, "configmap/a edited\n", "output"
    )
    test.equal(test.get(path)["data"], {"k": "3"}, "data after the edit")


@case("set image changes the template", each_kubectl=True)
def set_image(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=0))
    ran = test.kubectl("set", "image", "deploy/web", "c=nginx:3")
    test.equal(ran.stdout, "deployment.apps/web image updated\n", "output")


@case("cordon, uncordon and taint change the node", each_kubectl=True)
def nodes(test):
    name = test.unique("node")
    test.make_node(name)
    path = f"/api/v1/nodes/{name}"

    def taints():
        found = test.get(path)["spec"].get("taints", [])
        return sorted(
            f"{t['key']}={t.get('value', '')}:{t['effect']}"
            for t in found
            if t["key"] != KEEP_OUT["key"]
        )

    test.wait("the new node's taint is gone", lambda: taints() == [])
    test.equal(test.kubectl("cordon", name).stdout, f"node/{name} cordoned\n", "output")
    test.equal(test.get(path)["spec"]["unschedulable"], True, "unschedulable")
    test.match(rf"{name} +Ready,SchedulingDisabled ", test.kubectl("get", "node", name).stdout)
    test.equal(test.kubectl("uncordon", name).stdout, f"node/{name} uncordoned\n", "output")
    test.true("unschedulable" not in test.get(path)["spec"], "still unschedulable")
    test.wait("its taint is gone", lambda: taints() == [])
    test.equal(
        test.kubectl("taint", "node", name, "a=b:NoSchedule", "c:NoExecute").stdout,
        f"node/{name} tainted\n",
        "output",
    )
    test.equal(taints(), ["a=b:NoSchedule", "c=:NoExecute"], "taints")
    test.match(
        "already has a taint|already has", test.refused("taint", "node", name, "a=x:NoSchedule")
    )
    test.kubectl("taint", "node", name, "a=x:NoSchedule", "--overwrite")
    test.kubectl("taint", "node", name, "c-")
    test.equal(taints(), ["a=x:NoSchedule"], "taints")
    test.equal(
        test.kubectl("taint", "node", name, "a:NoSchedule-").stdout,
        f"node/{name} untainted\n",
        "output",
    )


@case(
    "wait ends when a condition, a value or an end comes, and fails when it does not",
    each_kubectl=True,
)
def wait(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", schedulerName="nobody"))
    text = test.refused("wait", "pod", "p", "--for=condition=Ready", "--timeout=300ms")
    test.match("timed out waiting for the condition on pods/p", text)
    waiting = test.start_kubectl("wait", "pod", "p", "--for=condition=e2e/Seen", "--timeout=60s")
    valued = test.start_kubectl(
        "wait", "pod", "p", "--for=jsonpath={.status.message}=hi", "--timeout=60s"
    )
    status = {"status": {"message": "hi", "conditions": [{"type": "e2e/Seen", "status": "True"}]}}
    test.kubectl("patch", "pod", "p", "--subresource=status", "-p", json.dumps(status))
    test.equal(waiting.wait(60), 0, "exit status")
    test.equal(waiting.lines(), ["pod/p condition met"], "output")
    test.equal(valued.wait(60), 0, "exit status")
    ended = test.start_kubectl("wait", "pod", "p", "--for=delete", "--timeout=60s")
    test.kubectl("delete", "pod", "p", "--force")
    test.equal(ended.wait(60), 0, "exit status")


@case("an update from an old version conflicts and changes nothing")
def stale_update(test):
    old = test.create(test.path("configmaps"), objects.config_map("a", {"k": "1"}))
    path = test.path("configmaps", "a")
    new = test.merge(path, {"data": {"k": "2"}})
    answer = test.http("PUT", path, old, status=409)
    test.equal(answer.reason, "Conflict", "reason")
    test.equal(
        answer.message,
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
        "message",
    )
    stale = {
        "metadata": {"resourceVersion": old["metadata"]["resourceVersion"]},
        "data": {"k": "3"},
    }
    test.equal(test.merge(path, stale, status=409)["reason"], "Conflict", "reason of the patch")
    test.equal(
        test.get(path)["metadata"]["resourceVersion"], new["metadata"]["resourceVersion"], "version"
    )
    foreign = old | {"metadata": {"name": "a", "uid": "00000000-0000-4000-8000-000000000000"}}
    test.http("PUT", path, foreign, status=409)
    test.equal(test.get(path)["data"], {"k": "2"}, "data")


@case("writers that read, change and retry on conflicts lose no update", seconds=3)
def no_lost_update(test):
    import threading

    from harness import Connection

    path = test.path("configmaps", "counter")
    test.create(test.path("configmaps"), objects.config_map("counter", {"n": "0"}))
    writers, rounds = 4, 10
    problems = []

    def count():
        connection = Connection(test.credentials)
        for _ in range(rounds):
            for _ in range(10000):
                item = connection.request("GET", path).json()
                item["data"]["n"] = str(int(item["data"]["n"]) + 1)
                status = connection.request("PUT", path, item).status
                if status == 200:
                    break
                if status != 409:
                    problems.append(status)
                    return
        connection.close()

    threads = [threading.Thread(target=count) for _ in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    test.equal(problems, [], "other answers than 200 and 409")
    test.equal(test.get(path)["data"]["n"], str(writers * rounds), "count")


@case("what does not change gets no new version")
def no_change(test):
    made = test.create(test.path("configmaps"), objects.config_map("a", {"k": "1"}))
    again = test.http("PUT", test.path("configmaps", "a"), made, status=200).json()
    test.equal(again["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "version")


@case("quantities are answered in their canonical form")
def quantities(test):
    for given, canonical in (("0.1", "100m"), ("1000m", "1"), ("2.50", "2500m"), ("0.0001", "1m")):
        made = test.create(
            test.path("pods"), objects.pod(test.unique("q") + given.replace(".", "-"), cpu=given)
        )
        test.equal(made["spec"]["containers"][0]["resources"]["requests"]["cpu"], canonical, given)
    for given, canonical in (
        ("1.5Gi", "1536Mi"),
        ("2048Mi", "2Gi"),
        ("1e9", "1e9"),
        ("1000000", "1M"),
    ):
        name = test.unique("m") + given.replace(".", "-").lower()
        made = test.create(test.path("pods"), objects.pod(name, memory=given))
        test.equal(
            made["spec"]["containers"][0]["resources"]["requests"]["memory"], canonical, given
        )


@case("a pod's own labels become parts of the selectors that ask for them")
def label_keys(test):
    spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["rev", "no"]}
    term = {"topologyKey": "zone", "labelSelector": {}, "mismatchLabelKeys": ["rev"]}
    preferred = [{"weight": 1, "podAffinityTerm": term}]
    pod = objects.pod("keyed", labels={"app": "a", "rev": "7"})
    pod["spec"]["topologySpreadConstraints"] = [spread | {"labelSelector": {"matchLabels": {"app": "a"}}}]
    pod["spec"]["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    made = test.create(test.path("pods"), pod)["spec"]
    test.equal(
        made["topologySpreadConstraints"][0]["labelSelector"],
        {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "rev", "operator": "In", "values": ["7"]}]},
        "spread",
    )
    of_affinity = made["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    test.equal(
        of_affinity["podAffinityTerm"]["labelSelector"],
        {"matchExpressions": [{"key": "rev", "operator": "NotIn", "values": ["7"]}]},
        "affinity",
    )
    pod["spec"]["topologySpreadConstraints"] = [spread]
    answer = test.http("POST", test.path("pods"), pod, status=422)
    where = "spec.topologySpreadConstraints[0].matchLabelKeys"
    told = f"{where}: Forbidden: must not be specified when labelSelector is not set"
    test.equal(answer.message, f'Pod "keyed" is invalid: {told}', "without a selector")
    del pod["spec"]["topologySpreadConstraints"]
    pod["spec"]["overhead"] = {}
    answer = test.http("POST", test.path("pods"), pod, status=403)
    test.match("Pod Overhead set without corresponding RuntimeClass defined Overhead", answer.message)
    del pod["spec"]["overhead"]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    answer = test.http("POST", test.path("pods"), pod, status=422)
    told = 'Not found: "gpu": must be one of the names in pod.spec.resourceClaims which is empty'
    test.equal(answer.message, f'Pod "keyed" is invalid: spec.containers[0].resources.claims[0]: {told}', "claims")
