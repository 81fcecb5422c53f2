"""What the scheduler does with pods, and what it says of those that wait."""

import json
import re

import objects
from harness import RUN, TOLERATION, case

SCHEDULER = ("scheduler",)
GATED = "Scheduling is blocked due to non-empty scheduling gates"


def affinity(key, operator, *values, weight=None):
    expression = {"key": key, "operator": operator} | ({"values": list(values)} if values else {})
    term = {"matchExpressions": [expression]}
    if weight is not None:
        rule = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "preference": term}
            ]
        }
    else:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": rule}


def events_of(test, pod, reason):
    query = f"?fieldSelector=involvedObject.name%3D{pod},reason%3D{reason}"
    return test.get(test.path("events") + query)["items"]


@case(
    "a pod that fits nowhere says why as Kubernetes words it",
    needs=RUN,
    alone=True,
    each_kubectl=True,
)
def pending_words(test):
    node = test.unique("small")
    test.make_node(node, cpu="1")
    count = len(test.get("/api/v1/nodes")["items"])
    spec = objects.pod("big", cpu="100000", tolerations=[TOLERATION])
    test.kubectl("create", "-f", "-", stdin=spec)
    evictions = (
        rf" no new claims to deallocate, preemption: 0/{count} nodes are available: "
        rf"{count} Preemption is not helpful for scheduling\.$"
    )
    message = rf"^0/{count} nodes are available: {count} Insufficient cpu\." + evictions
    told = test.unschedulable("big", message)
    test.equal(told["reason"], "Unschedulable", "reason of the condition")
    test.kubectl("create", "-f", "-", stdin=objects.pod("choosy", cpu="2", **objects.on(node)))
    rest = count - 1
    test.unschedulable(
        "choosy",
        rf"^0/{count} nodes are available: 1 Insufficient cpu, "
        rf"{rest} node\(s\) didn't match Pod's node affinity/selector\." + evictions,
    )
    test.kubectl("create", "-f", "-", stdin=objects.pod("intolerant", nodeSelector={"e2e": node}))
    test.unschedulable(
        "intolerant",
        rf"^0/{count} nodes are available: 1 node\(s\) had untolerated taint\(s\), "
        rf"{rest} node\(s\) didn't match Pod's node affinity/selector\." + evictions,
    )
    told = lambda: [e for e in events_of(test, "big", "FailedScheduling") if re.search(message, e["message"])]
    event = test.wait("an event says the same", told)[0]
    test.equal(event["type"], "Warning", "type of the event")
    test.equal(event["reportingComponent"], "default-scheduler", "reporting component")
    test.equal(event.get("action"), "Scheduling", "action")
    text = test.kubectl("describe", "pod", "big").stdout
    test.match(r"(?m)^  PodScheduled +False *$", text)
    test.match(
        rf"Warning +FailedScheduling .* 0/{count} nodes are available: {count} Insufficient cpu",
        text,
    )


@case(
    "a pod that waits is placed when a node comes, with an event",
    needs=SCHEDULER,
    each_kubectl=True,
)
def capacity_comes(test):
    node = test.unique("new")
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", cpu="2", **objects.on(node)))
    test.unschedulable("p", "nodes (are )?available")
    test.make_node(node)
    test.placed("p", node)
    test.true(objects.is_true(test.pod("p"), "PodScheduled"), "PodScheduled is not True")
    event = test.wait("there is an event", lambda: events_of(test, "p", "Scheduled"))[0]
    test.equal(event["type"], "Normal", "type")
    test.equal(event["message"], f"Successfully assigned {test.namespace}/p to {node}", "message")
    test.equal(event["reportingComponent"], "default-scheduler", "reporting component")
    test.equal(event["involvedObject"]["uid"], test.pod("p")["metadata"]["uid"], "uid")


@case("what is put into the capacity of a simulated node is for pods, until it is taken out", needs=RUN)
def capacity_is_given(test):
    name = "node-0000"
    thing = f"e2e.test/{test.unique('thing')}"

    def give(amount):
        test.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": {"capacity": {thing: amount}}}))

    def allocatable():
        return test.get(f"/api/v1/nodes/{name}")["status"]["allocatable"].get(thing)

    test.kubectl("create", "-f", "-", stdin=objects.pod("p", extended={thing: "2"}))
    test.unschedulable("p", f"Insufficient {re.escape(thing)}")
    give("3")
    test.placed("p", name)
    test.wait("p runs", lambda: test.pod("p")["status"]["phase"] == "Running")
    test.equal(allocatable(), "3", "allocatable")
    give(None)
    test.wait("it is gone", lambda: allocatable() is None)


@case("a pod waits for a label of a node, and gets the node", needs=SCHEDULER)
def label_comes(test):
    node = test.unique("labelled")
    test.make_node(node)
    wanted = test.unique("wanted")
    spec = {"nodeSelector": {wanted: "yes"}, "tolerations": [TOLERATION]}
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", **spec))
    test.unschedulable("p", r"node\(s\) didn't match Pod's node affinity/selector")
    test.kubectl("label", "node", node, f"{wanted}=yes")
    test.placed("p", node)


@case("nodes and pods as large as the API server takes them are placed as any others", needs=SCHEDULER, seconds=5)
def large_objects(test):
    node = test.unique("large")
    test.make_node(node, labels={f"label-{i:05}": "x" * 60 for i in range(8_000)})
    for name, cpu in (("fits", "1"), ("waits", "100")):
        document = objects.pod(name, cpu=cpu, **objects.on(node))
        document["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * 1_200_000}]
        test.create(test.path("pods"), document)
    labelled = objects.pod("labelled", labels={f"label-{i:05}": "x" * 60 for i in range(8_000)}, **objects.on(node))
    test.create(test.path("pods"), labelled)
    test.placed("fits", node)
    test.placed("labelled", node)
    test.unschedulable("waits", "Insufficient cpu")
    larger = test.unique("larger")
    test.make_node(larger, cpu="200", labels={"e2e": node})
    test.placed("waits", larger)


@case("a host port is one pod's of a node, until that is gone", needs=SCHEDULER)
def host_port(test):
    node = test.unique("ports")
    test.make_node(node)

    def with_port(name, port, protocol="TCP"):
        pod = objects.pod(name, **objects.on(node))
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": port, "protocol": protocol}]
        test.kubectl("create", "-f", "-", stdin=pod)

    with_port("first", 8080)
    test.placed("first", node)
    with_port("second", 8080)
    test.unschedulable("second", r"node\(s\) didn't have free ports for the requested pod ports")
    with_port("udp", 8080, "UDP")
    test.placed("udp", node)
    test.kubectl("delete", "pod", "first", "--force", "--grace-period=0")
    test.placed("second", node)


@case("a taint keeps pods away that do not tolerate it, until it is lifted", needs=SCHEDULER)
def taint(test):
    node = test.unique("tainted")
    test.make_node(node, taints=[{"key": "team", "value": "a", "effect": "NoSchedule"}])
    test.kubectl("create", "-f", "-", stdin=objects.pod("stranger", **objects.on(node)))
    test.unschedulable("stranger", r"node\(s\) had untolerated taint\(s\)")
    member = objects.on(node)
    member["tolerations"] = [TOLERATION, {"key": "team", "value": "a", "effect": "NoSchedule"}]
    test.kubectl("create", "-f", "-", stdin=objects.pod("member", **member))
    test.placed("member", node)
    test.true(test.node_of("stranger") is None, "the stranger was placed")
    test.kubectl("taint", "node", node, "team-")
    test.placed("stranger", node)


@case(
    "a cordoned node gets no pod until it is uncordoned",
    needs=("scheduler", "controllers"),
    each_kubectl=True,
)
def cordon(test):
    node = test.unique("cordoned")
    test.make_node(node)
    test.kubectl("cordon", node)
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", **objects.on(node)))
    test.unschedulable("p", r"\d+ node\(s\) were unschedulable|untolerated taint")
    test.kubectl("uncordon", node)
    test.placed("p", node)


@case("required node affinity chooses by In, NotIn, Exists, Gt and Lt", needs=SCHEDULER)
def required_affinity(test):
    low, high = test.unique("low"), test.unique("high")
    key = test.unique("rank")
    test.make_node(low, labels={key: "5"})
    test.make_node(high, labels={key: "50", test.unique("gold"): "yes"})
    for name, rule, node in (
        ("in", affinity(key, "In", "5", "6"), low),
        ("gt", affinity(key, "Gt", "10"), high),
        ("lt", affinity(key, "Lt", "10"), low),
        ("exists", affinity(test.unique("gold"), "Exists"), high),
    ):
        spec = {"affinity": rule, "tolerations": [TOLERATION]}
        test.create(test.path("pods"), objects.pod(name, **spec))
        test.placed(name, node)
    rule = affinity(key, "NotIn", "5")
    spec = {"affinity": rule, "nodeSelector": {"e2e": low}, "tolerations": [TOLERATION]}
    test.create(test.path("pods"), objects.pod("notin", **spec))
    test.unschedulable("notin", "didn't match Pod's node affinity/selector")


@case("preferred node affinity decides between nodes that fit", needs=SCHEDULER)
def preferred_affinity(test):
    group = test.unique("pair")
    names = [f"{group}-a", f"{group}-b"]
    for name in names:
        test.make_node(name, labels={"pair": group, "which": name[-1]})
    test.take_pods(*names)
    for which in ("b", "a"):
        spec = {
            "nodeSelector": {"pair": group},
            "tolerations": [TOLERATION],
            "affinity": affinity("which", "In", which, weight=100),
        }
        test.create(test.path("pods"), objects.pod(f"wants-{which}", **spec))
        test.placed(f"wants-{which}", f"{group}-{which}")


@case("pods spread over zones as their constraints ask, and wait where they can't", needs=SCHEDULER)
def topology_spread(test):
    group = test.unique("zones")
    key = f"e2e.berth.dev/{group}"
    test.make_node(f"{group}-a", cpu="8", labels={"row": group, key: "a"})
    test.make_node(f"{group}-b", cpu="1", labels={"row": group, key: "b"})
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    spec = {
        "nodeSelector": {"row": group},
        "tolerations": [TOLERATION],
        "topologySpreadConstraints": [constraint],
    }
    for i in range(4):
        test.create(test.path("pods"), objects.pod(f"p{i}", cpu="1", labels={"app": "web"}, **spec))

    def placed():
        return [p["spec"]["nodeName"] for p in test.pods() if p["spec"].get("nodeName")]

    # Zone b has room for one, so zone a may have two.
    test.wait("three are placed", lambda: len(placed()) == 3)
    test.stays("two in zone a", lambda: sorted(placed()) == [f"{group}-a"] * 2 + [f"{group}-b"])
    (waits,) = (p["metadata"]["name"] for p in test.pods() if not p["spec"].get("nodeName"))
    test.unschedulable(
        waits,
        r"^0/\d+ nodes are available: 1 Insufficient cpu, "
        r"1 node\(s\) didn't match pod topology spread constraints, "
        r"\d+ node\(s\) didn't match Pod's node affinity/selector\.",
    )
    # What leaves zone a makes room there, in the constraint's sense.
    (leaves, *_) = (
        p["metadata"]["name"] for p in test.pods() if p["spec"].get("nodeName") == f"{group}-a"
    )
    test.http("DELETE", test.path("pods", leaves), {"gracePeriodSeconds": 0}, status=200)
    test.wait("the fourth is placed", lambda: test.node_of(waits) == f"{group}-a")
    # Without the label a node is in no domain.
    test.create(
        test.path("pods"),
        objects.pod("lost", labels={"app": "web"}, **spec | {
            "topologySpreadConstraints": [constraint | {"topologyKey": f"{key}-other"}],
        }),
    )
    test.unschedulable("lost", r"2 node\(s\) didn't match pod topology spread constraints \(missing required label\)")


@case("pods are with those that they are to be with, and away from others, on both sides", needs=SCHEDULER)
def pod_affinity(test):
    group = test.unique("with")
    key = f"e2e.berth.dev/{group}"
    for zone in ("a", "b"):
        test.make_node(f"{group}-{zone}", cpu="8", labels={"row": group, key: zone})
    spec = {"nodeSelector": {"row": group}, "tolerations": [TOLERATION]}

    def term(app, **more):
        return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}} | more

    def pod(name, app, **affinity):
        required = {
            kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            for kind, terms in affinity.items()
        }
        test.create(test.path("pods"), objects.pod(name, labels={"app": app}, affinity=required, **spec))

    # The first of its series may go anywhere, the second goes where that is.
    pod("web0", "web", podAffinity=[term("web")], podAntiAffinity=[term("db")])
    test.wait("the first is placed", lambda: test.node_of("web0"))
    home = test.node_of("web0")
    (away,) = {f"{group}-a", f"{group}-b"} - {home}
    pod("web1", "web", podAffinity=[term("web")])
    test.placed("web1", home)
    # Who is there keeps it away.
    pod("db0", "db")
    test.placed("db0", away)
    pod("lonely", "x", podAffinity=[term("nobody")])
    test.unschedulable("lonely", r"2 node\(s\) didn't match pod affinity rules")
    pod("apart", "x", podAntiAffinity=[term("web"), term("db")])
    test.unschedulable("apart", r"2 node\(s\) didn't match pod anti-affinity rules")
    pod("web2", "web", podAntiAffinity=[term("db")])
    test.placed("web2", home)
    # Labels of namespaces select, too.
    name = test.namespace
    test.merge(f"/api/v1/namespaces/{name}", {"metadata": {"labels": {"team": group}}})
    of_team = {"namespaceSelector": {"matchLabels": {"team": group}}}
    pod("shy", "x", podAntiAffinity=[term("web", **of_team)])
    test.placed("shy", away)
    # What lifts the reason wakes who waits, wherever it happens.
    for leaves in ("web0", "web1", "web2"):
        test.http("DELETE", test.path("pods", leaves), {"gracePeriodSeconds": 0}, status=200)
    test.placed("apart", home)


@case("pods of a ReplicaSet spread over hosts and zones without asking for it", needs=RUN)
def default_spread(test):
    group = test.unique("even")
    # By what they have free, all would go to the first.
    for i, cpu in enumerate(("64", "4", "4")):
        name = f"{group}-{i}"
        labels = {"row": group, "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"{group}-{i % 2}"}
        test.make_node(name, cpu=cpu, labels=labels)
    template = {
        "metadata": {"labels": {"app": group}},
        "spec": objects.pod("x", cpu="100m", nodeSelector={"row": group}, tolerations=[TOLERATION])["spec"],
    }
    test.create(
        f"/apis/apps/v1/namespaces/{test.namespace}/replicasets",
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "web"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": group}}, "template": template},
        },
    )

    def nodes():
        return sorted(p["spec"].get("nodeName") or "" for p in test.pods())

    test.wait("one is on each node", lambda: nodes() == [f"{group}-{i}" for i in range(3)])


@case("pods spread over equal nodes, and none takes more than it has", needs=SCHEDULER, seconds=3)
def spread(test):
    group = test.unique("row")
    for i in range(3):
        test.make_node(f"{group}-{i}", cpu="2", labels={"row": group})
    spec = {"nodeSelector": {"row": group}, "tolerations": [TOLERATION]}
    for i in range(16):
        test.create(test.path("pods"), objects.pod(f"p{i:02d}", cpu="500m", **spec))

    def on_nodes():
        counts = {}
        for pod in test.pods():
            node = pod["spec"].get("nodeName")
            if node:
                counts[node] = counts.get(node, 0) + 1
        return counts

    test.wait("twelve are placed", lambda: sum(on_nodes().values()) == 12)
    test.stays("four on each node", lambda: sorted(on_nodes().values()) == [4, 4, 4])
    placed = [p["metadata"]["name"] for p in test.pods() if p["spec"].get("nodeName")]
    waiting = [p["metadata"]["name"] for p in test.pods() if not p["spec"].get("nodeName")]
    for name in placed[:2]:
        test.http("DELETE", test.path("pods", name), {"gracePeriodSeconds": 0}, status=200)
    test.wait("two more are placed", lambda: sum(map(bool, map(test.node_of, waiting))) == 2)
    test.stays("four on each node", lambda: sorted(on_nodes().values()) == [4, 4, 4])


@case("a node takes no more pods than it says", needs=SCHEDULER)
def pods_count(test):
    node = test.unique("narrow")
    test.make_node(node, pods="2")
    for name in ("a", "b"):
        test.create(test.path("pods"), objects.pod(name, **objects.on(node)))
        test.placed(name, node)
    test.create(test.path("pods"), objects.pod("c", **objects.on(node)))
    test.unschedulable("c", "1 Too many pods")
    test.http("DELETE", test.path("pods", "a"), {"gracePeriodSeconds": 0}, status=200)
    test.placed("c", node)


@case("a gated pod waits for its gates and is then placed", needs=SCHEDULER, each_kubectl=True)
def gates(test):
    node = test.unique("gate")
    test.make_node(node)
    gated = objects.pod(
        "p", **objects.on(node), schedulingGates=[{"name": "e2e.test/a"}, {"name": "e2e.test/b"}]
    )
    test.kubectl("create", "-f", "-", stdin=gated)
    told = test.wait("it says so", lambda: objects.condition(test.pod("p"), "PodScheduled"))
    test.equal((told["status"], told["reason"]), ("False", "SchedulingGated"), "condition")
    test.equal(told["message"], GATED, "message")
    test.match(r"\np +0/1 +SchedulingGated +0 ", test.kubectl("get", "pods").stdout)
    one = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    test.kubectl("patch", "pod", "p", "--type=json", "-p", json.dumps(one))
    test.stays("it waits for the second", lambda: test.node_of("p") is None)
    text = test.refused(
        "patch", "pod", "p", "-p", '{"spec":{"schedulingGates":[{"name":"e2e.test/c"}]}}'
    )
    test.match("only deletion is allowed|may not be|Forbidden", text)
    test.kubectl("patch", "pod", "p", "--type=json", "-p", json.dumps(one))
    test.placed("p", node)


@case("the higher priority is served first", needs=SCHEDULER)
def priority(test):
    high, low = test.unique("high"), test.unique("low")
    for name, value in ((high, 1000), (low, 10)):
        test.make_priority_class(name, value)
    node = test.unique("contended")
    for name, priority_class in (("low", low), ("high", high)):
        spec = objects.on(node) | {"priorityClassName": priority_class}
        made = test.create(test.path("pods"), objects.pod(name, cpu="3", **spec))
        test.equal(made["spec"]["priority"], 1000 if name == "high" else 10, f"priority of {name}")
        test.unschedulable(name, "nodes (are )?available")
    test.make_node(node, cpu="4")
    test.placed("high", node)
    test.unschedulable("low", "1 Insufficient cpu")
    test.stays("the low one waits", lambda: test.node_of("low") is None)


@case("shares of a GPU go to devices, which the pod is told", needs=SCHEDULER)
def gpu(test):
    node = test.unique("gpu")
    labels = {"berth.dev/gpu-model": "V100"}
    test.make_node(node, cpu="64", labels=labels, extra={"berth.dev/gpu-milli": "2000"})

    def ask(name, milli):
        extended = {"berth.dev/gpu-milli": str(milli)}
        test.create(test.path("pods"), objects.pod(name, extended=extended, **objects.on(node)))

    def device(name):
        return test.pod(name)["metadata"].get("annotations", {}).get("berth.dev/gpu-index")

    for name in ("a", "b"):
        ask(name, 700)
        test.placed(name, node)
    test.equal(sorted([device("a"), device("b")]), ["0", "1"], "devices of the first two")
    ask("c", 300)
    test.placed("c", node)
    test.true(device("c") in ("0", "1"), f"device of c: {device('c')}")
    # 300 are free on one device and none on the other: 300 would fit, 400 do not.
    ask("d", 400)
    test.unschedulable("d", "nodes are available")
    test.http("DELETE", test.path("pods", "a"), {"gracePeriodSeconds": 0}, status=200)
    test.placed("d", node)


@case(
    "pods of other schedulers are left alone, those with a node name are counted", needs=SCHEDULER
)
def other_schedulers(test):
    node = test.unique("shared")
    test.make_node(node, cpu="4")
    test.create(test.path("pods"), objects.pod("other", schedulerName="other", **objects.on(node)))
    test.create(test.path("pods"), objects.pod("direct", cpu="3", nodeName=node))
    test.create(test.path("pods"), objects.pod("ours", cpu="2", **objects.on(node)))
    test.unschedulable("ours", "1 Insufficient cpu")
    test.true(test.node_of("other") is None, "the other scheduler's pod was placed")
    test.true(not objects.condition(test.pod("other"), "PodScheduled"), "its condition was written")


@case("a node refuses what does not fit it", needs=("nodes", "controllers"))
def out_of_cpu(test):
    node = next(
        n["metadata"]["name"]
        for n in test.get("/api/v1/nodes")["items"]
        if n["status"].get("addresses")
    )
    test.create(test.path("pods"), objects.pod("p", cpu="100000", nodeName=node))
    test.wait("it failed", lambda: test.pod("p")["status"]["phase"] == "Failed")
    test.equal(test.pod("p")["status"]["reason"], "OutOfcpu", "reason")
    test.match(r"\np +0/1 +OutOfcpu +0 ", test.kubectl("get", "pods").stdout)


@case(
    "berth why tells what a pending pod waits for and why a placed one is where it is",
    needs=SCHEDULER,
)
def why(test):
    node = test.unique("asked")
    test.make_node(node, cpu="1")
    test.create(test.path("pods"), objects.pod("p", cpu="3", **objects.on(node)))
    test.unschedulable("p", "1 Insufficient cpu")
    options = [
        "-n",
        test.namespace,
        f"--kubeconfig={test.cluster.kubeconfig}",
        *test.cluster.why_options(),
    ]
    text = test.berth("why", "pod/p", *options).stdout
    test.match("(?i)pending", text)
    test.match("1 Insufficient cpu|Insufficient cpu", text)
    if "nodes" not in test.cluster.missing():
        test.match("didn't match Pod's node affinity/selector", text)
    test.match("2 cpu|3 cpu|a node with more cpu", text, "what would unblock it")
    test.make_node(test.unique("second"), cpu="4", labels={"e2e": node})
    placed = test.placed("p")
    text = test.wait(
        "it is told as placed",
        lambda: (lambda out: placed in out and out)(test.berth("why", "pod/p", *options).stdout),
    )
    ran = test.berth("why", "pod/nosuch", *options, status=1)
    test.match("nosuch", ran.stderr)
    answer = json.loads(test.berth("why", "p", "--json", *options).stdout)
    test.equal(answer["node"], placed, "node in JSON")


@case(
    "of two hundred pods all that fit are placed, and the rest when there is room",
    needs=SCHEDULER,
    seconds=5,
)
def burst(test):
    group = test.unique("farm")
    spec = {"nodeSelector": {"row": group}, "tolerations": [TOLERATION]}
    total = 200
    for i in range(total):
        test.create(test.path("pods"), objects.pod(f"p{i:03d}", cpu="100m", **spec))
    for i in range(4):
        test.make_node(f"{group}-{i}", cpu="4", labels={"row": group})

    def count():
        return sum(1 for pod in test.pods() if pod["spec"].get("nodeName"))

    test.wait("four nodes with room for 40 each are full", lambda: count() == 160)
    test.make_node(f"{group}-4", cpu="4", labels={"row": group})
    test.wait("all are placed", lambda: count() == total)
    nodes = [pod["spec"]["nodeName"] for pod in test.pods()]
    test.equal(sorted(nodes.count(n) for n in set(nodes)), [40] * 5, "pods by node")


@case("a pod that gets its node gets the node's zone and region")
def topology_labels(test):
    node = test.unique("zoned")
    topology = {"topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1"}
    test.make_node(node, labels=topology)
    pod = objects.pod("bound")
    pod["metadata"]["labels"] = {"a": "b", "topology.kubernetes.io/zone": "own"}
    pod["spec"]["schedulerName"] = "nobody"
    test.create(test.path("pods"), pod)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "bound"}, "target": target}
    test.create(test.path("pods", "bound") + "/binding", binding)
    test.equal(test.pod("bound")["metadata"]["labels"], {"a": "b"} | topology, "labels of a pod that was bound")
    placed = objects.pod("placed")
    placed["spec"]["nodeName"] = node
    made = test.create(test.path("pods"), placed)
    labels = made["metadata"]["labels"]
    test.equal({name: labels.get(name) for name in topology}, topology, "labels of a pod with a node")
    for name in ("bound", "placed"):
        test.http("DELETE", test.path("pods", name) + "?gracePeriodSeconds=0", status=200)
