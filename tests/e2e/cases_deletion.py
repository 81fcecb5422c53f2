"""Deletion: graceful, forced, by selector, of owners, of namespaces, with finalizers and fences."""

import json

import objects
from harness import RUN, case

FOREIGN_UID = "00000000-0000-4000-8000-000000000000"


@case("delete says what it deleted, and that what is missing is missing", each_kubectl=True)
def delete(test):
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a"))
    test.match(r'^configmap "a" deleted', test.kubectl("delete", "cm", "a").stdout)
    text = test.refused("delete", "cm", "a")
    test.equal(text, 'Error from server (NotFound): configmaps "a" not found\n', "text")
    test.kubectl("delete", "cm", "a", "--ignore-not-found")
    test.kubectl("create", "-f", "-", stdin=objects.config_map("a"))
    test.kubectl("delete", "-f", "-", stdin=objects.config_map("a"))


@case("delete by selector and --all deletes just those", each_kubectl=True)
def delete_selected(test):
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        test.kubectl("create", "-f", "-", stdin=objects.config_map(name, labels={"color": color}))
    test.kubectl("delete", "cm", "-l", "color=red")
    test.true(test.exists(test.path("configmaps", "b")), "b is gone")
    test.true(not test.exists(test.path("configmaps", "a")), "a is there")
    test.true(not test.exists(test.path("configmaps", "c")), "c is there")
    test.kubectl("delete", "pods", "--all")
    test.kubectl("delete", "cm", "--all")
    test.true(not test.exists(test.path("configmaps", "b")), "b is there")


@case("a collection is deleted as its selector says")
def delete_collection(test):
    for name, color in (("a", "red"), ("b", "blue")):
        test.create(test.path("configmaps"), objects.config_map(name, labels={"color": color}))
    test.http("DELETE", test.path("configmaps") + "?labelSelector=color%3Dred", status=200)
    names = {c["metadata"]["name"] for c in test.get(test.path("configmaps"))["items"]}
    test.equal(names - {"kube-root-ca.crt"}, {"b"}, "names")
    test.http("DELETE", "/api/v1/namespaces", status=405)


@case("a running pod gets its grace period, then it is gone", needs=RUN, each_kubectl=True)
def delete_running(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.wait("it runs", lambda: objects.is_true(test.pod("p"), "Ready"))
    stream = test.watch(test.path("pods") + "?watch=true")
    test.kubectl("delete", "pod", "p")
    test.true(not test.exists(test.path("pods", "p")), "kubectl ended before the pod was gone")
    test.wait("the watch tells", lambda: "DELETED" in stream.types())
    marked = [e for e in stream.events() if e["object"]["metadata"].get("deletionTimestamp")]
    test.equal(marked[0]["type"], "MODIFIED", "first event with a deletionTimestamp")
    test.equal(marked[0]["object"]["metadata"]["deletionGracePeriodSeconds"], 30, "grace period")


@case("a pod stops as it can, but its grace period ends it", needs=RUN, seconds=9)
def delete_slow(test):
    for name, takes in (("slow", "1h"), ("quick", "500ms")):
        annotations = {"berth.dev/stop-after": takes}
        test.kubectl("create", "-f", "-", stdin=objects.pod(name, annotations=annotations))
        test.wait("it runs", lambda name=name: objects.is_true(test.pod(name), "Ready"))
    test.kubectl("delete", "pod", "slow", "--grace-period=8", "--wait=false")
    test.match(r"\nslow +1/1 +Terminating ", test.kubectl("get", "pods").stdout)
    # kubectl waits for its end: no grace period of 30 s.
    test.kubectl("delete", "pod", "quick", timeout=20)
    test.wait("the grace period ends it", lambda: not test.exists(test.path("pods", "slow")))


@case("delete --force removes a running pod at once", needs=RUN, each_kubectl=True)
def delete_force(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.wait("it runs", lambda: objects.is_true(test.pod("p"), "Ready"))
    ran = test.kubectl("delete", "pod", "p", "--force", "--grace-period=0")
    test.match('pod "p" force deleted', ran.stdout)
    test.match("Warning: Immediate deletion does not wait", ran.stderr)
    test.true(not test.exists(test.path("pods", "p")), "it is there")


@case("a pod that runs nowhere is deleted at once")
def delete_pending(test):
    test.create(test.path("pods"), objects.pod("p", schedulerName="nobody"))
    test.http("DELETE", test.path("pods", "p"), status=200)
    test.true(not test.exists(test.path("pods", "p")), "it is there")


@case("a pod on a node without a kubelet stays, marked, until it is forced")
def delete_lost(test):
    test.create(test.path("pods"), objects.pod("p", nodeName=test.unique("nosuch")))
    answer = test.http(
        "DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 60}, status=200
    ).json()
    test.equal(answer["metadata"]["deletionGracePeriodSeconds"], 60, "grace")
    stamp = answer["metadata"]["deletionTimestamp"]
    later = test.http(
        "DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 90}, status=200
    ).json()
    test.equal(later["metadata"]["deletionTimestamp"], stamp, "a longer grace period")
    sooner = test.http(
        "DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 10}, status=200
    ).json()
    test.true(sooner["metadata"]["deletionTimestamp"] < stamp, "a shorter one changes nothing")
    test.http("DELETE", test.path("pods", "p"), {"gracePeriodSeconds": 0}, status=200)
    test.true(not test.exists(test.path("pods", "p")), "it is there")


@case("a deletion with the uid or version of another is refused")
def delete_fenced(test):
    made = test.create(test.path("configmaps"), objects.config_map("a"))
    path = test.path("configmaps", "a")
    answer = test.http("DELETE", path, {"preconditions": {"uid": FOREIGN_UID}}, status=409)
    test.equal(answer.reason, "Conflict", "reason")
    test.match("the UID in the precondition", answer.message)
    old = {"preconditions": {"resourceVersion": "1"}}
    test.equal(test.http("DELETE", path, old, status=409).reason, "Conflict", "reason")
    right = {"preconditions": {"uid": made["metadata"]["uid"]}}
    test.equal(test.http("DELETE", path, right, status=200).json()["status"], "Success", "status")


@case("an object with a finalizer goes when the finalizer does", each_kubectl=True)
def finalizer(test):
    made = objects.config_map("a")
    made["metadata"]["finalizers"] = ["e2e.test/hold"]
    test.kubectl("create", "-f", "-", stdin=made)
    test.kubectl("delete", "cm", "a", "--wait=false")
    found = test.get(test.path("configmaps", "a"))
    test.true("deletionTimestamp" in found["metadata"], "not marked")
    waiting = test.start_kubectl("wait", "cm", "a", "--for=delete", "--timeout=60s")
    headers = {"Content-Type": "application/merge-patch+json"}
    more = {"metadata": {"finalizers": ["e2e.test/hold", "e2e.test/more"]}}
    answer = test.http("PATCH", test.path("configmaps", "a"), json.dumps(more), headers=headers)
    test.true(answer.status in (403, 422), f"a finalizer was added after deletion: {answer.status}")
    test.kubectl("patch", "cm", "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    test.equal(waiting.wait(60), 0, "exit status of wait")
    test.true(not test.exists(test.path("configmaps", "a")), "it is there")


@case("a deleted deployment takes its replicasets and pods along", needs=RUN, each_kubectl=True)
def background(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.kubectl("delete", "deploy", "web")
    test.wait(
        "all are gone",
        lambda: not test.pods()
        and not test.get(test.path("replicasets", group="apps/v1"))["items"],
    )


@case("a deployment deleted with --cascade=orphan leaves its pods running", needs=RUN)
def orphan(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.kubectl("delete", "deploy", "web", "--cascade=orphan")
    path = test.path("replicasets", group="apps/v1")

    def orphaned():
        sets = test.get(path)["items"]
        return sets and not any(s["metadata"].get("ownerReferences") for s in sets) and sets[0]

    orphan_set = test.wait("the replicaset has no owner", orphaned)
    test.equal(len(test.pods()), 2, "pods")
    test.kubectl("delete", "rs", orphan_set["metadata"]["name"], "--cascade=orphan")
    test.wait(
        "the pods have no owner",
        lambda: not any("ownerReferences" in p["metadata"] for p in test.pods()),
    )
    test.stays("both pods run", lambda: sum(objects.is_true(p, "Ready") for p in test.pods()) == 2)


@case("a deployment takes back the replicaset that it left", needs=RUN, seconds=4)
def taken_back(test):
    sets = test.path("replicasets", group="apps/v1")
    path = test.path("deployments", "web", "apps/v1")
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    before = [test.get(sets)["items"][0]["metadata"]["uid"], *(p["metadata"]["uid"] for p in test.pods())]
    test.kubectl("delete", "deploy", "web", "--cascade=orphan")
    test.wait("it is gone", lambda: not test.exists(path))
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    found = test.get(sets)["items"]
    after = [*(s["metadata"]["uid"] for s in found), *(p["metadata"]["uid"] for p in test.pods())]
    test.equal(sorted(after), sorted(before), "the replicaset and its pods")
    web = test.get(path)
    test.equal(found[0]["metadata"]["ownerReferences"][0]["uid"], web["metadata"]["uid"], "owner")
    test.equal(web["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1", "revision")
    test.true("collisionCount" not in web["status"], "no name was taken")


@case("a deployment deleted in the foreground goes after its pods", needs=RUN)
def foreground(test):
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
    test.kubectl("delete", "deploy", "web", "--cascade=foreground")
    test.equal(test.pods(), [], "pods")
    test.equal(test.get(test.path("replicasets", group="apps/v1"))["items"], [], "replicasets")


@case("what names an owner that never was or is another now is collected", needs=("controllers",))
def no_owner(test):
    owner = test.create(test.path("configmaps"), objects.config_map("owner"))

    def owned(name, uid):
        made = objects.config_map(name)
        made["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        ]
        test.create(test.path("configmaps"), made)

    owned("kept", owner["metadata"]["uid"])
    # Same name, another uid: identity is the uid.
    owned("lost", FOREIGN_UID)
    test.wait("it is collected", lambda: not test.exists(test.path("configmaps", "lost")))
    test.stays("the other one is kept", lambda: test.exists(test.path("configmaps", "kept")))
    test.kubectl("delete", "cm", "owner")
    test.wait("it follows its owner", lambda: not test.exists(test.path("configmaps", "kept")))


@case(
    "a deleted namespace empties, refuses what is new, and goes",
    needs=RUN,
    each_kubectl=True,
    seconds=3,
)
def namespace(test):
    name = test.unique("team")
    test.make_namespace(name)
    held = objects.config_map("held")
    held["metadata"]["finalizers"] = ["e2e.test/hold"]
    test.kubectl("create", "-f", "-", stdin=held, namespace=name)
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2), namespace=name)
    test.kubectl("rollout", "status", "deploy/web", "--timeout=60s", namespace=name)
    ran = test.kubectl("delete", "ns", name, "--wait=false")
    test.match(f'^namespace "{name}" deleted', ran.stdout)
    found = test.get(f"/api/v1/namespaces/{name}")
    test.equal(found["status"]["phase"], "Terminating", "phase")
    test.match(rf"{name} +Terminating ", test.kubectl("get", "ns", name).stdout)
    text = test.refused("create", "-f", "-", stdin=objects.config_map("late"), namespace=name)
    test.match(r"\(Forbidden\).*because it is being terminated", text)
    test.wait("its pods are gone", lambda: not test.get(f"/api/v1/namespaces/{name}/pods")["items"])
    test.stays("it waits for the finalizer", lambda: test.exists(f"/api/v1/namespaces/{name}"))
    test.kubectl(
        "patch",
        "cm",
        "held",
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":null}}',
        namespace=name,
    )
    test.wait("it is gone", lambda: not test.exists(f"/api/v1/namespaces/{name}"))
    # A new one of the same name is another namespace.
    test.make_namespace(name)
    names = [
        c["metadata"]["name"] for c in test.get(f"/api/v1/namespaces/{name}/configmaps")["items"]
    ]
    test.true("held" not in names, f"the old one's objects are there: {names}")


@case("a namespace goes however its dependents are to go", needs=("controllers",))
def namespace_policies(test):
    for policy in ("foreground", "orphan", "background"):
        name = test.namespace + "-" + policy
        test.make_namespace(name)
        test.kubectl("create", "-f", "-", stdin=objects.config_map("a"), namespace=name)
        test.kubectl("delete", "namespace", name, f"--cascade={policy}", "--wait=false")
        test.wait("it is gone", lambda name=name: not test.exists(f"/api/v1/namespaces/{name}"))


@case("evicting a pod deletes it; one of another name is not found", needs=RUN)
def eviction(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.wait("it runs", lambda: objects.is_true(test.pod("p"), "Ready"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    test.http("POST", test.path("pods", "p/eviction"), body, status=201)
    test.wait("it is gone", lambda: not test.exists(test.path("pods", "p")))
    body["metadata"]["name"] = "nosuch"
    test.http("POST", test.path("pods", "nosuch/eviction"), body, status=404)


@case("drain cordons the node and evicts its pods", needs=RUN, each_kubectl=True)
def drain(test):
    node = test.unique("drained")
    test.make_node(node)
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", pod_spec=objects.on(node)))
    test.wait("it is placed", lambda: [p for p in test.pods() if p["spec"].get("nodeName") == node])
    first = test.pods()[0]["metadata"]["name"]
    # There is no kubelet that ends the pod: it is marked, and kubectl waits for it in vain.
    ran = test.kubectl("drain", node, "--force", "--timeout=3s", status=None)
    test.match(f"node/{node} cordoned", ran.stdout)
    test.true("deletionTimestamp" in test.pod(first)["metadata"], "the pod is not being deleted")
    test.kubectl("delete", "pod", first, "--force", "--grace-period=0")
    test.wait(
        "another is pending", lambda: [p for p in test.pods() if p["metadata"]["name"] != first]
    )
    test.stays(
        "the other one is not placed there",
        lambda: not any(p["spec"].get("nodeName") for p in test.pods()),
    )
