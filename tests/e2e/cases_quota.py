"""Quota as Kueue's users have it: queues and flavors by kubectl, and Jobs that wait for both."""

import json

import objects
from cases_custom import CUSTOM, KUEUE, OURS, manifests, named
from harness import case


def queue(name, flavor, cpu, **spec):
    quota = [{"name": "cpu", "nominalQuota": cpu}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": flavor, "resources": quota}]}
    return named(name, "ClusterQueue", KUEUE, spec={"namespaceSelector": {}, "resourceGroups": [group]} | spec)


def make_queues(test, cpu, flavor=None, **spec):
    """A flavor, a ClusterQueue with quota of it and the LocalQueue "lq" that leads there; the queue's name."""
    name = test.unique("cq")
    test.kubectl("create", "-f", "-", stdin=named(name, "ResourceFlavor", KUEUE, spec=flavor or {}), namespace=False)
    test.kubectl("create", "-f", "-", stdin=queue(name, name, cpu, **spec), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    return name


def remove_queues(test, name):
    test.kubectl("delete", "clusterqueue", name, namespace=False)
    test.kubectl("delete", "resourceflavor", name, namespace=False)


def queued(job, local_queue="lq"):
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": local_queue}
    return job


def workload(test, job):
    """The Workload of a Job; {} while there is none."""
    for item in test.get(test.path("workloads", group=KUEUE))["items"]:
        if any(owner["name"] == job for owner in item["metadata"].get("ownerReferences", [])):
            return item
    return {}


def condition(kind, status, reason):
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def says(test, job, kind):
    found = objects.condition(workload(test, job), kind)
    return found.get("status"), found.get("reason"), found.get("message")


@case("a Job waits for quota, starts when there is some, and gives it back when it is done", needs=CUSTOM)
def jobs_wait(test):
    name = make_queues(test, "300m")
    active = lambda kind: test.kubectl("get", kind, "-o", "jsonpath={.items[*].status.conditions[?(@.type=='Active')].reason}").stdout
    test.wait("the LocalQueue is ready", lambda: active("localqueues") == "Ready")
    first = queued(objects.job("first", parallelism=2, completions=2))
    first["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=first)
    test.wait("it is admitted", lambda: says(test, "first", "Admitted")[0] == "True")
    admission = workload(test, "first")["status"]["admission"]
    test.equal(admission["clusterQueue"], name, "clusterQueue")
    test.equal(
        admission["podSetAssignments"],
        [{"name": "main", "flavors": {"cpu": name}, "resourceUsage": {"cpu": "200m"}, "count": 2}],
        "podSetAssignments",
    )
    test.wait("it runs", lambda: len(test.pods("job-name=first")) == 2)

    second = queued(objects.job("second", run_for="50ms", parallelism=2, completions=2))
    second["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=second)
    why = f"couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor {name}, 100m more needed"
    test.wait("it waits", lambda: says(test, "second", "QuotaReserved") == ("False", "WaitingForQuota", why))
    test.stays("it has no pods", lambda: not test.pods("job-name=second"))
    counts = lambda: {k: v for k, v in test.get(f"/apis/{KUEUE}/clusterqueues/{name}")["status"].items() if k != "conditions"}
    used = [{"name": name, "resources": [{"name": "cpu", "total": "200m", "borrowed": "0"}]}]
    test.wait(
        "the queue counts them, and what they hold",
        lambda: counts()
        == {
            "pendingWorkloads": 1,
            "reservingWorkloads": 1,
            "admittedWorkloads": 1,
            "flavorsReservation": used,
            "flavorsUsage": used,
        },
    )
    # It may be made in the same second as the one before: either is then first.
    large = queued(objects.job("large"))
    large["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    test.kubectl("create", "-f", "-", stdin=large)
    test.wait("what can never be is said", lambda: says(test, "large", "QuotaReserved")[1] == "ExceedsMaxQuota")
    ask = lambda *more: test.berth("queue", name, *more, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options())
    shown = ask().stdout
    test.match(rf"{name} +{name} +cpu +300m +200m +- +- +100m +2\n", shown)
    test.match(r"[12]\. .*job-second-.* priority 0, since .*\n +" + why, shown, "who waits, and why")
    test.equal(json.loads(ask("-o", "json").stdout)["queues"][0]["exists"], True, "exists")
    explains = lambda what: test.berth("why", what, "-n", test.namespace, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options()).stdout
    told = explains("job/second")
    test.match(rf"job-second-.*: pending, number [12] of 2 that wait in ClusterQueue {name} through LocalQueue lq", told, "where it waits")
    test.match(rf"100m cpu of flavor {name} more is needed: ClusterQueue {name} has 300m, of which 200m are used\n +200m by workload .*job-first-", told, "who holds it")
    test.match(rf"admitted .*\n +2 pods of main have 200m cpu of flavor {name}\n", explains("job/first"), "what it has")

    test.kubectl("delete", "job", "first")
    test.wait("the second is done", lambda: says(test, "second", "Finished")[:2] == ("True", "Succeeded"))
    test.equal(test.get(test.path("jobs", "second", group="batch/v1"))["status"]["succeeded"], 2, "succeeded")
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)


@case("a more important Job takes the quota of others, which wait and run again after it", needs=CUSTOM)
def evicts(test):
    name = make_queues(test, "200m", preemption={"withinClusterQueue": "LowerPriority"})
    important = test.unique("important")
    test.kubectl("create", "-f", "-", stdin=named(important, "PriorityClass", "scheduling.k8s.io/v1", value=10), namespace=False)
    low = queued(objects.job("low", parallelism=2, completions=2))
    low["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=low)
    test.wait("it runs", lambda: len(test.pods("job-name=low")) == 2)
    high = queued(objects.job("high"))
    high["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "150m"}}
    high["spec"]["template"]["spec"]["priorityClassName"] = important
    test.kubectl("create", "-f", "-", stdin=high)
    test.wait("the important one runs", lambda: len(test.pods("job-name=high")) == 1)
    evicted = workload(test, "high")["metadata"]
    job = evicted["labels"]["kueue.x-k8s.io/job-uid"]
    message = (
        f"Preempted to accommodate a workload (UID: {evicted['uid']}, JobUID: {job}) due to prioritization in the ClusterQueue; "
        f"preemptor path: /{name}; preemptee path: /{name}"
    )
    test.equal(says(test, "low", "Evicted"), ("True", "Preempted", message), "Evicted")
    test.equal(says(test, "low", "Preempted"), ("True", "InClusterQueue", message), "Preempted")
    test.wait("the other waits", lambda: says(test, "low", "QuotaReserved")[1] == "WaitingForQuota")
    test.equal(test.get(test.path("jobs", "low", group="batch/v1"))["spec"]["suspend"], True, "suspend")
    test.wait("its pods are gone", lambda: not test.pods("job-name=low"))
    test.kubectl("delete", "job", "high")
    test.wait("it runs again", lambda: len(test.pods("job-name=low")) == 2)
    test.wait("it is not called evicted any more", lambda: says(test, "low", "Evicted")[0] == "False")
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "priorityclass", important, namespace=False)
    remove_queues(test, name)


@case("a Job runs once its admission checks are ready, and goes when one asks for another try", needs=CUSTOM)
def checks(test):
    check = test.unique("check")
    test.kubectl("create", "-f", "-", stdin=named(check, "AdmissionCheck", KUEUE, spec={"controllerName": "example.com/c"}), namespace=False)
    active = {"status": {"conditions": [condition("Active", "True", "Active")]}}
    test.kubectl("patch", "admissioncheck", check, "--subresource=status", "--type=merge", "-p", json.dumps(active), namespace=False)
    name = make_queues(test, "300m", admissionChecksStrategy={"admissionChecks": [{"name": check}]})
    job = queued(objects.job("job", parallelism=1, completions=1))
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    states = lambda: [(c["name"], c["state"]) for c in workload(test, "job").get("status", {}).get("admissionChecks", [])]
    test.wait("its quota is reserved, and it is to be checked", lambda: states() == [(check, "Pending")])
    test.equal(says(test, "job", "QuotaReserved")[0], "True", "QuotaReserved")
    test.equal(says(test, "job", "Admitted")[:2], ("False", "UnsatisfiedAdmissionChecks"), "Admitted")
    test.stays("it has no pods", lambda: not test.pods("job-name=job"))

    def set_check(state, **more):
        found = {"name": check, "state": state, "message": "by the test", "lastTransitionTime": "2026-01-01T00:00:00Z"} | more
        patch = json.dumps({"status": {"admissionChecks": [found]}})
        test.kubectl("patch", "workload", workload(test, "job")["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)

    template = lambda: test.get(test.path("jobs", "job", group="batch/v1"))["spec"]["template"]
    before = template()
    wants = {"name": "main", "labels": {"checked": "yes"}, "annotations": {"example.com/by": "c"}}
    wants["tolerations"] = [{"key": "checked", "operator": "Exists"}]
    set_check("Ready", podSetUpdates=[wants])
    test.wait("it runs", lambda: len(test.pods("job-name=job")) == 1)
    test.equal(says(test, "job", "Admitted")[0], "True", "Admitted")
    # What the check wants of the pods is theirs while they run.
    pod = test.pods("job-name=job")[0]
    test.equal(pod["metadata"]["labels"]["checked"], "yes", "label")
    test.equal(pod["metadata"]["annotations"]["example.com/by"], "c", "annotation")
    test.true(wants["tolerations"][0] in pod["spec"]["tolerations"], "its toleration is missing")
    set_check("Retry", podSetUpdates=[wants])
    # Its quota is its own again at once, for nobody else wants it, and it is checked anew.
    test.wait("it is checked anew", lambda: states() == [(check, "Pending")] and says(test, "job", "Admitted")[1] == "UnsatisfiedAdmissionChecks")
    test.wait("its pod is gone", lambda: not test.pods("job-name=job"))
    test.wait("its template is what it was", lambda: template() == before)
    set_check("Rejected")
    test.wait("it is deactivated", lambda: workload(test, "job")["spec"].get("active") is False)
    test.wait("and holds nothing", lambda: says(test, "job", "QuotaReserved")[0] == "False")
    test.equal(says(test, "job", "Requeued")[:2], ("False", "DeactivatedDueToAdmissionCheck"), "Requeued")
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)
    test.kubectl("delete", "admissioncheck", check, namespace=False)


@case("a queue that drains lets its Jobs go, which come back with it; so does a deactivated one", needs=CUSTOM)
def drains(test):
    name = make_queues(test, "300m")
    job = queued(objects.job("job", parallelism=1, completions=1))
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    runs = lambda: len(test.pods("job-name=job")) == 1 and says(test, "job", "Admitted")[0] == "True"
    gone = lambda reason: not test.pods("job-name=job") and says(test, "job", "Requeued")[:2] == ("False", reason)
    test.wait("it runs", runs)

    def patch(kind, of, spec, **where):
        test.kubectl("patch", kind, of, "--type=merge", "-p", json.dumps({"spec": spec}), **where)

    patch("clusterqueue", name, {"stopPolicy": "HoldAndDrain"}, namespace=False)
    test.wait("the queue is empty", lambda: gone("ClusterQueueStopped"))
    patch("clusterqueue", name, {"stopPolicy": "None"}, namespace=False)
    test.wait("it runs again", runs)
    patch("localqueue", "lq", {"stopPolicy": "HoldAndDrain"})
    test.wait("the LocalQueue is empty", lambda: gone("LocalQueueStopped"))
    patch("localqueue", "lq", {"stopPolicy": "None"})
    test.wait("it runs again", runs)
    patch("workload", workload(test, "job")["metadata"]["name"], {"active": False})
    test.wait("it is deactivated", lambda: gone("Deactivated"))
    patch("workload", workload(test, "job")["metadata"]["name"], {"active": True})
    test.wait("it runs again", runs)
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)


@case("what a Job's queue lacks is said where its user looks", needs=CUSTOM)
def misconfigured(test):
    test.kubectl("create", "-f", "-", stdin=queued(objects.job("j"), "nowhere"))
    message = "LocalQueue nowhere doesn't exist in the namespace: create it, or name another"
    test.wait("no LocalQueue", lambda: says(test, "j", "QuotaReserved") == ("False", "Misconfigured", message))
    absent = test.unique("absent")
    test.kubectl("create", "-f", "-", stdin=named("nowhere", "LocalQueue", KUEUE, spec={"clusterQueue": absent}))
    message = f"ClusterQueue {absent} doesn't exist, which LocalQueue nowhere names: create it, or use another LocalQueue"
    test.wait("no ClusterQueue", lambda: says(test, "j", "QuotaReserved")[2] == message)


@case("what LimitRanges and RuntimeClasses give a Job's pods is part of what it asks for", needs=CUSTOM)
def defaults(test):
    name = make_queues(test, "1")
    runtime = test.unique("runtime")
    document = named(runtime, "RuntimeClass", "node.k8s.io/v1", handler=runtime, overhead={"podFixed": {"cpu": "50m"}})
    test.kubectl("create", "-f", "-", stdin=document, namespace=False)
    item = {"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"cpu": "200m"}}
    test.kubectl("create", "-f", "-", stdin=named("limits", "LimitRange", "v1", spec={"limits": [item]}))
    job = queued(objects.job("j", parallelism=2, completions=2))
    job["spec"]["template"]["spec"]["runtimeClassName"] = runtime
    test.kubectl("create", "-f", "-", stdin=job)
    usage = lambda job: workload(test, job).get("status", {}).get("admission", {}).get("podSetAssignments", [{}])[0].get("resourceUsage")
    test.wait("it has what its pods take", lambda: usage("j") == {"cpu": "300m"})
    test.wait("it runs", lambda: len(test.pods("job-name=j")) == 2)
    pod = test.pods("job-name=j")[0]["spec"]
    test.equal(pod["containers"][0]["resources"]["requests"], {"cpu": "100m"}, "requests")
    test.equal(pod["overhead"], {"cpu": "50m"}, "overhead")

    narrow = [item | {"max": {"cpu": "200m"}}]
    test.kubectl("patch", "limitrange", "limits", "--type=merge", "-p", json.dumps({"spec": {"limits": narrow}}))
    large = queued(objects.job("large"))
    large["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "250m"}, "limits": {"cpu": "250m"}}
    test.kubectl("create", "-f", "-", stdin=large)
    message = (
        "resources didn't satisfy LimitRange constraints: spec.podSets[0].template.spec.containers[0]: "
        'Invalid value: ["cpu"]: requests must not be above the limitRange max'
    )
    test.wait("it is told", lambda: says(test, "large", "QuotaReserved") == ("False", "Misconfigured", message))
    test.equal(says(test, "j", "Admitted")[0], "True", "who runs stands")
    test.kubectl("delete", "limitrange", "limits")
    test.wait("it is admitted once it may be", lambda: usage("large") == {"cpu": "250m"})
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "runtimeclass", runtime, namespace=False)
    remove_queues(test, name)


@case("what the server refuses an admitted Job is told by berth why", needs=CUSTOM)
def refused(test):
    name = make_queues(test, "1")
    # Kueue lets pass what has no limit, the server of pods does not.
    item = {"type": "Pod", "max": {"cpu": "1"}}
    test.kubectl("create", "-f", "-", stdin=named("limits", "LimitRange", "v1", spec={"limits": [item]}))
    job = queued(objects.job("j"))
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    explains = lambda what: test.berth("why", what, "-n", test.namespace, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options()).stdout
    pattern = r"\n  creating pods of its Job was refused( \d+ times)?, last told at 2.*: maximum cpu usage per Pod is 1\. +No limit is specified; it is tried again"
    test.wait("it is admitted", lambda: says(test, "j", "Admitted")[0] == "True")
    test.wait("its Job says so", lambda: "No limit is specified" in explains("job/j"))
    for what in ("job/j", "workload/" + workload(test, "j")["metadata"]["name"]):
        test.match(pattern, explains(what), "why")
    test.kubectl("delete", "limitrange", "limits")
    test.wait("it runs", lambda: len(test.pods("job-name=j")) == 1)
    test.wait("and says so", lambda: "was refused" not in explains("job/j"))
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)


@case("queues that can't be are refused, and say what is wrong with what they say", on=OURS, needs=CUSTOM, each_kubectl=True)
def bad_queues(test):
    name = test.unique("cq")
    wrong = lambda document, pattern: test.match(pattern, test.refused("create", "-f", "-", stdin=document, namespace=False), "refusal")
    wrong(queue(name, "f", "-1"), "nominalQuota: Invalid value: \"-1\": must be greater than or equal to 0")
    borrows = queue(name, "f", "1")
    borrows["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["borrowingLimit"] = "1"
    wrong(borrows, "borrowingLimit must be nil when cohort is empty")
    evicts = {"reclaimWithinCohort": "Never", "borrowWithinCohort": {"policy": "LowerPriority"}}
    wrong(queue(name, "f", "1", preemption=evicts), "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never")
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    other = json.dumps({"spec": {"clusterQueue": "other"}})
    test.match("immutable", test.refused("patch", "localqueue", "lq", "--type=merge", "-p", other), "refusal")
    test.kubectl("delete", "localqueue", "lq")


def active(test, kind, name, **where):
    """Reason and message of its condition Active, if that is not True."""
    found = json.loads(test.kubectl("get", kind, name, "-o", "json", **where).stdout)
    said = objects.condition(found, "Active")
    return {"True": ("Ready", ""), "False": (said.get("reason"), said.get("message"))}.get(said.get("status"), (None, ""))


@case("a queue that lacks what it names says so, and so do those who wait there", needs=CUSTOM)
def queue_lacks(test):
    name, flavor = test.unique("cq"), test.unique("flavor")
    test.kubectl("create", "-f", "-", stdin=queue(name, flavor, "1"), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    job = queued(objects.job("job", parallelism=1, completions=1))
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("no flavor", lambda: active(test, "clusterqueue", name, namespace=False)[0] == "FlavorNotFound")
    test.match(f"ResourceFlavors that don't exist: {flavor}; create them", active(test, "clusterqueue", name, namespace=False)[1])
    test.wait("the LocalQueue says so", lambda: active(test, "localqueue", "lq")[0] == "ClusterQueueIsInactive")
    test.wait("the Job's Workload, too", lambda: says(test, "job", "QuotaReserved")[:2] == ("False", "Suspended"))
    test.match(f"ClusterQueue {name} is inactive: its condition Active says", says(test, "job", "QuotaReserved")[2])
    test.kubectl("create", "-f", "-", stdin=named(flavor, "ResourceFlavor", KUEUE), namespace=False)
    test.wait("it is admitted", lambda: says(test, "job", "Admitted")[0] == "True")
    test.kubectl("delete", "jobs", "--all")
    for kind, of in (("clusterqueue", name), ("resourceflavor", flavor)):
        test.kubectl("delete", kind, of, namespace=False)


@case("a check that no controller serves, and a LocalQueue of nothing, say what to change", needs=CUSTOM)
def nobody_serves(test):
    check = test.unique("check")
    test.kubectl("create", "-f", "-", stdin=named(check, "AdmissionCheck", KUEUE, spec={"controllerName": "nobody.example"}), namespace=False)
    name = make_queues(test, "1", admissionChecksStrategy={"admissionChecks": [{"name": check}]})
    test.wait("it is told", lambda: active(test, "clusterqueue", name, namespace=False)[0] == "AdmissionCheckInactive")
    test.match(rf"no controller serves: {check} \(of nobody.example\); start their controllers", active(test, "clusterqueue", name, namespace=False)[1])
    test.kubectl("create", "-f", "-", stdin=queued(objects.job("job", parallelism=1, completions=1)))
    test.wait("its Jobs wait", lambda: says(test, "job", "QuotaReserved")[1] == "Suspended")
    test.kubectl("create", "-f", "-", stdin=named("empty", "LocalQueue", KUEUE))
    test.wait("so is it", lambda: active(test, "localqueue", "empty")[0] == "ClusterQueueDoesNotExist")
    test.match("spec.clusterQueue is empty; set it", active(test, "localqueue", "empty")[1])
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "localqueue", "empty")
    remove_queues(test, name)
    test.kubectl("delete", "admissioncheck", check, namespace=False)


@case("a Job runs no longer than its label allows", needs=CUSTOM)
def time_limit(test):
    name = make_queues(test, "1")
    job = queued(objects.job("job", parallelism=1, completions=1))
    job["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "2"
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("it runs", lambda: len(test.pods("job-name=job")) == 1)
    exceeded = "DeactivatedDueToMaximumExecutionTimeExceeded"
    test.wait("its time is over", lambda: says(test, "job", "Requeued")[:2] == ("False", exceeded))
    test.wait("it has no pods", lambda: not test.pods("job-name=job"))
    test.match("exceeding the maximum execution time", says(test, "job", "Evicted")[2])
    test.equal(workload(test, "job")["spec"]["active"], False, "active")
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)


@case("a Job that waits and is deactivated says so, and what was wrong before no more", needs=CUSTOM)
def deactivated(test):
    test.kubectl("create", "-f", "-", stdin=queued(objects.job("job"), "nowhere"))
    test.wait("it waits", lambda: says(test, "job", "QuotaReserved")[1] == "Misconfigured")
    name = workload(test, "job")["metadata"]["name"]
    patch = lambda active: test.kubectl("patch", "workload", name, "--type=merge", "-p", json.dumps({"spec": {"active": active}}))
    patch(False)
    why = "The workload is deactivated by its spec.active: set that to true to have it tried"
    test.wait("it is told", lambda: says(test, "job", "QuotaReserved") == ("False", "Suspended", why))
    patch(True)
    test.wait("it is told what it lacks", lambda: says(test, "job", "QuotaReserved")[1] == "Misconfigured")
    test.kubectl("delete", "jobs", "--all")


@case("a Workload of pods that can't be, or with places that don't add up, is refused", on=OURS, needs=CUSTOM, each_kubectl=True)
def bad_workloads(test):
    pods = lambda spec, **meta: {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]} | spec}
    made = lambda name, template: named(name, "Workload", KUEUE, spec={
        "queueName": "nowhere", "podSets": [{"name": "main", "count": 2, "template": template}]})
    for template, pattern in (
        (pods({}, labels={"a": "b c"}), 'metadata.labels: Invalid value: "b c"'),
        (pods({"nodeSelector": {"a b": "c"}}), 'spec.nodeSelector: Invalid value: "a b"'),
        (pods({"tolerations": [{"key": "k", "operator": "Exists", "value": "v"}]}), "spec.tolerations\\[0\\].operator: Invalid value"),
    ):
        test.match(pattern, test.refused("create", "-f", "-", stdin=made("w", template)), "refusal")
    test.kubectl("create", "-f", "-", stdin=made("w", pods({})))
    counts = lambda pods: json.dumps({"status": {"admission": {"clusterQueue": "q", "podSetAssignments": [{
        "name": "main", "count": 2, "topologyAssignment": {"levels": ["kubernetes.io/hostname"], "slices": [{
            "domainCount": 1, "valuesPerLevel": [{"universal": "n"}], "podCounts": {"universal": pods}}]}}]}}})
    wrong = lambda pods: test.refused("patch", "workload", "w", "--subresource=status", "--type=merge", "-p", counts(pods))
    for number in (1, 2000000000):
        test.match(f"Invalid value: {number}: must be as many pods as the pod set has: 2", wrong(number), "refusal")
    test.match("should be greater than or equal to 1", wrong(-2), "refusal")
    hour = queued(objects.job("hour"))
    hour["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "1h"
    test.match('Invalid value: "1h": is not a number', test.refused("create", "-f", "-", stdin=hour), "refusal")
    test.kubectl("delete", "workload", "w")


@case("a flavor of nodes that are not there is named with its labels", needs=CUSTOM)
def flavor_without_nodes(test):
    name = make_queues(test, "1", flavor={"nodeLabels": {"e2e/nowhere": "yes"}})
    job = queued(objects.job("job", parallelism=1, completions=1))
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("it is told", lambda: says(test, "job", "QuotaReserved")[1] == "WaitingForNodes")
    test.match(f"ResourceFlavor {name} is of nodes with e2e/nowhere=yes", says(test, "job", "QuotaReserved")[2])
    test.kubectl("delete", "jobs", "--all")
    remove_queues(test, name)


@case("cohorts in a cycle stop their queues, and nobody else", needs=CUSTOM)
def cohort_cycle(test):
    a, b = test.unique("a"), test.unique("b")
    name = make_queues(test, "1", cohortName=a)
    parent = lambda of: {"spec": {"parentName": of}}
    test.kubectl("create", "-f", "-", stdin=named(a, "Cohort", KUEUE, **parent(b)), namespace=False)
    test.wait("it is ready", lambda: active(test, "clusterqueue", name, namespace=False)[0] == "Ready")
    test.kubectl("create", "-f", "-", stdin=named(b, "Cohort", KUEUE, **parent(a)), namespace=False)
    test.wait("it is in a cycle", lambda: active(test, "clusterqueue", name, namespace=False)[0] == "CohortCycle")
    test.match("change spec.parentName of one of them", active(test, "clusterqueue", name, namespace=False)[1])
    told = lambda: [e["regarding"]["name"] for e in test.get("/apis/events.k8s.io/v1/namespaces/default/events")["items"]
                    if e.get("reason") == "CohortCycle"]
    test.wait("each cohort is told", lambda: {a, b} <= set(told()))
    job = queued(objects.job("job", parallelism=1, completions=1))
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("its Jobs wait", lambda: says(test, "job", "QuotaReserved")[1] == "Suspended")
    other = test.unique("other")
    test.kubectl("create", "-f", "-", stdin=queue(other, name, "1"), namespace=False)
    test.wait("others are ready", lambda: active(test, "clusterqueue", other, namespace=False)[0] == "Ready")
    test.kubectl("patch", "cohort", b, "--type=merge", "-p", json.dumps(parent(None)), namespace=False)
    test.wait("it is ready again", lambda: active(test, "clusterqueue", name, namespace=False)[0] == "Ready")
    test.kubectl("delete", "jobs", "--all")
    for kind, of in (("clusterqueue", other), ("cohort", a), ("cohort", b)):
        test.kubectl("delete", kind, of, namespace=False)
    remove_queues(test, name)


@case("what no quota could hold is said at once, and who it bars", needs=CUSTOM)
def too_large(test):
    name = make_queues(test, "1", queueingStrategy="StrictFIFO")
    # Both may be created in the same second: the first is more important.
    test.kubectl("create", "-f", "-", stdin=named(name, "WorkloadPriorityClass", KUEUE, value=10), namespace=False)
    for job, cpu in (("huge", "2"), ("small", "100m")):
        made = queued(objects.job(job, parallelism=1, completions=1))
        if job == "huge":
            made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = name
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        test.kubectl("create", "-f", "-", stdin=made)
        if job == "huge":
            test.wait("it is told why it waits", lambda: says(test, "huge", "QuotaReserved")[1] == "ExceedsMaxQuota")
    test.match(r"current podset request \(2\) > maximum capacity \(1\)", says(test, "huge", "QuotaReserved")[2])
    behind = workload(test, "huge")["metadata"]
    why = f"waits behind Workload {behind['namespace']}/{behind['name']}, which StrictFIFO"
    test.wait("the other is told for whom it waits", lambda: why in says(test, "small", "QuotaReserved")[2])
    test.kubectl("delete", "job", "huge")
    test.wait("the other starts", lambda: says(test, "small", "Admitted")[0] == "True")
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "workloadpriorityclass", name, namespace=False)
    remove_queues(test, name)


@case("Kueue's quick start: its Job is admitted, a second waits with a reason", needs=CUSTOM, alone=True)
def quick_start_job(test):
    setup = manifests("kueue/getting-started/quick-start-setup.yaml")[0]
    job = manifests("kueue/getting-started/quick-start-job.yaml")[0]
    more = manifests("kueue/jobs/sample-job.yaml")[0]
    test.kubectl("apply", "-f", str(setup), namespace=False)
    names = ["sample-job"]
    try:
        test.kubectl("apply", "-f", str(job), namespace=False)
        for _ in range(3):
            made = test.kubectl("create", "-f", str(more), "-o", "name", namespace=False).stdout.strip()
            names.append(made.split("/")[1])
        waiting = lambda: [w for w in test.get(f"/apis/{KUEUE}/namespaces/default/workloads")["items"]
                           if objects.condition(w, "QuotaReserved").get("status") == "False"]
        admitted = lambda: [w for w in test.get(f"/apis/{KUEUE}/namespaces/default/workloads")["items"]
                            if objects.condition(w, "Admitted").get("status") == "True"]
        test.wait("three of them are admitted", lambda: len(admitted()) == 3)
        test.wait("one waits", lambda: len(waiting()) == 1)
        test.match("insufficient unused quota for cpu in flavor default-flavor, 3 more needed",
                   objects.condition(waiting()[0], "QuotaReserved")["message"])
    finally:
        for name in names:
            test.kubectl("delete", "job", name, namespace="default")
        test.kubectl("delete", "-f", str(setup), namespace=False)


@case("a Job is admitted only with places on nodes for all its pods, and they are kept for them", needs=CUSTOM)
def joint(test):
    name = test.unique("cq")
    small, large = test.unique("small"), test.unique("large")
    test.make_node(small, cpu="1", labels={"pool": name})
    test.take_pods(small)
    flavor = named(name, "ResourceFlavor", KUEUE, spec={"nodeLabels": {"pool": name}, "tolerations": [objects.TOLERATION]})
    test.kubectl("create", "-f", "-", stdin=flavor, namespace=False)
    test.kubectl("create", "-f", "-", stdin=queue(name, name, "4"), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))

    def make(job, count):
        made = queued(objects.job(job, parallelism=count, completions=count))
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "400m"}}
        test.kubectl("create", "-f", "-", stdin=made)

    make("wide", 3)
    why = "there is quota, but only 2 of 3 pods of pod set main find nodes: 0/"
    told = lambda: says(test, "wide", "QuotaReserved")
    test.wait("it waits for nodes, not for quota", lambda: told()[1] == "WaitingForNodes" and told()[2].startswith(why))
    make("fits", 2)
    places = lambda job: [pod["spec"].get("nodeName") for pod in test.pods(f"job-name={job}")]
    test.wait("who finds nodes runs", lambda: places("fits") == [small] * 2)
    placement = json.loads(workload(test, "fits")["metadata"]["annotations"]["berth.dev/placement"])
    test.equal(placement["clusterQueue"], name, "clusterQueue")
    test.equal(placement["podSets"][0]["topologyAssignment"]["levels"], ["kubernetes.io/hostname"], "levels")
    test.make_node(large, cpu="2", labels={"pool": name})
    test.wait("a node that holds all of it starts it there", lambda: places("wide") == [large] * 3)
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")  # Nobody ends them on these nodes.
    remove_queues(test, name)


@case("a Job whose pods can't be placed here gets no quota, and is told which field it is", needs=CUSTOM)
def unsupported(test):
    name = make_queues(test, "1")
    job = queued(objects.job("apart"))
    template = job["spec"]["template"]["spec"]
    template["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    template["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]}}
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("it waits", lambda: says(test, "apart", "QuotaReserved")[0] == "False")
    _, reason, message = says(test, "apart", "QuotaReserved")
    test.equal(reason, "Misconfigured", "reason")
    test.match(r"^spec\.affinity\.podAntiAffinity of pod set main can't be honoured", message)
    test.kubectl("delete", "job", "apart")
    remove_queues(test, name)


@case("a Workload deleted under its Job gives it its template back, and it is admitted anew; of an orphan quota is held by pods", needs=CUSTOM)
def deleted_workloads(test):
    name = test.unique("cq")
    pool = {"kubernetes.io/os": "linux"}
    tolerations = [{"key": "example.com/spot", "operator": "Exists"}]
    flavor = {"nodeLabels": pool, "tolerations": tolerations}
    test.kubectl("create", "-f", "-", stdin=named(name, "ResourceFlavor", KUEUE, spec=flavor), namespace=False)
    test.kubectl("create", "-f", "-", stdin=queue(name, name, "200m"), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    made = queued(objects.job("j", parallelism=3, completions=3, suspend=True))
    made["metadata"]["annotations"] = {"kueue.x-k8s.io/job-min-parallelism": "1"}
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=made)
    spec = lambda: test.get(test.path("jobs", "j", group="batch/v1"))["spec"]
    template = lambda: {k: spec()["template"]["spec"].get(k) for k in ("nodeSelector", "tolerations")}
    asked = (True, 3, {"nodeSelector": None, "tolerations": None})
    runs = lambda: [pod["status"]["phase"] for pod in test.pods("job-name=j")] == ["Running"] * 2
    test.wait("two of its three pods run", runs)
    got = (False, 2, {"nodeSelector": pool, "tolerations": tolerations})
    test.equal((spec()["suspend"], spec()["parallelism"], template()), got, "what it got")
    first = workload(test, "j")["metadata"]
    test.equal(first["finalizers"], ["kueue.x-k8s.io/resource-in-use"], "finalizers")

    # So that it isn't admitted again at once.
    test.merge(f"/apis/{KUEUE}/clusterqueues/{name}", {"spec": {"stopPolicy": "Hold"}})
    test.kubectl("delete", "workload", first["name"])
    test.wait("another is made", lambda: workload(test, "j").get("metadata", first)["uid"] != first["uid"])
    test.equal((spec()["suspend"], spec()["parallelism"], template()), asked, "what its user wrote")
    test.wait("its pods are gone", lambda: not test.pods("job-name=j"))
    test.merge(f"/apis/{KUEUE}/clusterqueues/{name}", {"spec": {"stopPolicy": "None"}})
    test.wait("it runs anew", runs)
    test.equal((spec()["suspend"], spec()["parallelism"], template()), got, "what it got again")

    own = workload(test, "j")["metadata"]["name"]
    test.kubectl("delete", "job", "j", "--cascade=orphan")
    left = lambda: test.get(test.path("workloads", own, group=KUEUE))
    test.wait("nobody owns it", lambda: not left()["metadata"].get("ownerReferences"))
    test.stays("its pods hold its quota", lambda: not objects.is_true(left(), "Finished"))
    test.equal(len(test.pods("job-name=j")), 2, "pods")
    told = test.berth("why", f"workload/{own}", "-n", test.namespace, f"--kubeconfig={test.cluster.kubeconfig}", *test.cluster.why_options()).stdout
    test.match("its Job is gone: what it has is given back when none of the Job's pods runs; 2 are left", told, "why")
    test.kubectl("delete", "pods", "-l", "job-name=j")
    test.wait("it is over with them", lambda: objects.condition(left(), "Finished").get("reason") == "OwnerNotFound")
    test.kubectl("delete", "workload", own)
    remove_queues(test, name)


def nodes_of(assignment):
    """Of a topologyAssignment down to nodes; their values have beginnings and ends in common."""
    nodes = []
    for part in assignment["slices"]:
        column = part["valuesPerLevel"][-1]
        one = column.get("individual", {})
        nodes += [one.get("prefix", "") + root + one.get("suffix", "") for root in one.get("roots", [])]
        nodes += [column["universal"]] * part["domainCount"] if "universal" in column else []
    return sorted(nodes)


@case("a Job stands in one rack, and a node of it that is gone is replaced there, or ends its turn", needs=CUSTOM)
def topology(test):
    name = test.unique("cq")
    levels = [{"nodeLabel": "rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    test.kubectl("create", "-f", "-", stdin=named(name, "Topology", KUEUE, spec={"levels": levels}), namespace=False)
    flavor = {"nodeLabels": {"pool": name}, "topologyName": name, "tolerations": [objects.TOLERATION]}
    test.kubectl("create", "-f", "-", stdin=named(name, "ResourceFlavor", KUEUE, spec=flavor), namespace=False)
    test.kubectl("create", "-f", "-", stdin=queue(name, name, "4"), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    racks = {f"{name}-{rack}{i}": rack for rack, count in (("a", 3), ("b", 1)) for i in range(count)}
    for node, rack in racks.items():
        test.make_node(node, cpu="1", labels={"pool": name, "rack": f"{name}-{rack}"})
    test.take_pods(*racks)

    job = queued(objects.job("job", parallelism=2, completions=2))
    template = job["spec"]["template"]
    template.setdefault("metadata", {})["annotations"] = {"kueue.x-k8s.io/podset-required-topology": "rack"}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "600m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    stands = lambda: {pod["spec"].get("nodeName", ""): pod["metadata"]["uid"] for pod in test.pods("job-name=job")
                      if "deletionTimestamp" not in pod["metadata"]}
    in_rack = lambda: len(stands()) == 2 and all(racks.get(node) == "a" for node in stands())
    test.wait("its pods stand in the rack that holds both", in_rack)
    given = workload(test, "job")["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]
    test.equal(given["levels"], ["kubernetes.io/hostname"], "levels")
    before = stands()
    gone, stays = sorted(before)
    (spare,) = {node for node, rack in racks.items() if rack == "a"} - {gone, stays}
    status = lambda: workload(test, "job")["status"]
    given = lambda: nodes_of(status()["admission"]["podSetAssignments"][0]["topologyAssignment"])
    test.kubectl("delete", "node", gone, namespace=False)
    test.wait("it is replaced by the other node of that rack", lambda: given() == sorted([stays, spare]))
    test.equal(status().get("unhealthyNodes"), None, "unhealthyNodes")
    test.equal(says(test, "job", "Evicted")[0], None, "Evicted")
    # Nobody tells that its pod is gone; it would be found out in a minute.
    for pod in test.pods("job-name=job"):
        if pod["spec"].get("nodeName") == gone:
            test.kubectl("delete", "pod", pod["metadata"]["name"], "--force", "--grace-period=0", "--ignore-not-found")
    test.wait("a pod stands there", lambda: in_rack() and spare in stands())
    test.equal(stands()[stays], before[stays], "the pod that stays")

    test.kubectl("delete", "node", stays, namespace=False)
    test.wait("without another node it is evicted", lambda: says(test, "job", "Evicted")[:2] == ("True", "NodeFailures"))
    test.match(rf"no replacement for unhealthy node\(s\): {stays}", says(test, "job", "Evicted")[2])
    test.equal(status().get("unhealthyNodes"), None, "unhealthyNodes")
    test.wait("its Job is suspended", lambda: test.get(test.path("jobs", "job", group="batch/v1"))["spec"]["suspend"])
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")  # Nobody ends them on these nodes.
    remove_queues(test, name)
    test.kubectl("delete", "topology", name, namespace=False)
