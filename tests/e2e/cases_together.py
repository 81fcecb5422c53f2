"""One engine for all three: a gang of Volcano's, Jobs of Kueue's and a Deployment that preempts, on one node."""

import json

import objects
from cases_custom import CUSTOM, KUEUE, VOLCANO, named, told
from cases_disruption import CLASSES
from cases_quota import make_queues, queue, queued, remove_queues, says
from harness import case


@case(
    "a gang, a Job with quota and a Deployment that preempts share a node, and nobody goes for nothing",
    needs=CUSTOM,
    alone=True,
)
def together(test):
    name = test.unique("together")
    node = test.get("/api/v1/nodes")["items"][0]
    quarter = str(int(node["status"]["allocatable"]["cpu"]) // 4)
    half = str(2 * int(quarter))
    test.kubectl("label", "node", node["metadata"]["name"], f"pool={name}", namespace=False)
    on_node = {"nodeSelector": {"pool": name}, "terminationGracePeriodSeconds": 1}
    urgent = test.unique("urgent")
    test.create(CLASSES, {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                          "metadata": {"name": urgent}, "value": 1000})
    # A gang of two that needs both, and a Job that gets quota and places for two pods.
    test.create(test.path("podgroups", group=VOLCANO), named("train", "PodGroup", VOLCANO, spec={"minMember": 2}))
    train = objects.deployment("train", replicas=2, cpu=quarter, pod_spec=on_node | {"schedulerName": "volcano"},
                               annotations={"scheduling.k8s.io/group-name": "train"})
    test.kubectl("create", "-f", "-", stdin=train)
    flavor = named(name, "ResourceFlavor", KUEUE, spec={"nodeLabels": {"pool": name}})
    test.kubectl("create", "-f", "-", stdin=flavor, namespace=False)
    test.kubectl("create", "-f", "-", stdin=queue(name, name, half), namespace=False)
    test.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": name}))
    # Of two of one second either may be first: the second comes when the first is admitted.
    for job in ("first", "second"):
        made = queued(objects.job(job, parallelism=2, completions=2, backoffLimit=100))
        made["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
        made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": quarter}}
        test.kubectl("create", "-f", "-", stdin=made)
        if job == "first":
            test.wait("it is admitted", lambda: says(test, "first", "Admitted")[0] == "True")

    seen = {}

    def running(selector):
        found = test.pods(selector)
        seen.update((pod["metadata"]["uid"], pod["metadata"]["name"]) for pod in found)
        return sum(objects.is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"] for pod in found)

    test.wait("the gang runs", lambda: running("app=train") == 2)
    test.wait("the first Job runs", lambda: running("job-name=first") == 2)
    short = "insufficient unused quota for cpu"
    test.wait("the second waits for quota", lambda: short in (says(test, "second", "QuotaReserved")[2] or ""))
    before = dict(seen)
    # More important pods, for which two have to go: no more than two do.
    web = objects.deployment("web", replicas=2, cpu=quarter, pod_spec=on_node | {"priorityClassName": urgent})
    test.kubectl("create", "-f", "-", stdin=web)
    test.wait("it runs", lambda: running("app=web") == 2)
    test.wait("two of the four still do", lambda: running("app=train") + running("job-name=first") == 2)

    def gone():
        there = {pod["metadata"]["uid"] for pod in test.pods()}
        return [before[uid] for uid in before if uid not in there]

    test.wait("two went for them", lambda: len(gone()) == 2)
    test.stays("nobody else does", lambda: len(gone()) == 2 and running("app=web") == 2)
    waiting = lambda: [pod["metadata"]["name"] for pod in test.pods() if "nodeName" not in pod["spec"]]
    test.wait("who waits is told why", lambda: len(waiting()) == 2 and all(told(test, pod) for pod in waiting()))
    # Their room comes back to whom it was taken from; then quota, to whom waits for it.
    test.kubectl("delete", "deployment", "web")
    test.wait("the gang runs again", lambda: running("app=train") == 2)
    test.wait("so does the Job", lambda: running("job-name=first") == 2)
    phase = lambda: test.get(test.path("podgroups", "train", group=VOLCANO))["status"]["phase"]
    test.wait("its group says so", lambda: phase() == "Running")
    test.equal(len(gone()), 2, "pods that went for others")
    test.kubectl("delete", "job", "first")
    test.wait("the second Job has its turn", lambda: running("job-name=second") == 2)
    test.kubectl("delete", "jobs,deployments", "--all")
    test.kubectl("delete", "priorityclass", urgent, namespace=False)
    test.kubectl("delete", "clusterqueue", name, namespace=False)
    test.kubectl("delete", "resourceflavor", name, namespace=False)
    test.kubectl("label", "node", node["metadata"]["name"], "pool-", namespace=False)


@case("a queued Job whose PodGroup could not start with its pods gets no quota, and starts once it could", needs=CUSTOM)
def gang_that_waits(test):
    name = make_queues(test, "1")
    job = queued(objects.job("train", parallelism=2, completions=2))
    template = job["spec"]["template"]
    template["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": "train"}}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    why = lambda: says(test, "train", "QuotaReserved")
    waits = lambda text: why()[0] == "False" and why()[1] == "WaitingForGang" and text in why()[2]
    test.wait("it is told that its group is missing", lambda: waits("/train does not exist, which pod set main names"))
    test.create(test.path("podgroups", group=VOLCANO), named("train", "PodGroup", VOLCANO, spec={"minMember": 3}))
    test.wait("its group needs more", lambda: waits("lacks members: it needs 3 more, and 2 wait"))
    # Who comes after it goes before it meanwhile.
    other = queued(objects.job("other"))
    other["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    test.kubectl("create", "-f", "-", stdin=other)
    test.wait("another gets the quota", lambda: says(test, "other", "Admitted")[0] == "True")
    test.kubectl("delete", "job", "other")
    test.kubectl("patch", "podgroup", "train", "--type=merge", "-p", '{"spec":{"minMember":2}}')
    test.wait("both its pods have nodes", lambda: len(nodes(test, "train")) == 2)
    test.kubectl("delete", "job", "train")
    remove_queues(test, name)


@case("a queued Job whose PodGroup can't start any more before it did gives its quota back", needs=CUSTOM)
def gang_that_lost_a_member(test):
    name = make_queues(test, "1")
    annotations = {"scheduling.k8s.io/group-name": "train"}
    test.create(test.path("podgroups", group=VOLCANO), named("train", "PodGroup", VOLCANO, spec={"minMember": 3}))
    # It counts as a member, and there is no node for it.
    leader = objects.pod("leader", cpu="100m", annotations=annotations)
    leader["spec"]["nodeSelector"] = {"there": "none"}
    test.kubectl("create", "-f", "-", stdin=leader)
    job = queued(objects.job("train", parallelism=2, completions=2))
    template = job["spec"]["template"]
    template["metadata"] = {"annotations": annotations}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "100m"}}
    test.kubectl("create", "-f", "-", stdin=job)
    test.wait("it is admitted", lambda: says(test, "train", "Admitted")[0] == "True")
    test.wait("its pods are there", lambda: len(test.pods("job-name=train")) == 2)
    test.kubectl("delete", "pod", "leader")
    why = lambda: says(test, "train", "QuotaReserved")
    test.wait(
        "it waits without quota",
        lambda: why()[:2] == ("False", "WaitingForGang") and "it needs 3 more, and 2 wait" in why()[2],
    )
    test.equal(says(test, "train", "Evicted")[1], "WaitingForGang", "why it was evicted")
    test.wait("its pods are gone", lambda: not test.pods("job-name=train"))
    test.kubectl("patch", "podgroup", "train", "--type=merge", "-p", '{"spec":{"minMember":2}}')
    test.wait("both its pods have nodes", lambda: len(nodes(test, "train")) == 2)
    test.kubectl("delete", "job", "train")
    remove_queues(test, name)


@case("queued Jobs whose PodGroups share a queue of Volcano's get its room in turn, and none in vain", needs=CUSTOM)
def gangs_in_turn(test):
    name = make_queues(test, "4")
    team = named(name, "Queue", VOLCANO, spec={"capability": {"cpu": "400m"}})
    test.kubectl("create", "-f", "-", stdin=team, namespace=False)

    def make(job, pods):
        group = named(job, "PodGroup", VOLCANO, spec={"minMember": 2, "queue": name})
        test.create(test.path("podgroups", group=VOLCANO), group)
        made = queued(objects.job(job, parallelism=pods, completions=pods))
        template = made["spec"]["template"]
        template["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": job}}
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        test.kubectl("create", "-f", "-", stdin=made)

    # All at once, when their queue goes on.
    test.kubectl("patch", "clusterqueue", name, "--type=merge", "-p", '{"spec":{"stopPolicy":"Hold"}}', namespace=False)
    for job in ("first", "second", "third"):
        make(job, 2)
    make("wide", 6)
    test.kubectl("patch", "clusterqueue", name, "--type=merge", "-p", '{"spec":{"stopPolicy":"None"}}', namespace=False)
    short = lambda job: says(test, job, "QuotaReserved")[:2] == ("False", "WaitingForGang")
    jobs = ["first", "second", "third"]
    admitted = lambda: [job for job in jobs if says(test, job, "Admitted")[0] == "True"]
    for left in (2, 1, 0):
        test.wait("one of them runs", lambda: len(admitted()) == 1 and len(nodes(test, admitted()[0])) == 2)
        runs = admitted()[0]
        test.wait("the others wait", lambda: sum(short(job) for job in jobs) == left)
        test.equal(says(test, runs, "Evicted")[0], None, "nobody was admitted in vain")
        test.kubectl("delete", "job", runs)
        jobs.remove(runs)
    why = lambda: says(test, "wide", "QuotaReserved")
    test.wait("who asks for more than it could ever have is told", lambda: short("wide") and "ever have" in why()[2])
    test.kubectl("patch", "queue.scheduling.volcano.sh", name, "--type=merge", "-p",
                 '{"spec":{"capability":{"cpu":"1200m"}}}', namespace=False)
    test.wait("all its pods have nodes", lambda: len(nodes(test, "wide")) == 6)
    test.kubectl("delete", "job", "wide")
    test.kubectl("delete", "podgroups", "--all")
    test.kubectl("delete", "queue.scheduling.volcano.sh", name, namespace=False)
    remove_queues(test, name)


@case("queued Jobs of Volcano's pods that name no PodGroup ask the Queue that theirs will be in", needs=CUSTOM)
def gangs_made_ahead(test):
    name = make_queues(test, "4")
    team = named(name, "Queue", VOLCANO, spec={"capability": {"cpu": "400m"}})
    test.kubectl("create", "-f", "-", stdin=team, namespace=False)

    def make(job, **annotations):
        made = queued(objects.job(job, parallelism=2, completions=2))
        made["metadata"]["annotations"] = annotations
        template = made["spec"]["template"]
        template["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": name}}
        template["spec"]["schedulerName"] = "volcano"
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        test.kubectl("create", "-f", "-", stdin=made)

    waits = lambda job, text: (lambda said: said[:2] == ("False", "WaitingForGang") and text in said[2])(says(test, job, "QuotaReserved"))
    make("first")
    test.wait("it runs", lambda: len(nodes(test, "first")) == 2)
    make("second")
    test.wait("the other waits for room in their Queue", lambda: waits("second", name))
    test.equal(says(test, "second", "Admitted")[0], "False", "it is not admitted in vain")
    test.kubectl("delete", "job", "first")
    test.wait("it has its turn", lambda: len(nodes(test, "second")) == 2)
    test.kubectl("delete", "job", "second")
    make("short", **{"scheduling.volcano.sh/group-min-member": "3"})
    test.wait("who is of too few is told", lambda: waits("short", "it needs 3 more, and 2 wait"))
    test.kubectl("annotate", "job", "short", "--overwrite", "scheduling.volcano.sh/group-min-member=2")
    test.wait("all of it runs", lambda: len(nodes(test, "short")) == 2)
    test.kubectl("delete", "job", "short")
    test.wait("no PodGroup is left", lambda: not test.get(test.path("podgroups", group=VOLCANO))["items"])
    test.kubectl("delete", "queue.scheduling.volcano.sh", name, namespace=False)
    remove_queues(test, name)


@case("queued Jobs whose pods are of one PodGroup are admitted together or not at all", needs=CUSTOM)
def jobs_of_one_group(test):
    name = make_queues(test, "700m")
    test.create(test.path("podgroups", group=VOLCANO), named("all", "PodGroup", VOLCANO, spec={"minMember": 4}))

    def make(job):
        made = queued(objects.job(job, parallelism=2, completions=2))
        template = made["spec"]["template"]
        template["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": "all"}}
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        test.kubectl("create", "-f", "-", stdin=made)

    waits = lambda job, text: (lambda said: said[:2] == ("False", "WaitingForGang") and text in said[2])(says(test, job, "QuotaReserved"))
    make("left")
    test.wait("one alone could not start", lambda: waits("left", "it needs 4 more, and 2 wait"))
    make("right")
    for job in ("left", "right"):
        test.wait("there is quota for one of them", lambda: waits(job, "it is to be admitted together with workload"))
    test.kubectl("patch", "clusterqueue", name, "--type=json", "-p", json.dumps([
        {"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": "800m"}]), namespace=False)
    for job in ("left", "right"):
        test.wait("both run", lambda: len(nodes(test, job)) == 2)
        test.equal(says(test, job, "Evicted")[0], None, "none was admitted in vain")
    test.kubectl("delete", "jobs", "--all")
    test.kubectl("delete", "podgroups", "--all")
    remove_queues(test, name)


@case("a queued gang evicts another that fills its quota and its Volcano queue", needs=CUSTOM)
def gang_evicts_a_gang(test):
    name = make_queues(test, "400m", preemption={"withinClusterQueue": "LowerPriority"})
    team = named(name, "Queue", VOLCANO, spec={"capability": {"cpu": "400m"}})
    test.kubectl("create", "-f", "-", stdin=team, namespace=False)
    urgent = test.unique("urgent")
    test.kubectl("create", "priorityclass", urgent, "--value=100", namespace=False)

    def make(job, **spec):
        group = named(job, "PodGroup", VOLCANO, spec={"minMember": 2, "minResources": {"cpu": "400m"}, "queue": name})
        test.create(test.path("podgroups", group=VOLCANO), group)
        made = queued(objects.job(job, parallelism=2, completions=2))
        template = made["spec"]["template"]
        template["metadata"] = {"annotations": {"scheduling.k8s.io/group-name": job}}
        template["spec"].update(spec)
        template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "200m"}}
        test.kubectl("create", "-f", "-", stdin=made)

    make("low")
    test.wait("it runs", lambda: len(nodes(test, "low")) == 2)
    make("high", priorityClassName=urgent)
    test.wait("the more important one runs", lambda: len(nodes(test, "high")) == 2)
    test.equal(says(test, "low", "Evicted")[:2], ("True", "Preempted"), "the other was evicted for it")
    test.wait("it waits", lambda: says(test, "low", "QuotaReserved")[0] == "False")
    test.equal(says(test, "high", "Evicted")[0], None, "nothing was given back")
    test.kubectl("delete", "job", "high")
    test.wait("it runs again", lambda: len(nodes(test, "low")) == 2)
    test.kubectl("delete", "job", "low")
    test.kubectl("delete", "podgroups", "--all")
    test.kubectl("delete", "queue.scheduling.volcano.sh", name, namespace=False)
    test.kubectl("delete", "priorityclass", urgent, namespace=False)
    remove_queues(test, name)


def nodes(test, job):
    return [pod["metadata"]["name"] for pod in test.pods(f"job-name={job}") if "nodeName" in pod["spec"]]
