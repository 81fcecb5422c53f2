"""Claims, volumes, and pods that go where their volumes are."""

import objects
from harness import RUN, case

STORAGE = "storage.k8s.io/v1"


def claim(name, *, size="1Gi", **spec):
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": wanted | spec,
    }


def is_ready(node):
    conditions = node["status"].get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) and not node["spec"].get("taints")


def phase(test, name):
    return test.get(test.path("persistentvolumeclaims", name))["status"]["phase"]


def volume_path(name):
    return f"/api/v1/persistentvolumes/{name}"


def make_class(test, **spec):
    """A class of simulated volumes; its name."""
    name = test.unique("class")
    made = {
        "apiVersion": STORAGE,
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "berth.dev/simulated",
    }
    test.kubectl("create", "-f", "-", stdin=made | spec)
    return name


def ready_hosts(test):
    nodes = [n["metadata"] for n in test.get("/api/v1/nodes")["items"] if is_ready(n)]
    return sorted(n["labels"]["kubernetes.io/hostname"] for n in nodes)


def local_volume_of(name, class_name, size, host, **spec):
    place = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    made = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": class_name,
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [place]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": made | spec}


@case("a claim is bound to a volume of its class, and gives it back", each_kubectl=True, needs=RUN)
def claim_is_bound(test):
    name = test.unique("volume")
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "hostPath": {"path": "/data"},
        },
    }
    test.kubectl("create", "-f", "-", stdin=volume)
    test.wait("it is available", lambda: test.get(volume_path(name))["status"]["phase"] == "Available")
    test.kubectl("create", "-f", "-", stdin=claim("data", storageClassName=name))
    test.wait("the claim is bound", lambda: phase(test, "data") == "Bound")
    test.match(rf"\ndata +Bound +{name} +2Gi +RWO ", test.kubectl("get", "pvc").stdout)
    test.wait("the volume too", lambda: test.get(volume_path(name))["status"]["phase"] == "Bound")
    test.kubectl("delete", "pvc", "data")
    test.wait("it is released", lambda: test.get(volume_path(name))["status"]["phase"] == "Released")
    test.kubectl("delete", "pv", name)


@case(
    "a statefulset with claims runs, and its pods come back to their volumes",
    needs=RUN,
    each_kubectl=True,
    seconds=15,
)
def stateful_set_with_claims(test):
    late = make_class(test, volumeBindingMode="WaitForFirstConsumer")
    made = objects.deployment("db", replicas=2)
    made["kind"] = "StatefulSet"
    template = claim("data", storageClassName=late)
    made["spec"] |= {"serviceName": "db", "volumeClaimTemplates": [template]}
    test.kubectl("apply", "-f", "-", stdin=made)
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    # A simulated kubelet does not wait for the phase, which is written last.
    phases = lambda: [phase(test, f"data-db-{i}") for i in range(2)]
    test.wait("its claims are bound", lambda: phases() == ["Bound", "Bound"])
    node = test.node_of("db-1")
    found = test.get(test.path("persistentvolumeclaims", "data-db-1"))
    selected = found["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    test.equal(selected, node, "selected node")
    uid = test.pod("db-1")["metadata"]["uid"]
    # kubectl may take the pod that comes back for the one that it waits for.
    test.kubectl("delete", "pod", "db-1", "--wait=false")
    test.wait("it is made anew", lambda: test.pod("db-1")["metadata"]["uid"] != uid)
    test.kubectl("rollout", "status", "sts/db", "--timeout=60s")
    test.equal(test.node_of("db-1"), node, "node of the pod that came back")
    volume = found["spec"]["volumeName"]
    test.kubectl("delete", "sts", "db")
    test.kubectl("delete", "pvc", "data-db-0", "data-db-1")
    test.wait("its volume is deleted", lambda: not test.exists(volume_path(volume)))
    test.kubectl("delete", "sc", late)


@case("a pod goes where a local volume was made for its claim", needs=RUN, seconds=4)
def local_volume(test):
    late = make_class(
        test, provisioner="kubernetes.io/no-provisioner", volumeBindingMode="WaitForFirstConsumer"
    )
    hosts = ready_hosts(test)

    def make_volume(name, size, host):
        test.kubectl("create", "-f", "-", stdin=local_volume_of(name, late, size, host))

    small, fits = test.unique("small"), test.unique("fits")
    test.kubectl("create", "-f", "-", stdin=claim("data", size="2Gi", storageClassName=late))
    pod = objects.pod("p")
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    test.kubectl("create", "-f", "-", stdin=pod)
    make_volume(small, "1Gi", hosts[0])
    make_volume(fits, "3Gi", hosts[-1])
    test.wait("it runs", lambda: test.pod("p")["status"]["phase"] == "Running")
    test.wait("the claim is bound", lambda: phase(test, "data") == "Bound")
    bound = test.get(test.path("persistentvolumeclaims", "data"))["spec"]["volumeName"]
    test.equal(bound, fits, "volume")
    test.equal(test.node_of("p"), hosts[-1], "node")
    test.kubectl("delete", "pod", "p")
    test.kubectl("delete", "pvc", "data")
    test.kubectl("delete", "pv", small, fits)
    test.kubectl("delete", "sc", late)


@case("a pod goes where a volume is that names its claim, whoever is quicker", needs=RUN, seconds=5)
def volume_that_names_its_claim(test):
    late = make_class(test, volumeBindingMode="WaitForFirstConsumer")
    volumes = {test.unique(f"volume-{i}"): host for i, host in enumerate(ready_hosts(test)[:3])}
    made = []
    for name, host in volumes.items():
        named = {"namespace": test.namespace, "name": name}
        made.append(local_volume_of(name, late, "2Gi", host, claimRef=named))
        made.append(claim(name, storageClassName=late))
        made.append(objects.pod(name))
        made[-1]["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
    test.kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "List", "items": made})
    for name, host in volumes.items():
        test.wait("it runs", lambda name=name: test.pod(name)["status"]["phase"] == "Running")
        bound = test.get(test.path("persistentvolumeclaims", name))["spec"]["volumeName"]
        test.equal(bound, name, "volume")
        test.equal(test.node_of(name), host, "node")
    test.kubectl("delete", "pod,pvc", "--all")
    test.kubectl("delete", "pv", *volumes)
    test.kubectl("delete", "sc", late)


@case("an ephemeral volume has a claim that comes and goes with its pod", needs=RUN, seconds=5)
def ephemeral_volume(test):
    late = make_class(test, volumeBindingMode="WaitForFirstConsumer")
    spec = claim("unused", storageClassName=late)["spec"]
    pod = objects.pod("p")
    template = {"metadata": {"labels": {"kind": "scratch"}}, "spec": spec}
    pod["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    test.kubectl("create", "-f", "-", stdin=pod)
    test.wait("it runs", lambda: test.pod("p")["status"]["phase"] == "Running")
    test.wait("its claim is bound", lambda: phase(test, "p-scratch") == "Bound")
    found = test.get(test.path("persistentvolumeclaims", "p-scratch"))["metadata"]
    test.equal(found["labels"], {"kind": "scratch"}, "labels")
    test.equal(found["ownerReferences"][0]["name"], "p", "owner")
    test.kubectl("delete", "pod", "p")
    test.wait("the claim goes, too", lambda: not test.exists(test.path("persistentvolumeclaims", "p-scratch")))
    test.kubectl("delete", "sc", late)


@case("a pod waits for its claim and says so", needs=RUN, seconds=5)
def pod_waits_for_claim(test):
    pod = objects.pod("p")
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    test.kubectl("create", "-f", "-", stdin=pod)

    def says(text):
        found = objects.condition(test.pod("p"), "PodScheduled")
        return found is not None and text in found.get("message", "")

    test.wait("it says so", lambda: says('persistentvolumeclaim "data" not found'))
    test.kubectl("create", "-f", "-", stdin=claim("data", storageClassName=""))
    test.wait("it waits", lambda: says("pod has unbound immediate PersistentVolumeClaims"))
    now = make_class(test)
    test.kubectl("delete", "pvc", "data")
    test.kubectl("create", "-f", "-", stdin=claim("data", storageClassName=now))
    test.wait("it runs", lambda: test.pod("p")["status"]["phase"] == "Running")
    test.kubectl("delete", "sc", now)
