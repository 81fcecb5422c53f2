"""What keeps pods by other rules than a ReplicaSet's, and the policies of Jobs."""

import datetime

import objects
from cases_workloads import images, job_path
from harness import RUN, case


def owner(kind, name, *, version="apps/v1", pod_spec=None, annotations=None, **spec):
    """Of a kind that keeps pods of a template, which it selects by the label app."""
    made = objects.deployment(name, pod_spec=pod_spec, annotations=annotations)
    del made["spec"]["replicas"]
    return made | {"apiVersion": version, "kind": kind, "spec": made["spec"] | spec}


def ready(test):
    return sorted(p["metadata"]["name"] for p in test.pods() if objects.is_true(p, "Ready"))


def image_of(test, pod):
    return test.pod(pod)["spec"]["containers"][0]["image"]


@case(
    "a replicationcontroller keeps its pods, scales, adopts and releases",
    needs=RUN,
    each_kubectl=True,
    seconds=5,
)
def replication_controller(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("stray", labels={"app": "old"}))
    made = owner(
        "ReplicationController", "old", version="v1", replicas=2, selector={"app": "old"}
    )
    test.kubectl("apply", "-f", "-", stdin=made)
    test.wait("two run", lambda: len(ready(test)) == 2)
    test.true("stray" in ready(test), "the stray is not adopted")
    path = test.path("replicationcontrollers", "old")
    test.wait("it says so", lambda: test.get(path)["status"].get("availableReplicas") == 2)
    test.match(r"\nold +2 +2 +2 ", test.kubectl("get", "rc").stdout)
    test.kubectl("scale", "rc/old", "--replicas=3")
    test.wait("three run", lambda: len(ready(test)) == 3)
    test.equal(test.get(path + "/scale")["status"]["selector"], "app=old", "selector of the scale")
    test.kubectl("label", "pod", "stray", "app=other", "--overwrite")
    test.wait("it is replaced", lambda: len(test.pods("app=old")) == 3)
    test.wait("it is released", lambda: "ownerReferences" not in test.pod("stray")["metadata"])
    test.kubectl("delete", "rc", "old")
    test.wait("its pods go with it", lambda: ready(test) == ["stray"])


@case(
    "a statefulset's pods come in order, are updated from the last, and go in reverse",
    needs=RUN,
    each_kubectl=True,
    seconds=20,
)
def stateful_set(test):
    made = owner(
        "StatefulSet",
        "db",
        annotations={"berth.dev/ready-after": "1s"},
        replicas=3,
        serviceName="db",
    )
    path = test.path("statefulsets", "db", "apps/v1")
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    test.equal(ready(test), ["db-0", "db-1", "db-2"], "pods")
    for earlier, later in (("db-0", "db-1"), ("db-1", "db-2")):
        was_ready = objects.condition(test.pod(earlier), "Ready")["lastTransitionTime"]
        began = test.pod(later)["metadata"]["creationTimestamp"]
        test.true(began >= was_ready, f"{later} began {began}, {earlier} was ready {was_ready}")
    test.equal(test.pod("db-1")["spec"]["hostname"], "db-1", "host name")
    test.match(r"\ndb +3/3 ", test.kubectl("get", "sts").stdout)
    # A canary, then all.
    first = test.get(path)["status"]["currentRevision"]
    test.merge(path, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}})
    test.kubectl("set", "image", "sts/db", "c=nginx:2")
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    shown = [image_of(test, f"db-{i}") for i in range(3)]
    test.equal(shown, ["nginx:1", "nginx:1", "nginx:2"], "images with a partition")
    # kubectl 1.32 that waits may take the pod that follows for the one that goes.
    before = test.get(test.path("pods", "db-0"))["metadata"]["uid"]
    test.kubectl("delete", "pod", "db-0", "--wait=false")
    test.wait(
        "it comes back",
        lambda: ready(test) == ["db-0", "db-1", "db-2"]
        and test.get(test.path("pods", "db-0"))["metadata"]["uid"] != before,
    )
    test.equal(image_of(test, "db-0"), "nginx:1", "what is below the partition comes back as")
    test.merge(path, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    test.equal(images(test), {"nginx:2"}, "images")
    test.true(test.get(path)["status"]["currentRevision"] != first, "the revision is the old one")
    test.kubectl("rollout", "undo", "sts/db")
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    test.equal(images(test), {"nginx:1"}, "images after going back")
    test.equal(test.get(path)["status"]["currentRevision"], first, "revision after going back")
    test.kubectl("scale", "sts/db", "--replicas=1")
    test.wait("the first is left", lambda: [p["metadata"]["name"] for p in test.pods()] == ["db-0"])


@case("a statefulset makes claims and keeps them as it is told", needs=RUN, seconds=5)
def stateful_claims(test):
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    made = owner(
        "StatefulSet",
        "db",
        replicas=2,
        serviceName="db",
        podManagementPolicy="Parallel",
        volumeClaimTemplates=[claim],
        persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Delete"},
    )
    test.kubectl("apply", "-f", "-", stdin=made)
    claims = test.path("persistentvolumeclaims")

    def names():
        return sorted(c["metadata"]["name"] for c in test.get(claims)["items"])

    test.wait("there are two claims", lambda: names() == ["data-db-0", "data-db-1"])
    test.wait("and two pods", lambda: len(test.pods()) == 2)
    used = [v["persistentVolumeClaim"] for v in test.pod("db-1")["spec"]["volumes"] if v["name"] == "data"]
    test.equal(used, [{"claimName": "data-db-1"}], "claim of db-1")
    test.kubectl("delete", "sts", "db")
    test.wait("its pods are gone", lambda: not test.pods())

    # Where claims are protected, somebody else lets them go.
    def kept():
        found = test.get(claims)["items"]
        return [c for c in found if "deletionTimestamp" not in c["metadata"]]

    test.wait("its claims go with it", lambda: not kept())


@case(
    "a daemonset has a pod on each node that it fits, also while it is updated",
    needs=RUN,
    each_kubectl=True,
    seconds=8,
)
def daemon_set(test):
    mine = test.unique("daemons")
    free = [n for n in test.get("/api/v1/nodes")["items"] if not n["spec"].get("taints")]
    nodes = sorted(n["metadata"]["name"] for n in free)[:2]

    def label(node, value):
        test.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": {mine: value}}})

    for node in nodes:
        label(node, "yes")
        test.cleanups.append(lambda node=node: label(node, None))
    made = owner("DaemonSet", "agent", pod_spec={"nodeSelector": {mine: "yes"}})
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    test.equal(sorted(p["spec"]["nodeName"] for p in test.pods()), nodes, "nodes")
    test.match(r"\nagent +2 +2 +2 +2 +2 ", test.kubectl("get", "ds").stdout)
    test.kubectl("set", "image", "ds/agent", "c=nginx:2")
    test.kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    test.wait("only the new image runs", lambda: images(test) == {"nginx:2"})
    test.kubectl("rollout", "undo", "ds/agent")
    test.kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    test.wait("only the old image runs", lambda: images(test) == {"nginx:1"})
    history = test.kubectl("rollout", "history", "ds/agent").stdout
    test.match(r"(?m)^2 ", history)
    test.match(r"(?m)^3 ", history)
    label(nodes[0], None)
    test.wait("one is left", lambda: [p["spec"].get("nodeName") for p in test.pods()] == nodes[1:])


@case("a cronjob makes jobs by its schedule", needs=RUN, each_kubectl=True, seconds=10)
def cron_job(test):
    job = objects.job("tick", run_for="50ms")
    made = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick"},
        "spec": {"schedule": "@every 1s", "jobTemplate": {"spec": job["spec"]}},
    }
    test.kubectl("apply", "-f", "-", stdin=made)
    path = test.path("cronjobs", "tick", "batch/v1")

    def jobs():
        return test.get(test.path("jobs", group="batch/v1"))["items"]

    test.wait("a job is complete", lambda: any(objects.is_true(j, "Complete") for j in jobs()))
    test.match(r"^tick-\d+$", jobs()[0]["metadata"]["name"], "name of the job")
    test.wait("the cronjob saw it", lambda: "lastSuccessfulTime" in test.get(path)["status"])
    test.true("lastScheduleTime" in test.get(path)["status"], "no time of the last start")
    test.match(r"\ntick +@every 1s +<none> +False ", test.kubectl("get", "cronjobs").stdout)
    test.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":true}}')
    test.kubectl("delete", "cronjob", "tick")
    test.wait("its jobs and pods go with it", lambda: not jobs() and not test.pods())


@case(
    "a job's policies say which failures end it, or an index, and when enough succeeded",
    needs=RUN,
    seconds=15,
)
def job_policies(test):
    def make(name, *, run_for="50ms", exit_code=0, **spec):
        made = objects.job(name, run_for=run_for, exit_code=exit_code, **spec)
        test.kubectl("create", "-f", "-", stdin=made)

    def status(name):
        return test.get(job_path(test, name))["status"]

    def reason(name, kind):
        test.kubectl("wait", f"job/{name}", f"--for=condition={kind}", "--timeout=60s")
        return objects.condition(test.get(job_path(test, name)), kind)["reason"]

    on_seven = {"onExitCodes": {"operator": "In", "values": [7]}}
    rows = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    make("early", exit_code=7, podFailurePolicy={"rules": [{"action": "FailJob"} | on_seven]})
    test.equal(reason("early", "Failed"), "PodFailurePolicy", "reason")
    test.equal(status("early")["failed"], 1, "failed pods")
    make("limited", exit_code=7, backoffLimitPerIndex=0, **rows)
    test.equal(reason("limited", "Failed"), "FailedIndexes", "reason")
    test.equal(status("limited")["failedIndexes"], "0-2", "failed indexes")
    make("few", exit_code=7, backoffLimitPerIndex=0, maxFailedIndexes=1, **rows)
    test.equal(reason("few", "Failed"), "MaxFailedIndexesExceeded", "reason")
    make(
        "index",
        exit_code=7,
        backoffLimitPerIndex=9,
        podFailurePolicy={"rules": [{"action": "FailIndex"} | on_seven]},
        **rows,
    )
    test.equal(reason("index", "Failed"), "FailedIndexes", "reason")
    make("enough", successPolicy={"rules": [{"succeededCount": 1}]}, **(rows | {"parallelism": 1}))
    test.equal(reason("enough", "Complete"), "SuccessPolicy", "reason")
    test.equal(status("enough")["completedIndexes"], "0", "completed indexes")


@case("a cronjob's schedule is of its time zone", needs=RUN, each_kubectl=True, seconds=2)
def cron_zone(test):
    spec = {"schedule": "30 2 * * *", "timeZone": "Asia/Atlantis", "jobTemplate": {"spec": objects.job("tick", run_for="50ms")["spec"]}}
    made = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"}, "spec": spec}
    text = test.refused("create", "-f", "-", stdin=made)
    test.match(r'spec.timeZone: Invalid value: "Asia/Atlantis": unknown time zone Asia/Atlantis', text)
    spec["timeZone"] = "Asia/Kolkata"
    test.kubectl("create", "-f", "-", stdin=made)
    test.match(r"\ntick +30 2 \* \* \* +Asia/Kolkata +False ", test.kubectl("get", "cronjobs").stdout)
    # As if it had made none for two days: of the starts that it missed the last is made up for.
    past = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    test.merge(test.path("cronjobs", "tick", "batch/v1") + "/status", {"status": {"lastScheduleTime": past}})
    job = test.wait("there is its job", lambda: (test.get(test.path("jobs", group="batch/v1"))["items"] or [None])[0])
    at = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    test.match(r"T02:30:00\+05:30$", at, "time of the job")
    minutes = int(datetime.datetime.fromisoformat(at).timestamp()) // 60
    test.equal(job["metadata"]["name"], f"tick-{minutes}", "name of the job")
