"""Deployments, ReplicaSets, Jobs, namespaces and nodes, as the controllers and nodes run them."""

import json
import signal

import objects
from harness import KEEP_OUT, RUN, TOLERATION, Background, berth_program, case


def replica_sets(test, selector=""):
    return test.get(test.path("replicasets", group="apps/v1"))["items"]


def images(test):
    return {
        p["spec"]["containers"][0]["image"]
        for p in test.pods()
        if "deletionTimestamp" not in p["metadata"]
    }


def job_path(test, name):
    return test.path("jobs", name, "batch/v1")


@case(
    "a deployment rolls out, forward and back, keeping its replicasets",
    needs=RUN,
    each_kubectl=True,
    seconds=8,
)
def rollout(test):
    def apply(image):
        manifest = objects.deployment("web", replicas=3, image=image)
        test.kubectl("apply", "-f", "-", stdin=manifest)
        ran = test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
        test.match('deployment "web" successfully rolled out', ran.stdout)
        test.wait(f"only {image} runs", lambda: images(test) == {image})

    path = test.path("deployments", "web", "apps/v1")

    def revision():
        return test.get(path)["metadata"]["annotations"]["deployment.kubernetes.io/revision"]

    apply("nginx:1")
    test.equal(revision(), "1", "revision")
    apply("nginx:2")
    test.equal(revision(), "2", "revision")
    test.equal(
        sorted(s["spec"]["replicas"] for s in replica_sets(test)), [0, 3], "replicas of the sets"
    )
    apply("nginx:1")
    test.equal(revision(), "3", "revision")
    test.equal(len(replica_sets(test)), 2, "replicasets: going back takes the old one again")
    history = test.kubectl("rollout", "history", "deploy/web").stdout
    test.match(r"(?m)^2 ", history)
    test.match(r"(?m)^3 ", history)
    test.kubectl("rollout", "undo", "deploy/web")
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.wait("only nginx:2 runs", lambda: images(test) == {"nginx:2"})
    status = test.get(path)["status"]
    test.equal(status["observedGeneration"], test.get(path)["metadata"]["generation"], "generation")
    test.true(objects.is_true(test.get(path), "Available"), "not Available")


@case("owners are told what was done for them", needs=RUN, each_kubectl=True, seconds=4)
def owners_told(test):
    def told(kind, name):
        events = test.get(test.path("events"))["items"]
        return [
            f"{e['type']} {e['reason']} {e['message']}"
            for e in events
            if (e["involvedObject"]["kind"], e["involvedObject"]["name"]) == (kind, name)
        ]

    test.kubectl("apply", "-f", "-", stdin=objects.deployment("web", replicas=3))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    name = replica_sets(test)[0]["metadata"]["name"]
    scaled = f"Normal ScalingReplicaSet Scaled up replica set {name} from 0 to 3"
    test.wait("the deployment is told", lambda: told("Deployment", "web") == [scaled])
    test.wait("the replicaset is told", lambda: len(told("ReplicaSet", name)) == 3)
    test.match(f"Normal SuccessfulCreate Created pod: {name}-", told("ReplicaSet", name)[0])
    shown = test.kubectl("describe", "deployment", "web").stdout
    test.match(r"Normal +ScalingReplicaSet +\S+ +deployment-controller +Scaled up replica", shown)
    test.kubectl("apply", "-f", "-", stdin=objects.job("j", run_for="100ms"))
    test.kubectl("wait", "job/j", "--for=condition=Complete", "--timeout=60s")
    done = "Normal Completed Job completed"
    test.wait("the job is told", lambda: done in told("Job", "j"))


@case("a rollout never has fewer pods ready than it may", needs=RUN, seconds=5)
def rollout_limits(test):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    made = objects.deployment("web", replicas=3, spec={"strategy": strategy})
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    stream = test.watch(test.path("pods") + "?watch=true")
    test.wait("the watch begins", lambda: len(stream.events()) >= 3)
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.wait("only nginx:2 runs", lambda: images(test) == {"nginx:2"} and len(test.pods()) == 3)
    ready, most, least = {}, 0, 99
    for event in stream.events():
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            ready.pop(name, None)
            continue
        marked = "deletionTimestamp" in event["object"]["metadata"]
        ready[name] = objects.is_true(event["object"], "Ready") and not marked
        if len(ready) >= 3:
            least = min(least, sum(ready.values()))
        most = max(most, sum(1 for n in ready))
    test.true(least >= 3, f"only {least} pods were ready at a time")


@case("Recreate ends the old pods before it makes new ones", needs=RUN, seconds=4)
def recreate(test):
    made = objects.deployment("web", replicas=2, spec={"strategy": {"type": "Recreate"}})
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    stream = test.watch(test.path("pods") + "?watch=true")
    made["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    test.kubectl("apply", "-f", "-", stdin=made)
    test.wait("only nginx:2 runs", lambda: images(test) == {"nginx:2"} and len(test.pods()) == 2)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    alive = {}
    for event in stream.events():
        item = event["object"]
        name = item["metadata"]["name"]
        if event["type"] == "DELETED":
            alive.pop(name, None)
        else:
            alive[name] = item["spec"]["containers"][0]["image"]
        test.true(len(set(alive.values())) <= 1, f"old and new at once: {alive}")


@case("a deployment scales up and down", needs=RUN, each_kubectl=True, seconds=3)
def scale(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=1))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    for replicas in (4, 2, 0):
        test.kubectl("scale", "deploy/web", f"--replicas={replicas}")
        test.wait(
            f"{replicas} pods run",
            lambda: len(test.pods()) == replicas
            and all(objects.is_true(p, "Ready") for p in test.pods()),
        )
    test.match(
        r"\nweb +0/0 +0 +0 ",
        test.wait(
            "the status follows",
            lambda: (lambda t: "0/0" in t and t)(test.kubectl("get", "deploy").stdout),
        ),
    )


@case("a deployment that can't progress says so, and rollout status fails", needs=RUN, seconds=4)
def no_progress(test):
    made = objects.deployment(
        "web", cpu="100000", spec={"progressDeadlineSeconds": 1, "minReadySeconds": 0}
    )
    test.kubectl("create", "-f", "-", stdin=made)
    text = test.refused("rollout", "status", "deploy/web", "--timeout=60s")
    test.match('deployment "web" exceeded its progress deadline', text)
    found = objects.condition(test.get(test.path("deployments", "web", "apps/v1")), "Progressing")
    test.equal(
        (found["status"], found["reason"]), ("False", "ProgressDeadlineExceeded"), "condition"
    )


@case("a paused deployment does not roll out until it is resumed", needs=RUN, seconds=3)
def paused(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web"))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.kubectl("rollout", "pause", "deploy/web")
    test.kubectl("set", "image", "deploy/web", "c=nginx:2")
    path = test.path("deployments", "web", "apps/v1")
    test.wait(
        "it is observed",
        lambda: test.get(path)["status"]["observedGeneration"]
        == test.get(path)["metadata"]["generation"],
    )
    test.stays("the old image runs", lambda: images(test) == {"nginx:1"})
    test.kubectl("rollout", "resume", "deploy/web")
    test.wait("the new image runs", lambda: images(test) == {"nginx:2"})


@case("rollout restart makes new pods", needs=RUN, seconds=3)
def restart(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web"))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    old = {p["metadata"]["uid"] for p in test.pods()}
    test.kubectl("rollout", "restart", "deploy/web")
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.wait(
        "others run",
        lambda: not old & {p["metadata"]["uid"] for p in test.pods()} and len(test.pods()) == 1,
    )


@case("old replicasets beyond the history limit are removed", needs=RUN, seconds=5)
def history_limit(test):
    made = objects.deployment("web", spec={"revisionHistoryLimit": 1})
    for image in ("nginx:1", "nginx:2", "nginx:3"):
        made["spec"]["template"]["spec"]["containers"][0]["image"] = image
        test.kubectl("apply", "-f", "-", stdin=made)
        test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.wait("two are left", lambda: len(replica_sets(test)) == 2)


@case(
    "a replicaset replaces a pod that is deleted, and a name that toggles strands nothing",
    needs=RUN,
    seconds=4,
)
def replace_pod(test):
    test.kubectl("create", "-f", "-", stdin=objects.replica_set("web", replicas=2))
    test.wait("both run", lambda: sum(objects.is_true(p, "Ready") for p in test.pods()) == 2)
    gone = test.pods()[0]["metadata"]["name"]
    test.kubectl("delete", "pod", gone)
    test.wait("another runs", lambda: sum(objects.is_true(p, "Ready") for p in test.pods()) == 2)
    test.true(gone not in [p["metadata"]["name"] for p in test.pods()], "the name came back")
    # N02: 1 -> 0 -> 1 with the deletion of the first round still under way.
    for replicas in (0, 1, 0, 1, 0, 1):
        test.kubectl("scale", "rs", "web", f"--replicas={replicas}")
    test.wait("one runs", lambda: [objects.is_true(pod, "Ready") for pod in test.pods()] == [True])


@case(
    "a replicaset adopts pods that match and releases those that no longer do", needs=RUN, seconds=3
)
def adopt(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("stray", labels={"app": "web"}))
    test.kubectl("create", "-f", "-", stdin=objects.replica_set("web", replicas=1))
    test.wait("the stray is adopted", lambda: "ownerReferences" in test.pod("stray")["metadata"])
    test.wait("it is the only one", lambda: len(test.pods()) == 1)
    test.kubectl("label", "pod", "stray", "app=other", "--overwrite")
    test.wait("it is released and replaced", lambda: len(test.pods("app=web")) == 1)
    test.wait("it has no owner", lambda: "ownerReferences" not in test.pod("stray")["metadata"])


@case(
    "a job completes with its completions, not more than parallelism at once",
    needs=RUN,
    each_kubectl=True,
    seconds=4,
)
def job_completes(test):
    test.kubectl(
        "create",
        "-f",
        "-",
        stdin=objects.job("count", run_for="100ms", completions=5, parallelism=2),
    )
    most = 0

    def complete():
        nonlocal most
        active = [p for p in test.pods() if p["status"].get("phase") not in ("Succeeded", "Failed")]
        most = max(most, len(active))
        return objects.is_true(test.get(job_path(test, "count")), "Complete")

    test.wait("it is complete", complete)
    test.kubectl("wait", "job/count", "--for=condition=Complete", "--timeout=60s")
    test.true(most <= 2, f"{most} pods at once")
    found = test.get(job_path(test, "count"))
    test.equal(found["status"]["succeeded"], 5, "succeeded")
    test.true("completionTime" in found["status"], "no completion time")
    test.equal(sum(p["status"]["phase"] == "Succeeded" for p in test.pods()), 5, "succeeded pods")
    test.match(r"\ncount +Complete +5/5 ", test.kubectl("get", "jobs").stdout)
    test.stays("no further pods", lambda: len(test.pods()) == 5)


@case("a job whose pods fail too often fails", needs=RUN, each_kubectl=True, seconds=4)
def job_fails(test):
    test.kubectl(
        "create", "-f", "-", stdin=objects.job("bad", run_for="50ms", exit_code=7, backoffLimit=0)
    )
    test.kubectl("wait", "job/bad", "--for=condition=Failed", "--timeout=60s")
    found = objects.condition(test.get(job_path(test, "bad")), "Failed")
    test.equal(found["reason"], "BackoffLimitExceeded", "reason")
    test.equal(test.get(job_path(test, "bad"))["status"]["failed"], 1, "failed pods")
    test.match(r"\nbad +Failed +0/1 ", test.kubectl("get", "jobs").stdout)


@case(
    "a suspended job makes no pods, resumed it does, suspended again it ends them",
    needs=RUN,
    each_kubectl=True,
    seconds=4,
)
def job_suspend(test):
    test.kubectl("create", "-f", "-", stdin=objects.job("held", suspend=True))
    test.wait("it says so", lambda: objects.is_true(test.get(job_path(test, "held")), "Suspended"))
    test.equal(test.pods(), [], "pods")
    test.match(r"\nheld +Suspended +0/1 ", test.kubectl("get", "jobs").stdout)
    test.kubectl("patch", "job", "held", "-p", '{"spec":{"suspend":false}}')
    test.wait("its pod runs", lambda: [p for p in test.pods() if objects.is_true(p, "Ready")])
    test.wait(
        "it says so",
        lambda: objects.condition(test.get(job_path(test, "held")), "Suspended").get("status")
        == "False",
    )
    test.kubectl("patch", "job", "held", "-p", '{"spec":{"suspend":true}}')
    test.wait("its pod is gone", lambda: not test.pods())


@case("a job with a ttl is removed after its end, with its pods", needs=RUN, seconds=4)
def job_ttl(test):
    test.kubectl(
        "create", "-f", "-", stdin=objects.job("brief", run_for="50ms", ttlSecondsAfterFinished=1)
    )
    test.wait("it is gone", lambda: not test.exists(job_path(test, "brief")))
    test.wait("its pods are gone", lambda: not test.pods())


@case("a job past its deadline fails and ends its pods", needs=RUN, seconds=4)
def job_deadline(test):
    test.kubectl("create", "-f", "-", stdin=objects.job("late", activeDeadlineSeconds=1))
    test.kubectl("wait", "job/late", "--for=condition=Failed", "--timeout=60s")
    found = objects.condition(test.get(job_path(test, "late")), "Failed")
    test.equal(found["reason"], "DeadlineExceeded", "reason")
    test.wait(
        "its pod is gone", lambda: not [p for p in test.pods() if p["status"]["phase"] == "Running"]
    )


@case("a deleted job takes its pods along", needs=RUN, each_kubectl=True, seconds=3)
def job_deleted(test):
    test.kubectl("create", "-f", "-", stdin=objects.job("j", parallelism=2, completions=2))
    test.wait("its pods run", lambda: sum(objects.is_true(p, "Ready") for p in test.pods()) == 2)
    test.kubectl("delete", "job", "j")
    test.wait("they are gone", lambda: not test.pods())


@case(
    "a new namespace gets its service account and the cluster's authority", needs=("controllers",)
)
def namespace_contents(test):
    path = test.path("configmaps", "kube-root-ca.crt")
    test.wait("the authority is there", lambda: test.exists(path))
    test.match("BEGIN CERTIFICATE", test.get(path)["data"]["ca.crt"])
    test.kubectl("delete", "serviceaccount", "default")
    test.wait(
        "the account comes back", lambda: test.exists(test.path("serviceaccounts", "default"))
    )
    test.kubectl("delete", "configmap", "kube-root-ca.crt")
    test.wait("the authority comes back", lambda: test.exists(path))


@case("a pod that restarts counts its restarts", needs=RUN, seconds=3)
def restarts(test):
    annotations = {"berth.dev/run-for": "100ms", "berth.dev/exit-code": "1"}
    made = objects.pod("p", annotations=annotations, restartPolicy="OnFailure")
    test.kubectl("create", "-f", "-", stdin=made)

    def restarted():
        statuses = test.pod("p")["status"].get("containerStatuses", [])
        return statuses and statuses[0]["restartCount"] >= 1

    test.wait("it restarted", restarted)
    test.match(r"\np +\d/1 +\S+ +[1-9]", test.kubectl("get", "pods").stdout)


@case(
    "labels and taints of a running pod's node do not move it, NoExecute does", needs=RUN, seconds=4
)
def no_execute(test):
    node = test.unique("evicting")
    test.make_node(node)
    spec = objects.on(node)
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", **spec))
    test.placed("p", node)
    test.kubectl("taint", "node", node, "soft=x:NoSchedule")
    test.stays("it stays", lambda: "deletionTimestamp" not in test.pod("p")["metadata"])
    test.kubectl("taint", "node", node, "hard=x:NoExecute")
    test.wait("it is deleted", lambda: "deletionTimestamp" in test.pod("p")["metadata"])


@case("a pod that tolerates a taint for a time stays for so long", needs=RUN, seconds=4)
def tolerated_for_a_time(test):
    node = test.unique("evicting")
    test.make_node(node)
    for name, seconds in (("brief", 10), ("long", 3600), ("ever", None)):
        toleration = {"key": "hard", "operator": "Exists", "effect": "NoExecute"}
        spec = objects.on(node)
        limit = {} if seconds is None else {"tolerationSeconds": seconds}
        spec["tolerations"] = [*spec["tolerations"], toleration | limit]
        test.create(test.path("pods"), objects.pod(name, **spec))
        test.placed(name, node)
    test.kubectl("taint", "node", node, "hard=x:NoExecute")
    taints = test.get(f"/api/v1/nodes/{node}")["spec"]["taints"]
    test.true(any(t["key"] == "hard" for t in taints), f"taints: {taints}")
    test.stays("all stay", lambda: not any_marked(test))
    test.wait("the first is deleted", lambda: any_marked(test) == ["brief"])
    test.stays("the others stay", lambda: any_marked(test) == ["brief"])
    found = objects.condition(test.pod("brief"), "DisruptionTarget")
    test.equal((found["status"], found["reason"]), ("True", "DeletionByTaintManager"), "condition")
    events = test.path("events") + "?fieldSelector=reason%3DTaintManagerEviction"
    test.wait("who marks it says so", lambda: marked_for_deletion(test, events) == ["Marking for deletion Pod " + test.namespace + "/brief"])


def marked_for_deletion(test, events):
    return [event["message"] for event in test.get(events)["items"] if event["source"]["component"] == "taint-eviction-controller"]


def any_marked(test):
    return sorted(
        p["metadata"]["name"] for p in test.pods() if "deletionTimestamp" in p["metadata"]
    )


@case(
    "an indexed job gives each of its pods an index, and each index one success",
    needs=RUN,
    each_kubectl=True,
    seconds=4,
)
def job_indexed(test):
    made = objects.job(
        "row", run_for="50ms", completions=3, parallelism=2, completionMode="Indexed"
    )
    test.kubectl("create", "-f", "-", stdin=made)
    test.kubectl("wait", "job/row", "--for=condition=Complete", "--timeout=60s")
    status = test.get(job_path(test, "row"))["status"]
    test.equal((status["succeeded"], status["completedIndexes"]), (3, "0-2"), "status")
    key = "batch.kubernetes.io/job-completion-index"
    test.equal(sorted(p["metadata"]["annotations"][key] for p in test.pods()), list("012"), "index")
    for pod in test.pods():
        index = pod["metadata"]["annotations"][key]
        test.equal(pod["spec"]["hostname"], f"row-{index}", "host name")
        names = [v["name"] for v in pod["spec"]["containers"][0]["env"]]
        test.true("JOB_COMPLETION_INDEX" in names, f"environment: {names}")
    test.match(r"Completed Indexes: +0-2", test.kubectl("describe", "job", "row").stdout)


@case("a pod is ready when its time to readiness is over", needs=RUN, seconds=10)
def readiness(test):
    made = objects.deployment("web", annotations={"berth.dev/ready-after": "8s"})
    test.kubectl("create", "-f", "-", stdin=made)
    test.wait("it runs", lambda: [p for p in test.pods() if p["status"]["phase"] == "Running"])
    test.true(not objects.is_true(test.pods()[0], "Ready"), "ready at once")
    test.match(r"\nweb-\S+ +0/1 +Running ", test.kubectl("get", "pods").stdout)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.true(objects.is_true(test.pods()[0], "Ready"), "not ready")


@case("a node that falls silent loses its pods, and is taken back", needs=RUN, seconds=60)
def node_lost(test):
    name = test.unique("silent")
    template = test.cluster.directory / f"{name}.json"
    manifest = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"e2e": name}},
        "spec": {"taints": [KEEP_OUT]},
    }
    template.write_text(json.dumps(manifest))
    where = f"/api/v1/nodes?labelSelector=e2e%3D{name}"

    def start_kubelet():
        options = (f"--kubeconfig={test.cluster.kubeconfig}", f"--template={template}", "--count=1")
        kubelet = Background([berth_program(), "nodes", *options])
        test.cleanups.append(kubelet.end)
        return kubelet

    def node():
        found = test.get(where)["items"]
        return found[0] if found else {"spec": {}}

    def taints():
        return {(t["key"], t["effect"]) for t in node()["spec"].get("taints", [])}

    kept_out = {(KEEP_OUT["key"], KEEP_OUT["effect"])}
    test.cleanups.append(lambda: test.http("DELETE", f"/api/v1/nodes/{node()['metadata']['name']}"))
    kubelet = start_kubelet()
    test.wait("the node is ready", lambda: objects.is_true(node(), "Ready") and taints() == kept_out)
    hasty = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 0,
    }
    spec = objects.on(name)
    test.create(test.path("pods"), objects.pod("patient", **spec))
    test.create(
        test.path("pods"), objects.pod("hasty", **spec | {"tolerations": [TOLERATION, hasty]})
    )
    test.wait("both run", lambda: all(objects.is_true(p, "Ready") for p in test.pods()))
    kubelet.signal(signal.SIGKILL)
    kubelet.wait(10)
    # Its lease has 40 s to go.
    unreachable = {
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
    }
    test.wait("it is tainted", lambda: taints() == kept_out | unreachable, seconds=120)
    test.equal(objects.condition(node(), "Ready")["status"], "Unknown", "Ready")
    test.match(rf"{name}\S* +NotReady ", test.kubectl("get", "node", "-l", f"e2e={name}").stdout)
    test.wait("a pod is to go", lambda: any_marked(test) == ["hasty"])
    test.wait("no pod is ready", lambda: not any(objects.is_true(p, "Ready") for p in test.pods()))
    test.create(test.path("pods"), objects.pod("late", **spec))
    test.unschedulable("late", r"untolerated taint")
    test.true(test.exists(test.path("pods", "hasty")), "gone though nobody ended it")
    start_kubelet()
    test.wait("it is taken back", lambda: objects.is_true(node(), "Ready") and taints() == kept_out)
    test.wait("what was to go is gone", lambda: not test.exists(test.path("pods", "hasty")))
    test.wait(
        "the others run",
        lambda: [p["metadata"]["name"] for p in test.pods() if objects.is_true(p, "Ready")]
        == ["late", "patient"],
    )
