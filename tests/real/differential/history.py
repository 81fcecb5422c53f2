"""A random history of nodes, pods and storage, made of a seed: what is there, and what happens next.

A step is a list of requests, or a pod that both schedulers are asked about (`Step.pod`). The one who
plays it tells what became of the pod, and so the next step knows what is there.
"""

import dataclasses
import random

import pods

ZONES = ("za", "zb", "zc")
NAMESPACES = ("na", "nb", "nc")
CLAIMS_COUNT = 6
DRIVER = "csi.example.com"
FOREIGN = "another"  # The scheduler of pods that nobody here places.


@dataclasses.dataclass
class Request:
    method: str
    path: str
    body: dict | None = None
    content: str = "application/json"


@dataclasses.dataclass
class Step:
    what: str
    requests: list = dataclasses.field(default_factory=list)
    pod: dict | None = None  # Without a name and schedulerName.
    evicts: bool = False  # It may evict others, and does not stay.
    started: str = ""  # What its status says, once it is placed.
    stays: bool = False  # Where it is placed.
    waits: bool = False  # Where it is not.


def merge(path, body):
    return Request("PATCH", path, body, "application/merge-patch+json")


def pods_path(namespace, name=""):
    return f"/api/v1/namespaces/{namespace}/pods" + (f"/{name}" if name else "")


@dataclasses.dataclass
class Standing:
    """A pod that is there."""

    namespace: str
    name: str
    node: str | None
    leaving: bool = False


class History:
    def __init__(self, seed):
        self.rng = random.Random(f"differential-{seed}")
        self.nodes = {}  # Name -> the object as it was made.
        self.standing = {}
        self.shapes = []
        self.made = 0
        # Who waits is promised room that is being left, which the other scheduler doesn't see, and takes what is left
        # for a moment: one of the three.
        kind = self.rng.choice(("leave", "wait", "evict"))
        self.some_leave, self.some_wait, self.some_evict = kind == "leave", kind == "wait", kind == "evict"

    # What is there before the first step.

    def begin(self):
        requests = []
        for name in NAMESPACES:
            labels = {"team": self.rng.choice(("red", "blue")), "kubernetes.io/metadata.name": name}
            requests.append(Request("PUT", f"/api/v1/namespaces/{name}", {"metadata": {"name": name, "labels": labels}}))
        for i in range(self.rng.randint(3, 8)):
            requests += self.make_node()
        requests += self.storage()
        if self.rng.random() < 0.5:
            service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
            requests.append(Request("POST", "/api/v1/namespaces/na/services", service))
        return requests

    def storage(self):
        requests = []
        for i in range(CLAIMS_COUNT):
            requests += self.bound_claim(i)
        return requests

    def bound_claim(self, i):
        """A volume and its claim in the first namespace, bound by hand: no controller runs."""
        namespace, claim, volume = NAMESPACES[0], f"claim-{i}", f"volume-{i}"
        mode = "ReadWriteOncePod" if i == 5 else "ReadWriteOnce"
        shared = {"accessModes": [mode], "storageClassName": ""}
        spec = shared | {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        if self.rng.random() < 0.5:
            spec["csi"] = {"driver": DRIVER, "volumeHandle": volume}
        else:
            spec["nfs"] = {"server": "x", "path": "/"}
        labels = {}
        kind = self.rng.randrange(4)
        if kind == 0:
            spec["nodeAffinity"] = node_affinity("topology.kubernetes.io/zone", self.rng.sample(ZONES, 2))
        elif kind == 1:
            spec["nodeAffinity"] = node_affinity("kubernetes.io/hostname", [self.rng.choice(sorted(self.nodes))])
        elif kind == 2:
            labels = {"topology.kubernetes.io/zone": "__".join(self.rng.sample(ZONES, self.rng.randint(1, 2)))}
        bound = {"pv.kubernetes.io/bind-completed": "yes"}
        volumes, claims = "/api/v1/persistentvolumes", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        return [
            Request("POST", volumes, {"metadata": {"name": volume, "labels": labels}, "spec": spec}),
            merge(f"{volumes}/{volume}/status", {"status": {"phase": "Bound"}}),
            Request("POST", claims, {
                "metadata": {"name": claim, "annotations": bound},
                "spec": shared | {"volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
            }),
            merge(f"{claims}/{claim}/status", {"status": {"phase": "Bound"}}),
        ]

    def make_node(self):
        name = f"node-{self.made:02d}"
        self.made += 1
        rng = self.rng
        labels = {"kubernetes.io/hostname": name, "size": str(rng.randint(1, 4)), "disk": rng.choice(("ssd", "hdd"))}
        if rng.random() < 0.85:
            labels["topology.kubernetes.io/zone"] = rng.choice(ZONES)
        if rng.random() < 0.1:
            del labels["kubernetes.io/hostname"]
        amounts = self.amounts()
        node = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"taints": self.taints(), "unschedulable": rng.random() < 0.05},
            "status": {"capacity": amounts, "allocatable": amounts, "images": self.images(), "conditions": [
                {"type": "Ready", "status": "True"}]},
        }
        self.nodes[name] = node
        requests = [Request("POST", "/api/v1/nodes", node)]
        if rng.random() < 0.4:
            driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": rng.randint(1, 2)}}
            csi = {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
            requests.append(Request("POST", "/apis/storage.k8s.io/v1/csinodes", csi))
        return requests

    def amounts(self):
        rng = self.rng
        amounts = {
            "cpu": rng.choice(("1", "2", "4", "3500m")),
            "memory": rng.choice(("2Gi", "4Gi", "8Gi", "5000000000")),
            "ephemeral-storage": rng.choice(("10Gi", "50Gi")),
            "pods": rng.choice(("3", "6", "20")),
        }
        if rng.random() < 0.4:
            amounts[pods.EXTENDED] = str(rng.randint(0, 4))
        return amounts

    def taints(self):
        taints = []
        for key in pods.TAINTS:
            if self.rng.random() < 0.2:
                effect = self.rng.choice(("NoSchedule", "PreferNoSchedule", "PreferNoSchedule", "NoExecute"))
                taints.append({"key": key, "value": self.rng.choice(("x", "y")), "effect": effect})
        return taints

    def images(self):
        return [
            {"names": [f"example.com/{image}:1"], "sizeBytes": size * 1024 * 1024}
            for image, size in pods.IMAGES
            if self.rng.random() < 0.4
        ]

    # What happens.

    def step(self):
        choices = [(60, self.ask), (8, self.change_node), (3, self.node_comes), (2, self.node_goes), (8, self.pod_goes),
                   (4, self.pod_ends), (3, self.pod_changes), (3, self.pod_leaves), (3, self.foreign),
                   (2, self.namespace_changes), (2, self.volume_changes)]
        made = self.rng.choices([c for _, c in choices], [w for w, _ in choices])[0]()
        return made or self.ask()

    def ask(self):
        if self.shapes and self.rng.random() < 0.4:
            pod = self.rng.choice(self.shapes)
        else:
            pod = pods.make(self.rng, NAMESPACES, sorted(self.nodes))
            self.shapes = (self.shapes + [pod])[-12:]
        waiting = sum(s.node is None for s in self.standing.values())
        waits = self.some_wait and waiting < 4 and self.rng.random() < 0.2
        stays = self.rng.random() < (0.9 if self.some_evict else 0.7)
        if self.some_evict and not pods.fresh_class(pod) and self.rng.random() < 0.5:
            preemptor = pod["spec"] | {"priorityClassName": self.rng.choice(("above-low", "top"))}
            return Step("ask", pod=pod | {"spec": preemptor}, evicts=True)
        return Step("ask", pod=pod, stays=stays, waits=waits, started=self.started())

    def started(self):
        """Few times, so that some are equal."""
        return f"2026-01-01T00:00:{self.rng.randrange(4):02d}Z"

    def change_node(self):
        name = self.rng.choice(sorted(self.nodes)) if self.nodes else None
        if name is None:
            return None
        path = f"/api/v1/nodes/{name}"
        kind = self.rng.randrange(5)
        if kind == 0:
            amounts = self.amounts() | ({} if self.rng.random() < 0.5 else {pods.EXTENDED: "2"})
            return Step(f"allocatable of {name}", [merge(f"{path}/status", {"status": {"allocatable": amounts}})])
        if kind == 1:
            return Step(f"taints of {name}", [merge(path, {"spec": {"taints": self.taints()}})])
        if kind == 2:
            cordoned = self.rng.random() < 0.4
            return Step(f"{name} unschedulable {cordoned}", [merge(path, {"spec": {"unschedulable": cordoned}})])
        if kind == 3:
            return Step(f"images of {name}", [merge(f"{path}/status", {"status": {"images": self.images()}})])
        label = self.rng.choice((
            {"topology.kubernetes.io/zone": self.rng.choice((*ZONES, None))},
            {"disk": self.rng.choice(("ssd", "hdd", None))},
            {"size": str(self.rng.randint(1, 4))},
        ))
        return Step(f"label {label} of {name}", [merge(path, {"metadata": {"labels": label}})])

    def node_comes(self):
        return Step("a node comes", self.make_node()) if len(self.nodes) < 10 else None

    def node_goes(self):
        if len(self.nodes) < 3:
            return None
        name = self.rng.choice(sorted(self.nodes))
        del self.nodes[name]
        requests = [Request("DELETE", f"/api/v1/nodes/{name}")]
        # What stood there goes now or stays, as until a garbage collector comes.
        if self.rng.random() < 0.7:
            for pod in [s for s in self.standing.values() if s.node == name]:
                requests.append(self.removal(pod))
        return Step(f"{name} goes", requests)

    def some(self, placed):
        found = [k for k, s in self.standing.items() if (s.node is not None) == placed and not s.leaving]
        return self.standing[self.rng.choice(sorted(found))] if found else None

    def removal(self, pod):
        self.standing.pop((pod.namespace, pod.name))
        return Request("DELETE", pods_path(pod.namespace, pod.name) + "?gracePeriodSeconds=0")

    def pod_goes(self):
        pod = self.rng.choice(list(self.standing.values())) if self.standing else None
        return pod and Step(f"{pod.namespace}/{pod.name} is gone", [self.removal(pod)])

    def pod_ends(self):
        pod = self.some(True)
        if pod is None:
            return None
        self.standing.pop((pod.namespace, pod.name))
        phase = self.rng.choice(("Succeeded", "Failed"))
        return Step(f"{pod.name}: {phase}", [merge(f"{pods_path(pod.namespace, pod.name)}/status", {"status": {"phase": phase}})])

    def pod_changes(self):
        pod = self.some(True)
        labels = {"app": self.rng.choice((*pods.APPS, None))}
        return pod and Step(f"{pod.name}: {labels}", [merge(pods_path(pod.namespace, pod.name), {"metadata": {"labels": labels}})])

    def pod_leaves(self):
        """It is being deleted, and no kubelet says that it is gone."""
        pod = self.some(True)
        if pod is None or not self.some_leave:
            return None
        pod.leaving = True
        return Step(f"{pod.name} leaves", [Request("DELETE", pods_path(pod.namespace, pod.name) + "?gracePeriodSeconds=600")])

    def foreign(self):
        """Others place a pod, whatever filters say."""
        if not self.nodes:
            return None
        pod = pods.make(self.rng, NAMESPACES, sorted(self.nodes))
        if pods.fresh_class(pod):
            return None
        namespace, name, node = pod["metadata"]["namespace"], f"foreign-{self.made:03d}", self.rng.choice(sorted(self.nodes))
        self.made += 1
        pod = {"metadata": pod["metadata"] | {"name": name}, "spec": pod["spec"] | {"schedulerName": FOREIGN, "nodeName": node}}
        self.standing[(namespace, name)] = Standing(namespace, name, node)
        started = merge(f"{pods_path(namespace, name)}/status", {"status": {"startTime": self.started()}})
        return Step("a pod of others", [Request("POST", pods_path(namespace), pod), started])

    def namespace_changes(self):
        name = self.rng.choice(NAMESPACES)
        labels = {"team": self.rng.choice(("red", "blue", None))}
        return Step(f"namespace {name}: {labels}", [merge(f"/api/v1/namespaces/{name}", {"metadata": {"labels": labels}})])

    def volume_changes(self):
        volume = f"volume-{self.rng.randrange(CLAIMS_COUNT)}"
        labels = {"topology.kubernetes.io/zone": self.rng.choice((*ZONES, None))}
        return Step(f"{volume}: {labels}", [merge(f"/api/v1/persistentvolumes/{volume}", {"metadata": {"labels": labels}})])

    # What became of it.

    def placed(self, namespace, name, node):
        self.standing[(namespace, name)] = Standing(namespace, name, node)

    def waiting(self, namespace, name):
        self.standing[(namespace, name)] = Standing(namespace, name, None)


def node_affinity(key, values):
    expression = {"key": key, "operator": "In", "values": values}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
