"""What charts render for typical workloads (manifests/): applied, running, applied again, upgraded, deleted."""

import json
import pathlib
import re

import objects
from harness import RUN, case

FOLDER = pathlib.Path(__file__).resolve().parent / "manifests"
ROLLED_OUT = "--timeout=90s"


def applied(test, path):
    """What is stored of the file's objects, but for what others than its user write."""
    found = json.loads(test.kubectl("get", "-f", path, "-o", "json").stdout)
    kept = []
    for item in found.get("items", [found]):
        item.pop("status", None)
        for volatile in ("resourceVersion", "managedFields"):
            item["metadata"].pop(volatile, None)
        kept.append(item)
    return kept


def apply(test, name, *more):
    """Applies a file, and again: nothing changes the second time, and nothing would."""
    path = str(FOLDER / f"{name}.yaml")
    made = test.kubectl("apply", "-f", path, *more).stdout.splitlines()
    word = "serverside-applied" if more else "created"
    test.true(made and all(line.endswith(f" {word}") for line in made), "\n".join(made))
    before = applied(test, path)
    # kubectl says "configured" of fields that are written and never shown, as a Secret's stringData.
    test.kubectl("apply", "-f", path, *more)
    test.equal(applied(test, path), before, "what is stored after it was applied again")
    test.equal(test.kubectl("diff", "-f", path).stdout, "", "difference to what is applied")
    return path


def delete(test, *paths):
    for path in paths:
        test.kubectl("delete", "-f", path, "--wait=false")


@case("a chart of a web application rolls out, is upgraded without losing pods, and goes", needs=RUN, seconds=20)
def web(test):
    path = apply(test, "web")
    test.kubectl("rollout", "status", "deployment/shop-web", ROLLED_OUT)
    test.match(r"shop-web +3/3 +3 +3 ", test.kubectl("get", "deployments").stdout)
    slices = lambda: test.kubectl("get", "endpointslices", "-l", "kubernetes.io/service-name=shop-web").stdout
    test.wait("the Service has its pods", lambda: re.search(r"8080,9113|9113,8080", slices()) is not None)
    test.wait("the budget counts them", lambda: re.search(r"shop-web +2 +N/A +1 ", test.kubectl("get", "pdb").stdout))
    pod = test.pods("app.kubernetes.io/name=web")[0]
    test.equal(pod["status"]["qosClass"], "Burstable", "QoS class")
    upgraded = (FOLDER / "web.yaml").read_text().replace("shop/web:2.1", "shop/web:2.2")
    test.match(r"deployment.apps/shop-web configured", test.kubectl("apply", "-f", "-", stdin=upgraded).stdout)
    test.kubectl("rollout", "status", "deployment/shop-web", ROLLED_OUT)
    test.match(r"REVISION.*\n1 .*\n2 ", test.kubectl("rollout", "history", "deployment/shop-web").stdout)
    test.kubectl("rollout", "undo", "deployment/shop-web")
    test.kubectl("rollout", "status", "deployment/shop-web", ROLLED_OUT)
    images = {c["image"] for pod in test.pods("app.kubernetes.io/name=web") if "deletionTimestamp" not in pod["metadata"] for c in pod["spec"]["containers"]}
    test.true("registry.example.com/shop/web:2.1" in images, f"images {images}")
    delete(test, path)
    test.wait("its pods are gone", lambda: not test.pods("app.kubernetes.io/name=web"))


@case("a chart of a database has its claims bound and its pods in order", needs=RUN, alone=True, seconds=20)
def database(test):
    path = apply(test, "database", "--server-side")
    try:
        test.kubectl("rollout", "status", "statefulset/ledger-db", ROLLED_OUT)
        test.equal(sorted(p["metadata"]["name"] for p in test.pods("app.kubernetes.io/name=db")), ["ledger-db-0", "ledger-db-1"], "pods")
        table = lambda: test.kubectl("get", "pvc").stdout
        test.wait("its claims are bound", lambda: len(re.findall(r"data-ledger-db-\d +Bound .* 8Gi +RWO +ledger-fast", table())) == 2)
        may = ("auth", "can-i", "patch", "endpoints", f"--as=system:serviceaccount:{test.namespace}:ledger-db")
        test.equal(test.kubectl(*may, status=None).stdout.strip(), "yes", "what its account may")
        test.kubectl("scale", "statefulset/ledger-db", "--replicas=1")
        test.wait("the last pod goes", lambda: len(test.pods("app.kubernetes.io/name=db")) == 1)
        test.true("data-ledger-db-1" in table(), "its claim stays")
    finally:
        delete(test, path)
        test.kubectl("delete", "pvc", "--all")


@case("a chart of an agent puts a pod on every node", needs=RUN, alone=True, seconds=15)
def agent(test):
    path = apply(test, "agent")
    try:
        test.kubectl("rollout", "status", "daemonset/watch-agent", ROLLED_OUT)
        status = test.get(test.path("daemonsets", "watch-agent", group="apps/v1"))["status"]
        test.true(status["desiredNumberScheduled"] == status["numberReady"] > 1, f"status {status}")
        pods = test.pods("app.kubernetes.io/name=agent")
        test.equal({p["spec"]["priority"] for p in pods}, {1_000_000}, "priority")
        test.equal(len({p["spec"]["nodeName"] for p in pods}), len(pods), "nodes")
    finally:
        delete(test, path)
    test.wait("its pods are gone", lambda: not test.pods("app.kubernetes.io/name=agent"))


@case("a chart of an operator: its kind, an object of it with defaults and columns, its rights", needs=RUN, alone=True, seconds=15)
def operator(test):
    path = apply(test, "operator")
    try:
        test.kubectl("wait", "--for=condition=Established", "crd/caches.store.example.com", "--timeout=30s")
        test.kubectl("rollout", "status", "deployment/cache-operator", ROLLED_OUT)
        apply(test, "cache")
        spec = test.get(test.path("caches", "sessions", group="store.example.com/v1"))["spec"]
        test.equal((spec["replicas"], spec["eviction"]), (1, "allkeys-lru"), "defaults")
        test.equal(spec["nodes"], [{"name": "one", "weight": 1}, {"name": "two", "weight": 3}], "nodes")
        test.kubectl("scale", "cache/sessions", "--replicas=3")
        status = ("patch", "cache", "sessions", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Ready"}}')
        test.kubectl(*status)
        test.match(r"NAME +REPLICAS +PHASE +AGE\nsessions +3 +Ready ", test.kubectl("get", "ca").stdout)
        wrong = ("patch", "cache", "sessions", "--type=merge", "-p", '{"spec":{"replicas":10}}')
        test.match(r"spec.replicas in body should be less than or equal to 9", test.refused(*wrong))
        test.match("eviction", test.kubectl("explain", "cache.spec").stdout)
    finally:
        delete(test, path)
    test.wait("its kind is gone", lambda: not test.exists("/apis/store.example.com/v1"))


@case("a team's namespace: quota, limits, an indexed Job and a CronJob", needs=RUN, seconds=15)
def batch(test):
    path = apply(test, "batch")
    test.kubectl("wait", "--for=condition=Complete", "job/shards", "--timeout=60s")
    test.equal(test.get(test.path("jobs", "shards", group="batch/v1"))["status"]["completedIndexes"], "0-3", "indexes")
    pod = test.pods("batch.kubernetes.io/job-name=shards")[0]
    wanted = {"limits": {"cpu": "200m", "memory": "64Mi"}, "requests": {"cpu": "20m", "memory": "16Mi"}}
    test.equal(pod["spec"]["containers"][0]["resources"], wanted, "resources")
    test.match(r"nightly +15 3 \* \* \* +Etc/UTC +False +0 ", test.kubectl("get", "cronjobs").stdout)
    test.kubectl("create", "job", "--from=cronjob/nightly", "now")
    test.wait("it runs", lambda: bool(test.pods("batch.kubernetes.io/job-name=now")))
    # berth's own server counts; beside another one that is its controllers' affair.
    if test.cluster.tier == "embedded":
        test.wait("jobs are counted", lambda: "count/jobs.batch: 2/10" in test.kubectl("get", "quota").stdout)
        large = objects.pod("p")
        large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}, "limits": {"cpu": "3", "memory": "1Mi"}}
        test.match("exceeded quota: team, requested: .*requests.cpu=3", test.refused("create", "-f", "-", stdin=large))
    delete(test, path)
