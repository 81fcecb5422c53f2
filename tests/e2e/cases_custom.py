"""Volcano's and Kueue's kinds, as their users have them: kubectl, and the manifests of their sites."""

import json
import os
import pathlib
import re

import objects
from harness import ROOT, Skip, case

# The genuine API server has these kinds only where their definitions are installed.
CUSTOM = ("controllers", "definitions")
# What berth's own server does by admission, as Kueue's webhooks would, or what was not made to hold elsewhere yet.
OURS = ("embedded",)
VOLCANO = "scheduling.volcano.sh/v1beta1"
KUEUE = "kueue.x-k8s.io/v1beta2"


def manifests(pattern):
    """The files of upstream's that match, of BERTH_MANIFESTS or of the folder beside the project."""
    folder = pathlib.Path(os.environ.get("BERTH_MANIFESTS", ROOT.parent / "shared/manifests"))
    found = sorted(folder.glob(pattern))
    if not found:
        raise Skip(f"there is no {folder}/{pattern}")
    return found


def definitions(pattern):
    """The definitions of upstream's kinds that match, of BERTH_CRDS or of the folder beside the project."""
    folder = pathlib.Path(os.environ.get("BERTH_CRDS", ROOT.parent / "shared/crds"))
    found = sorted(folder.glob(pattern))
    if not found:
        raise Skip(f"there is no {folder}/{pattern}")
    return found


def documents(path):
    """The text of each document of a file, and of what kind it is."""
    for text in re.split(r"^---\s*$", path.read_text(), flags=re.MULTILINE):
        version = re.search(r"^apiVersion: *(\S+)", text, re.MULTILINE)
        kind = re.search(r"^kind: *(\S+)", text, re.MULTILINE)
        if version and kind:
            yield version.group(1), kind.group(1), text


def named(name, kind, version, **rest):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}} | rest


def applied(test, version, kind, text):
    """Applies a document as a dry run: several files have objects of one name, and most are everybody's."""
    text = re.sub(r"^  namespace: .*$", "", text, flags=re.MULTILINE)
    ran = test.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)
    test.match(rf"{kind.lower()}\.{version.split('/')[0]}/\S+ created", ran.stdout, kind)


@case("Kueue's and Volcano's manifests apply unchanged", needs=CUSTOM, seconds=20)
def upstream_manifests(test):
    count = 0
    for path in manifests("*/*/*.yaml"):
        for version, kind, text in documents(path):
            if version not in (VOLCANO, KUEUE) or kind == "ProvisioningRequestConfig":
                continue
            applied(test, version, kind, text)
            count += 1
    test.true(count >= 30, f"{count} documents")


@case(
    "Kueue's quick start: its queues are applied as they stand, shown, and applied again",
    needs=CUSTOM,
    alone=True,
    each_kubectl=True,
)
def quick_start(test):
    setup = manifests("kueue/getting-started/quick-start-setup.yaml")[0]
    created = test.kubectl("apply", "-f", str(setup), namespace=False).stdout
    try:
        test.match("clusterqueue.kueue.x-k8s.io/cluster-queue created", created)
        test.match("unchanged", test.kubectl("apply", "-f", str(setup), namespace=False).stdout)
        table = test.kubectl("get", "cq", "-o", "wide").stdout
        test.match(r"NAME +COHORT +STRATEGY +PENDING WORKLOADS +ADMITTED WORKLOADS", table)
        test.match(r"cluster-queue +BestEffortFIFO", table)
        table = test.kubectl("get", "lq", namespace="default").stdout
        test.match(r"user-queue +cluster-queue", table)
        text = test.kubectl("describe", "clusterqueue", "cluster-queue").stdout
        test.match(r"Nominal Quota: +9Gi", text)
        text = test.kubectl("explain", "clusterqueue.spec.resourceGroups.flavors").stdout
        test.match("resources.*-required-", text)
        # By version 2, which is protobuf.
        for what, line in (("pods.spec.nodeName", "FIELD:    nodeName <string>"), ("clusterqueue.spec", "cohortName\t<string>")):
            test.match(line, test.kubectl("explain", what, "--output=plaintext-openapiv2").stdout)
    finally:
        test.kubectl("delete", "-f", str(setup), namespace=False)
    test.true(not test.exists(f"/apis/{KUEUE}/clusterqueues/cluster-queue"), "it is still there")


@case("a PodGroup is made, changed and deleted, and says what it waits for", needs=CUSTOM, each_kubectl=True)
def pod_groups(test):
    group = named("gang", "PodGroup", VOLCANO, spec={"minMember": 3, "minResources": {"cpu": 3}})
    test.kubectl("create", "-f", "-", stdin=group)
    table = test.kubectl("get", "pg").stdout
    test.match(r"NAME +STATUS +MINMEMBER +RUNNINGS +AGE\ngang +(Inqueue +)?3 ", table)
    group["spec"]["minMember"] = 2
    ran = test.kubectl("apply", "-f", "-", stdin=group)
    test.match("podgroup.scheduling.volcano.sh/gang configured", ran.stdout)
    path = test.path("podgroups", "gang", group=VOLCANO)
    spec = test.get(path)["spec"]
    test.equal(spec, {"minMember": 2, "minResources": {"cpu": 3}, "queue": "default"}, "spec")
    test.wait("its status follows", lambda: "needs 2 more" in waits_for(test, path))
    status = test.get(path)["status"]
    test.equal(status["phase"], "Inqueue", "phase")
    test.equal(status["conditions"][0]["reason"], "NotEnoughTasks", "reason")
    text = test.refused("patch", "podgroup", "gang", "--type=strategic", "-p", "{}")
    test.match("strategic|unknown format|UnsupportedMediaType", text)
    test.kubectl("delete", "podgroup", "gang")
    test.true(not test.exists(path), "it is still there")


def waits_for(test, path):
    conditions = test.get(path).get("status", {}).get("conditions", [{}])
    return conditions[0].get("message", "")


def told(test, pod):
    conditions = test.pod(pod).get("status", {}).get("conditions", [])
    return next((c.get("message", "") for c in conditions if c["type"] == "PodScheduled"), "")


@case("a gang waits until all of it fits, and starts as one", needs=CUSTOM, alone=True)
def gangs(test):
    node = test.unique("gang")
    test.make_node(node, cpu="1")
    path = test.path("podgroups", "train", group=VOLCANO)
    test.create(test.path("podgroups", group=VOLCANO), named("train", "PodGroup", VOLCANO, spec={"minMember": 3}))
    member = {"annotations": {"scheduling.k8s.io/group-name": "train"}, "cpu": "400m"}
    spec = objects.on(node) | {"schedulerName": "volcano"}
    for name in ("a", "b"):
        test.kubectl("create", "-f", "-", stdin=objects.pod(name, **member, **spec))
    namespace = test.namespace
    test.wait("b is told", lambda: told(test, "b") == f"PodGroup {namespace}/train lacks members: it needs 3 more, and 2 wait; make more, or lower its spec.minMember.")
    test.kubectl("create", "-f", "-", stdin=objects.pod("c", **member, **spec))
    change = "lower its minMember, have its pods request less, or add nodes"
    short = f"PodGroup {namespace}/train needs 3 places at once, and 2 were found; even empty nodes would hold 2, so {change}: 0/"
    test.wait("a is told", lambda: told(test, "a").startswith(short))
    test.stays("none has a node", lambda: not any(test.node_of(name) for name in "abc"))
    test.wait("its group is told", lambda: "NotEnoughResources" in str(test.get(path)["status"]))
    for what in ("pod/a", "podgroup/train"):
        text = test.berth("why", what, "-n", namespace, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options()).stdout
        test.match(f"PodGroup {namespace}/train needs 3 places at once", text)
    test.match("needs 3 members at once; it has 3 waiting", text)
    more = test.unique("more")
    test.make_node(more, cpu="1", labels={"e2e": node})
    for name in "abc":
        test.wait(f"{name} has a node", lambda name=name: test.node_of(name))
    ran = lambda: {key: test.get(path)["status"].get(key) for key in ("phase", "running")}
    test.wait("it runs", lambda: ran() == {"phase": "Running", "running": 3})


@case("Volcano's queues: missing, closed, and no more than their capability", needs=CUSTOM, alone=True)
def group_queues(test):
    node, queue, namespace = test.unique("queued"), test.unique("q"), test.namespace
    test.make_node(node, cpu="4")
    groups, queues = test.path("podgroups", group=VOLCANO), f"/apis/{VOLCANO}/queues"
    test.create(queues, named(queue, "Queue", VOLCANO, spec={"capability": {"cpu": "1"}}))
    spec = {"minMember": 2, "queue": queue, "minResources": {"cpu": "1200m"}}
    test.create(groups, named("train", "PodGroup", VOLCANO, spec=spec))
    path = test.path("podgroups", "train", group=VOLCANO)
    member = {"annotations": {"scheduling.k8s.io/group-name": "train"}, "cpu": "400m"}
    spec = objects.on(node) | {"schedulerName": "volcano"}
    for name in ("a", "b"):
        test.kubectl("create", "-f", "-", stdin=objects.pod(name, **member, **spec))
    short = "queue resource quota insufficient: insufficient cpu: PodGroup "
    never = f"{short}{namespace}/train needs 200m more than queue {queue} has left, and more than it could ever have: raise"
    test.wait("its group is told", lambda: waits_for(test, path).startswith(never))
    test.equal(test.get(path)["status"]["phase"], "Pending", "phase")
    test.wait("b is told", lambda: told(test, "b").startswith(never))
    text = test.berth("why", "pod/a", "-n", namespace, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options()).stdout
    test.match("insufficient cpu", text)
    test.kubectl("patch", "podgroup", "train", "--type=merge", "-p", '{"spec":{"minResources":{"cpu":"800m"}}}')
    for name in "ab":
        test.wait(f"{name} has a node", lambda name=name: test.node_of(name))
    test.kubectl("create", "-f", "-", stdin=objects.pod("c", **member, **spec))
    test.wait("c is told", lambda: told(test, "c") == f"{short}{namespace}/train needs 200m more than queue {queue} has left.")

    test.merge(f"{queues}/{queue}/status", {"status": {"state": "Closed"}})
    if test.cluster.tier in OURS:  # Elsewhere that takes a webhook.
        test.refused("create", "-f", "-", stdin=named("late", "PodGroup", VOLCANO, spec={"minMember": 1, "queue": queue}))
    test.kubectl("patch", "queue", queue, "--type=merge", "-p", '{"spec":{"capability":{"cpu":"2"}}}')
    closed = f"PodGroup {namespace}/train waits: queue {queue} is closed, or one above it: open it, or name another in spec.queue."
    test.wait("c is told again", lambda: told(test, "c") == closed)
    test.wait("its group is told again", lambda: waits_for(test, path) == closed)
    state = lambda *keys: tuple(test.get(f"{queues}/{queue}")["status"].get(key) for key in keys)
    test.wait("its queue says that it closes", lambda: state("state", "running", "pending") == ("Closing", 1, 0))
    test.true(all(test.node_of(name) for name in "ab"), "who runs goes on")
    test.merge(f"{queues}/{queue}/status", {"status": {"state": "Open"}})
    test.wait("c has a node", lambda: test.node_of("c"))

    if test.cluster.tier in OURS:
        test.refused("delete", "queue", queue)
    test.kubectl("delete", "pod", "a", "b", "c", "--grace-period=0", "--force")
    test.wait("nothing runs in it", lambda: not test.get(path)["status"].get("running"))
    test.kubectl("delete", "queue", queue)
    test.kubectl("create", "-f", "-", stdin=objects.pod("d", **member, **spec))
    missing = f"PodGroup {namespace}/train waits: queue {queue} does not exist: create it, or name another in spec.queue."
    test.wait("d is told", lambda: told(test, "d") == missing)
    test.kubectl("create", "-f", "-", stdin=objects.pod("other", cpu="100m", **objects.on(node)))
    test.wait("the rest of the cluster goes on", lambda: test.node_of("other"))


@case(
    "pods of Volcano's scheduler that name no group get one, which lives as long as its owner wants pods",
    needs=CUSTOM,
    alone=True,
)
def made_groups(test):
    node = test.unique("made")
    test.make_node(node, cpu="1")
    spec = objects.on(node) | {"schedulerName": "volcano"}
    web = objects.deployment("web", replicas=2, cpu="600m", pod_spec=spec)
    web["metadata"]["annotations"] = {"scheduling.volcano.sh/group-min-member": "2"}
    test.kubectl("create", "-f", "-", stdin=web)

    def group():
        sets = test.get(test.path("replicasets", group="apps/v1"))["items"]
        path = test.path("podgroups", f"podgroup-{sets[0]['metadata']['uid']}", group=VOLCANO) if sets else ""
        return test.get(path) if path and test.exists(path) else None

    def named_by_all():
        made = group()
        key = "scheduling.k8s.io/group-name"
        names = [pod["metadata"].get("annotations", {}).get(key) for pod in test.pods("app=web")]
        return made and names == [made["metadata"]["name"]] * 2

    def on_nodes():
        return sum("nodeName" in pod["spec"] for pod in test.pods("app=web"))

    test.wait("both pods name their group", named_by_all)
    made = group()
    test.equal(made["spec"]["minMember"], 2, "minMember")
    test.equal(made["spec"]["minResources"], {"cpu": "1200m", "pods": "2"}, "minResources")
    short = f"PodGroup {test.namespace}/{made['metadata']['name']} needs 2 places at once, and 1 were found"
    test.wait("one is told", lambda: told(test, test.pods("app=web")[0]["metadata"]["name"]).startswith(short))
    test.stays("none has a node", lambda: on_nodes() == 0)
    test.make_node(test.unique("more"), cpu="1", labels={"e2e": node})
    test.wait("both have nodes", lambda: on_nodes() == 2)
    # P05: it comes back when somebody takes it away.
    test.kubectl("delete", "podgroup", made["metadata"]["name"])
    test.wait("it is made again", lambda: group() and group()["metadata"]["uid"] != made["metadata"]["uid"])
    test.wait("it runs", lambda: group()["status"]["phase"] == "Running")
    # P01: off, with pods that take their time to go, and on again.
    again = group()["metadata"]["uid"]
    old = {pod["metadata"]["name"] for pod in test.pods("app=web")}
    test.kubectl("scale", "deployment/web", "--replicas=0")
    going = lambda: ["deletionTimestamp" in pod["metadata"] for pod in test.pods("app=web")]
    test.wait("both are going", lambda: going() == [True, True])
    test.stays("its group is there", lambda: group()["metadata"]["uid"] == again)
    test.kubectl("scale", "deployment/web", "--replicas=2")
    test.kubectl("delete", "pods", "--grace-period=0", "--force", *sorted(old))
    test.wait("new ones name it", named_by_all)
    test.wait("new ones have nodes", lambda: on_nodes() == 2)
    test.equal(group()["metadata"]["uid"], again, "uid of the group")
    test.kubectl("scale", "deployment/web", "--replicas=0")
    test.wait("the new ones are going", lambda: going() == [True, True])
    test.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")
    test.wait("the group is gone", lambda: group() is None)
    # One of a pod without a controller goes with it.
    test.kubectl("create", "-f", "-", stdin=objects.pod("alone", **spec))
    path = test.path("podgroups", f"podgroup-{test.pod('alone')['metadata']['uid']}", group=VOLCANO)
    test.placed("alone")
    test.true(test.exists(path), "it has no group")
    test.kubectl("delete", "pod", "alone", "--grace-period=0", "--force")
    test.wait("its group is gone", lambda: not test.exists(path))


OLDER = "kueue.x-k8s.io/v1beta1"


@case("Kueue's older version is of the same objects: applied, read, changed and watched in both", on=OURS, needs=CUSTOM, each_kubectl=True)
def older_version(test):
    name = test.unique("older")
    quotas = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1}]}
    spec = {
        "cohort": "all",
        "namespaceSelector": {},
        "admissionChecks": ["check"],
        "flavorFungibility": {"whenCanBorrow": "Borrow"},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quotas]}],
    }
    queue = named(name, "ClusterQueue", OLDER, spec=spec)
    ran = test.kubectl("apply", "-f", "-", stdin=queue, namespace=False)
    test.match(f"clusterqueue.kueue.x-k8s.io/{name} created", ran.stdout)
    test.match("This version is deprecated. Use v1beta2 instead.", ran.stderr)
    paths = [f"/apis/{version}/clusterqueues/{name}" for version in (OLDER, KUEUE)]
    # The scheduler writes its status meanwhile.
    parts = lambda path: [test.get(path)["metadata"][part] for part in ("uid", "resourceVersion", "generation")]
    test.wait("both are of one object", lambda: parts(paths[0]) == parts(paths[1]))
    newer = test.get(paths[1])
    test.equal(newer["spec"]["cohortName"], "all", "cohortName")
    test.equal(newer["spec"]["admissionChecksStrategy"], {"admissionChecks": [{"name": "check"}]}, "checks")
    test.equal(newer["spec"]["flavorFungibility"]["whenCanBorrow"], "MayStopSearch", "fungibility")
    ran = test.kubectl("apply", "-f", "-", stdin=queue, namespace=False)
    generation = test.get(paths[1])["metadata"]["generation"]
    test.equal(generation, newer["metadata"]["generation"], "generation after it was applied again")
    policy = {"migration": {"mode": "RetainFirstAdmission"}}
    patch = json.dumps({"spec": {"concurrentAdmissionPolicy": policy}})
    test.kubectl("patch", "clusterqueue", name, "--type=merge", "-p", patch, namespace=False)
    queue["spec"]["cohort"] = "few"
    test.kubectl("apply", "-f", "-", stdin=queue, namespace=False)
    newer = test.get(paths[1])
    test.equal(newer["spec"]["cohortName"], "few", "cohortName")
    test.equal(newer["spec"]["concurrentAdmissionPolicy"], policy, "what the older version has no words for")
    table = test.kubectl("get", f"clusterqueues.v1beta1.kueue.x-k8s.io/{name}", namespace=False).stdout
    test.match(rf"NAME +COHORT +PENDING WORKLOADS\n{name} +few", table)
    test.kubectl("delete", f"clusterqueues.v1beta1.kueue.x-k8s.io/{name}", namespace=False)
    test.true(not test.exists(paths[1]), "it is still there")
    text = test.refused("create", "-f", "-", stdin=named(name, "ClusterQueue", OLDER, spec={"cohortName": "all"}), namespace=False)
    test.match('unknown field "spec.cohortName"', text)


@case("what a definition refuses, kubectl says", needs=CUSTOM, each_kubectl=True)
def refusals(test):
    bad = named("bad", "PodGroup", VOLCANO, spec={"minMember": "x", "foo": 1})
    text = test.refused("create", "-f", "-", stdin=bad)
    test.match('unknown field "spec.foo"', text)
    text = test.refused("create", "--validate=false", "-f", "-", stdin=bad)
    test.match('spec.minMember in body must be of type integer: "string"', text)
    queue = named("bad", "ClusterQueue", KUEUE)
    queue["spec"] = {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}
    text = test.refused("create", "-f", "-", stdin=queue)
    test.match("reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never", text)


@case(
    "namespace deletion and the garbage collector take objects of these kinds",
    needs=CUSTOM,
    seconds=10,
)
def collected(test):
    namespace = test.unique("custom")
    test.make_namespace(namespace)
    base = f"/apis/{VOLCANO}/namespaces/{namespace}/podgroups"
    owner = test.create(base, named("owner", "PodGroup", VOLCANO))
    reference = {"apiVersion": VOLCANO, "kind": "PodGroup", "name": "owner"}
    owned = named("owned", "PodGroup", VOLCANO)
    owned["metadata"]["ownerReferences"] = [reference | {"uid": owner["metadata"]["uid"]}]
    test.create(base, owned)
    test.http("DELETE", f"{base}/owner", status=200)
    test.wait("the owned one goes", lambda: not test.exists(f"{base}/owned"))
    held = named("held", "PodGroup", VOLCANO)
    test.create(base, held)
    test.kubectl("delete", "namespace", namespace)
    test.true(not test.exists(f"/api/v1/namespaces/{namespace}"), "the namespace is still there")


@case("a namespace that ends names the finalizers of users' objects while they hold it", on=("embedded",), needs=("controllers",))
def ending_with_users_objects(test):
    group = f"{test.namespace}.e2e.test"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "helds", "singular": "held", "kind": "Held"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
    }
    test.create(definitions, named(f"helds.{group}", "CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=spec))
    test.cleanups.append(lambda: test.http("DELETE", f"{definitions}/helds.{group}"))
    name = test.unique("ends")
    test.make_namespace(name)
    base = f"/apis/{group}/v1/namespaces/{name}/helds"
    test.wait("it is served", lambda: test.http("GET", base).status == 200)
    for held, finalizers in (("a", ["x.test/1", "x.test/2"]), ("b", ["x.test/1"]), ("c", [])):
        document = named(held, "Held", f"{group}/v1")
        document["metadata"]["finalizers"] = finalizers
        test.create(base, document)
    test.kubectl("delete", "namespace", name, "--wait=false", namespace=False)
    told = lambda kind: objects.condition(test.get(f"/api/v1/namespaces/{name}"), kind).get("message")
    holding = "Some content in the namespace has finalizers remaining: "
    both = f"{holding}x.test/1 in 2 resource instances, x.test/2 in 1 resource instances"
    test.wait("it says who holds it", lambda: told("NamespaceFinalizersRemaining") == both)
    test.equal(told("NamespaceContentRemaining"), f"Some resources are remaining: helds.{group} has 2 resource instances", "content")
    test.merge(f"{base}/b", {"metadata": {"finalizers": None}})
    test.merge(f"{base}/a", {"metadata": {"finalizers": ["x.test/2"]}})
    test.wait("it says who still does", lambda: told("NamespaceFinalizersRemaining") == f"{holding}x.test/2 in 1 resource instances")
    test.merge(f"{base}/a", {"metadata": {"finalizers": None}})
    test.wait("it is gone", lambda: not test.exists(f"/api/v1/namespaces/{name}"))


@case("what an update leaves as it was is let through, though the definition got tighter", needs=("controllers",), seconds=5)
def ratcheted(test):
    group = f"{test.namespace}.e2e.test"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    value = {"type": "string"}
    item = {"type": "object", "required": ["k"], "properties": {"k": value, "v": value}}
    items = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item}
    spec = {"type": "object", "properties": {"a": value, "b": value, "l": items}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"a": value, "b": value}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
    names = {"plural": "rats", "singular": "rat", "kind": "Rat"}
    made = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = named(f"rats.{group}", "CustomResourceDefinition", "apiextensions.k8s.io/v1", spec=made)
    test.create(definitions, definition)
    test.cleanups.append(lambda: test.http("DELETE", f"{definitions}/rats.{group}"))
    name = test.unique("ratchet")
    test.make_namespace(name)
    base = f"/apis/{group}/v1/namespaces/{name}/rats"
    test.wait("it is served", lambda: test.http("GET", base).status == 200)
    rat = named("a", "Rat", f"{group}/v1", spec={"a": "long", "b": "1", "l": [{"k": "1", "v": "long"}, {"k": "2", "v": "x"}]})
    rat["metadata"]["finalizers"] = ["x.test/1"]
    test.create(base, rat)
    test.merge(f"{base}/a/status", {"status": {"a": "long"}})
    value["maxLength"] = 3
    spec["properties"]["b"] = {"type": "string"}
    spec["required"] = ["q"]
    test.merge(f"{definitions}/rats.{group}", {"spec": made})
    another = named("b", "Rat", f"{group}/v1", spec={"q": "1", "a": "long"})
    test.wait("it is tighter", lambda: test.http("POST", f"{base}?dryRun=All", another).status == 422)
    test.merge(f"{base}/a", {"metadata": {"labels": {"x": "y"}}})
    test.merge(f"{base}/a/status", {"status": {"b": "1"}})
    test.merge(f"{base}/a/status", {"status": {"a": "other"}}, status=422)
    test.merge(f"{base}/a", {"spec": {"b": "2"}}, status=422)
    schema["properties"]["spec"] = {**spec, "required": ["b"]}
    test.merge(f"{definitions}/rats.{group}", {"spec": made})
    test.wait("it is less tight", lambda: test.http("PATCH", f"{base}/a", {"spec": {"b": "2"}}, headers={"Content-Type": "application/merge-patch+json"}).status == 200)
    test.merge(f"{base}/a", {"spec": {"a": "other"}}, status=422)
    test.merge(f"{base}/a", {"spec": {"l": [{"k": "3", "v": "y"}, {"k": "1", "v": "long"}]}})
    test.merge(f"{base}/a", {"spec": {"l": [{"k": "4", "v": "long"}]}}, status=422)
    test.kubectl("delete", "namespace", name, "--wait=false", namespace=False)
    test.merge(f"{base}/a", {"metadata": {"finalizers": None}})
    test.wait("the namespace is gone", lambda: not test.exists(f"/api/v1/namespaces/{name}"))


@case("Volcano's and Kueue's definitions install, and manifests of all their kinds apply", on=OURS, alone=True, seconds=30)
def upstream_definitions(test):
    paths = definitions("*/*.yaml")
    natively = set()
    try:
        for path in paths:
            ran = test.kubectl("create", "-f", str(path), namespace=False)
            name = re.search(r"customresourcedefinition.apiextensions.k8s.io/(\S+) created", ran.stdout).group(1)
            if "served by berth itself" in ran.stderr:
                natively.add(name)
            test.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=30s", namespace=False)
        test.true("workloads.kueue.x-k8s.io" in natively and "podgroups.scheduling.volcano.sh" in natively, f"natively {natively}")
        test.true("jobs.batch.volcano.sh" not in natively, f"natively {natively}")
        count = 0
        for path in manifests("*/*/*.yaml") + manifests("volcano/*.yaml"):
            for version, kind, text in documents(path):
                if not re.match(r"(batch|flow|bus|scheduling|topology)\.volcano\.sh/|kueue\.x-k8s\.io/", version):
                    continue
                if "webhook-deny" in path.name or "kueue.x-k8s.io/v1alpha" in version:
                    continue
                applied(test, version, kind, text)
                count += 1
        test.true(count >= 40, f"{count} documents")
    finally:
        for path in paths:
            test.kubectl("delete", "-f", str(path), "--ignore-not-found", "--wait=false", namespace=False)
    test.true(test.exists(f"/apis/{KUEUE}"), "kinds that are served natively stay")
