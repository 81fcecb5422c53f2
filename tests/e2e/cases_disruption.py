"""Budgets of pods, evictions that they allow or refuse, and the priority that classes give."""

import concurrent.futures
import pathlib
import tempfile

import cases_owners
import objects
import preemption_story
from clusters import BerthUp
from harness import RUN, TOLERATION, Connection, case

VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def budget(name, **spec):
    labels = spec.pop("labels", {"app": "guarded"})
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}} | spec,
    }


def budgets(test, name=""):
    return test.path("poddisruptionbudgets", name, group="policy/v1")


def evict(test, pod, status, **options):
    """Asks for an eviction; returns the message of the cause, if there is one."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    if options:
        body["deleteOptions"] = options
    answer = test.http("POST", test.path("pods", f"{pod}/eviction"), body, status=status).json()
    if status == 429:
        test.equal(answer["message"], VIOLATES, "message")
        cause = answer["details"]["causes"][0]
        test.equal(cause["reason"], "DisruptionBudget", "reason of the cause")
        return cause["message"]
    return answer.get("message", "")


def counted(test, name, **counts):
    """Waits until the budget's status has these counts and is of its last generation."""

    def told():
        found = test.get(budgets(test, name))
        status = found["status"]
        current = status.get("observedGeneration", 0) == found["metadata"]["generation"]
        return current and all(status[key] == value for key, value in counts.items()) and found

    return test.wait(f"{name} has {counts}", told)


def run_by_hand(test, node, *names):
    """Ready pods on a node without a kubelet: what deletes them only marks them."""
    for name in names:
        spec = objects.pod(
            name, labels={"app": "guarded"}, nodeName=node, tolerations=[TOLERATION]
        )
        test.create(test.path("pods"), spec)
        set_ready(test, name, "True")


def set_ready(test, pod, state):
    conditions = [{"type": "Ready", "status": state}]
    patch = {"status": {"phase": "Running", "conditions": conditions}}
    test.merge(test.path("pods", pod) + "/status", patch)


@case("budgets that make no sense are refused in Kubernetes' words")
def bad_budgets(test):
    for spec, message in (
        (
            {"minAvailable": 1, "maxUnavailable": "10%"},
            r'spec: Invalid value: \{"MinAvailable":1,"Selector":\{"matchLabels":\{"app":"guarded"\}\},'
            r'"MaxUnavailable":"10%","UnhealthyPodEvictionPolicy":null\}: '
            "minAvailable and maxUnavailable cannot be both set",
        ),
        ({"minAvailable": -1}, "spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"),
        ({"maxUnavailable": "110%"}, 'Invalid value: "110%": must not be greater than 100%'),
        ({"minAvailable": "-1%"}, 'Invalid value: "-1%": a valid percent string must be a numeric string'),
        ({"minAvailable": "abc"}, 'Invalid value: "abc": a valid percent string'),
        (
            {"unhealthyPodEvictionPolicy": "Ask"},
            'Unsupported value: "Ask": supported values: "AlwaysAllow", "IfHealthyBudget"',
        ),
        ({"labels": {"a": "b b"}}, 'spec.selector.matchLabels: Invalid value: "b b"'),
    ):
        answer = test.create(budgets(test), budget("bad", **spec), status=422)
        test.match(message, answer["message"], "message")
    test.create(budgets(test), budget("big", minAvailable=3_000_000_000), status=400)
    test.true(not test.get(budgets(test))["items"], "one was stored")


@case("a budget counts its pods, and kubectl shows it", needs=RUN, each_kubectl=True)
def shown_budget(test):
    made = objects.deployment("web", replicas=3)
    test.kubectl("create", "-f", "-", stdin=made)
    test.kubectl(
        "create", "-f", "-", stdin=budget("b", labels={"app": "web"}, maxUnavailable="50%")
    )
    found = counted(
        test, "b", expectedPods=3, currentHealthy=3, desiredHealthy=1, disruptionsAllowed=2
    )
    told = objects.condition(found, "DisruptionAllowed")
    test.equal((told["status"], told["reason"]), ("True", "SufficientPods"), "condition")
    table = test.kubectl("get", "pdb").stdout
    test.match(r"NAME +MIN AVAILABLE +MAX UNAVAILABLE +ALLOWED DISRUPTIONS +AGE", table)
    test.match(r"(?m)^b +N/A +50% +2 +\d+s$", table)
    text = test.kubectl("describe", "pdb", "b").stdout
    test.match(r"Max unavailable: +50%", text)
    test.match(r"Allowed disruptions: +2", text)
    test.match(r"Current: +3", text)
    test.kubectl("scale", "deployment", "web", "--replicas=1")
    counted(test, "b", expectedPods=1, currentHealthy=1, desiredHealthy=0, disruptionsAllowed=1)


@case("an eviction waits for its budget, and its pod is replaced", needs=RUN)
def guarded_eviction(test):
    test.create(test.path("deployments", group="apps/v1"), objects.deployment("web", replicas=2))
    test.create(budgets(test), budget("b", labels={"app": "web"}, minAvailable=2))
    counted(test, "b", currentHealthy=2, disruptionsAllowed=0)
    pod = test.pods()[0]["metadata"]["name"]
    told = evict(test, pod, 429)
    test.equal(told, "The disruption budget b needs 2 healthy pods and has 2 currently", "cause")
    test.merge(budgets(test, "b"), {"spec": {"minAvailable": 1}})
    counted(test, "b", disruptionsAllowed=1)
    evict(test, pod, 201)
    test.wait("it is gone", lambda: not test.exists(test.path("pods", pod)))
    found = counted(test, "b", currentHealthy=2, disruptionsAllowed=1)
    test.wait(
        "its eviction is forgotten",
        lambda: "disruptedPods" not in test.get(budgets(test, "b"))["status"],
    )
    test.true(objects.is_true(found, "DisruptionAllowed"), "DisruptionAllowed is not True")


@case("evictions at once never spend more than the budget has", needs=("controllers",))
def overspent(test):
    node = test.unique("guarded")
    test.make_node(node)
    names = ["a", "b", "c", "d"]
    run_by_hand(test, node, *names)
    test.create(budgets(test), budget("one", minAvailable=3))
    counted(test, "one", currentHealthy=4, disruptionsAllowed=1)
    evict(test, "a", 201, dryRun=["All"])
    body = {"apiVersion": "policy/v1", "kind": "Eviction"}

    def attempt(name):
        connection = Connection(test.credentials)
        path = test.path("pods", f"{name}/eviction")
        answer = connection.request("POST", path, body | {"metadata": {"name": name}})
        connection.close()
        return answer.status

    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        codes = sorted(pool.map(attempt, names))
    test.equal(codes, [201, 429, 429, 429], "answers")
    going = [p for p in test.pods() if "deletionTimestamp" in p["metadata"]]
    test.equal(len(going), 1, "pods that go")
    told = objects.condition(going[0], "DisruptionTarget")
    test.equal((told["status"], told["reason"]), ("True", "EvictionByEvictionAPI"), "condition")
    # Whoever goes already may be evicted again, and sooner.
    first = going[0]["metadata"]["name"]
    evict(test, first, 201, gracePeriodSeconds=-5)
    test.equal(test.pod(first)["metadata"]["deletionGracePeriodSeconds"], 1, "grace period")
    counted(test, "one", currentHealthy=3, disruptionsAllowed=0)


@case("unready pods go as their budget says", needs=("controllers",))
def unready(test):
    node = test.unique("unready")
    test.make_node(node)
    run_by_hand(test, node, "a", "b", "c")
    test.create(budgets(test), budget("two", minAvailable=2))
    set_ready(test, "c", "False")
    counted(test, "two", currentHealthy=2, desiredHealthy=2, disruptionsAllowed=0)
    evict(test, "a", 429)
    evict(test, "c", 201, dryRun=["All"])
    set_ready(test, "b", "False")
    counted(test, "two", currentHealthy=1, disruptionsAllowed=0)
    told = evict(test, "c", 429)
    test.equal(told, "The disruption budget two needs 2 healthy pods and has 1 currently", "cause")
    test.merge(budgets(test, "two"), {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}})
    evict(test, "c", 201)
    test.true("deletionTimestamp" in test.pod("c")["metadata"], "the pod stays")


@case("two budgets are one too many for a pod; what has no scale has no share", needs=("controllers",))
def hopeless_budgets(test):
    node = test.unique("twice")
    test.make_node(node)
    run_by_hand(test, node, "a")
    for name in ("x", "y"):
        test.create(budgets(test), budget(name, minAvailable=0))
    test.match("^This pod has more than one PodDisruptionBudget", evict(test, "a", 500))
    test.http("DELETE", budgets(test, "y"), status=200)
    counted(test, "x", expectedPods=1, currentHealthy=1, disruptionsAllowed=1)
    made = objects.job("j", parallelism=1, pod_spec={"nodeSelector": {"e2e": "nowhere"}})
    test.create(test.path("jobs", group="batch/v1"), made)
    labels = {"batch.kubernetes.io/job-name": "j"}
    test.create(budgets(test), budget("share", labels=labels, maxUnavailable=1))

    def failed():
        told = objects.condition(test.get(budgets(test, "share")), "DisruptionAllowed")
        return told.get("reason") == "SyncFailed" and told

    told = test.wait("it says that it can't tell", failed)
    test.equal(told["message"], "jobs.batch does not implement the scale subresource", "message")


@case("a budget follows the scale of a user's kind", needs=("controllers",), seconds=3)
def scaled_custom(test):
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    custom = cases_owners.Custom(test, subresources={"status": {}, "scale": scale})
    owner = custom.create("f")
    test.merge(custom.path("f"), {"spec": {"replicas": 5}})
    node = test.unique("custom")
    test.make_node(node)
    for name in ("a", "b", "c"):
        spec = objects.pod(name, labels={"app": "guarded"}, nodeName=node, tolerations=[TOLERATION])
        spec["metadata"]["ownerReferences"] = [cases_owners.reference(owner, controller=True)]
        test.create(test.path("pods"), spec)
        set_ready(test, name, "True")
    test.create(budgets(test), budget("share", minAvailable="50%"))
    test.create(budgets(test), budget("rest", maxUnavailable=3))
    counted(test, "share", expectedPods=5, currentHealthy=3, desiredHealthy=3, disruptionsAllowed=0)
    counted(test, "rest", expectedPods=5, currentHealthy=3, desiredHealthy=2, disruptionsAllowed=1)
    # It is scaled, and no pod changes.
    test.merge(custom.path("f") + "/scale", {"spec": {"replicas": 4}})
    counted(test, "share", expectedPods=4, desiredHealthy=2, disruptionsAllowed=1)
    custom.drop()


@case("drain is held back by a budget, and says so", needs=("controllers",), seconds=6.5)
def held_drain(test):
    node = test.unique("held")
    test.make_node(node)
    run_by_hand(test, node, "a")
    test.create(budgets(test), budget("keep", minAvailable=1))
    counted(test, "keep", currentHealthy=1, disruptionsAllowed=0)
    ran = test.kubectl("drain", node, "--force", "--timeout=1s", status=1)
    test.match(VIOLATES, ran.stderr)
    test.true("deletionTimestamp" not in test.pod("a")["metadata"], "the pod goes")


@case("a budget says when it has no pods, or pods of nobody", needs=("controllers",))
def amiss(test):
    node = test.unique("amiss")
    test.make_node(node)
    test.create(budgets(test), budget("amiss", maxUnavailable=1))

    def told(reason):
        events = test.get(test.path("events"))["items"]
        return any(e["reason"] == reason and e["involvedObject"]["name"] == "amiss" for e in events)

    test.wait("NoPods", lambda: told("NoPods"))
    run_by_hand(test, node, "a")
    test.wait("UnmanagedPods", lambda: told("UnmanagedPods"))


@case("a preemption evicts as few as can be, each once", on=("embedded",), seconds=8)
def story(test):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="story-", dir=test.cluster.directory))
    up = BerthUp(directory, test.program)
    test.cleanups.append(lambda: up.process and up.process.end())
    up.start("--in-memory", "--nodes=2")
    connection = Connection(up.credentials)
    evicted, fewest = preemption_story.Story(connection, test.log.append).play()
    connection.close()
    test.equal(evicted, fewest, "evictions")
    test.equal(up.stop(), 0, "exit status")


@case("a negative grace period of a deletion is one second")
def negative_grace(test):
    spec = objects.pod("p", nodeName=test.unique("absent"), tolerations=[TOLERATION])
    test.create(test.path("pods"), spec)
    answer = test.http("DELETE", test.path("pods", "p"), {"gracePeriodSeconds": -5}, status=200)
    test.equal(answer.json()["metadata"]["deletionGracePeriodSeconds"], 1, "grace period")
    test.http("DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 0}, status=200)


def refused_pod(test, message, **spec):
    answer = test.create(test.path("pods"), objects.pod("refused", **spec), status=403)
    test.equal(answer["reason"], "Forbidden", "reason")
    test.match(message, answer["message"], "message")


@case("a class gives its pods priority and policy; what disagrees is refused")
def classes(test):
    high, calm = test.unique("high"), test.unique("calm")
    test.make_priority_class(high, 100)
    test.make_priority_class(calm, -5, preemptionPolicy="Never")
    nobody = {"schedulerName": "nobody"}
    test.create(test.path("pods"), objects.pod("p", priorityClassName=calm, **nobody))
    spec = test.pod("p")["spec"]
    test.equal((spec["priority"], spec["preemptionPolicy"]), (-5, "Never"), "what the class gives")
    test.merge(test.path("pods", "p"), {"spec": {"priority": None, "preemptionPolicy": None}})
    test.equal(test.pod("p")["spec"]["priority"], -5, "priority after an update without one")
    test.merge(test.path("pods", "p"), {"spec": {"priority": 3}}, status=422)
    refused_pod(
        test,
        r"the integer value of priority \(7\) must not be provided in pod spec; "
        "priority admission controller computed 100 from the given PriorityClass name",
        priorityClassName=high,
        priority=7,
    )
    refused_pod(
        test,
        r"the string value of PreemptionPolicy \(PreemptLowerPriority\) must not be provided",
        priorityClassName=calm,
        preemptionPolicy="PreemptLowerPriority",
    )
    for name, value, message in (
        ("over", 1_000_000_001, "maximum allowed value of a user defined priority is 1000000000"),
        ("system-mine", 1, "system-mine is not a known system priority class"),
        ("system-node-critical", 1, "value of system-node-critical PriorityClass must be 2000001000"),
    ):
        answer = test.create(CLASSES, {"metadata": {"name": name}, "value": value}, status=422)
        test.match(message, answer["message"], "message")
    for change in ({"value": 101}, {"preemptionPolicy": "Never"}):
        test.merge(f"{CLASSES}/{high}", change, status=422)


@case("there is one global default, and pods without a class have it", alone=True)
def global_default(test):
    usual, other = test.unique("usual"), test.unique("other")
    test.namespace
    made = {"metadata": {"name": usual}, "value": 5, "globalDefault": True}
    test.create(CLASSES, made | {"preemptionPolicy": "Never"})
    try:
        second = {"metadata": {"name": other}, "value": 4, "globalDefault": True}
        # The genuine server's admission lags, so nothing is made until it has seen the first.
        refused = test.wait("a second one is refused", lambda: refusal(test, second))
        test.match(f"PriorityClass {usual} is already marked as default", refused)
        test.create(CLASSES, second | {"globalDefault": False})
        test.merge(f"{CLASSES}/{other}", {"globalDefault": True}, status=403)
        made = objects.pod("p", schedulerName="nobody")
        spec = test.wait("a pod has it", lambda: taken(test, made, usual))
        test.equal((spec["priority"], spec["preemptionPolicy"]), (5, "Never"), "what it gives")
    finally:
        for name in (usual, other):
            test.http("DELETE", f"{CLASSES}/{name}")


def refusal(test, made):
    answer = test.http("POST", f"{CLASSES}?dryRun=All", made)
    return answer.message if answer.status == 403 else None


def taken(test, made, usual):
    """The spec of a pod made now, if it got the class."""
    test.http("DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 0})
    spec = test.create(test.path("pods"), made)["spec"]
    return spec if spec.get("priorityClassName") == usual else None
