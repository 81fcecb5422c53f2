"""What keeps pods by other rules than a ReplicaSet's."""

import objects
from harness import RUN, case


def owner(kind, name, *, version="apps/v1", pod_spec=None, annotations=None, **spec):
    """Of a kind that keeps pods of a template, which it selects by the label app."""
    made = objects.deployment(name, pod_spec=pod_spec, annotations=annotations)
    del made["spec"]["replicas"]
    return made | {"apiVersion": version, "kind": kind, "spec": made["spec"] | spec}


def ready(test):
    return sorted(p["metadata"]["name"] for p in test.pods() if objects.is_true(p, "Ready"))


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
    test.true("ownerReferences" not in test.pod("stray")["metadata"], "it is not released")
    test.kubectl("delete", "rc", "old")
    test.wait("its pods go with it", lambda: ready(test) == ["stray"])
