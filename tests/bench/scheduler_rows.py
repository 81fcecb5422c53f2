"""What schedulers are measured with: the workloads of Kubernetes' scheduler_perf, as far as they need nothing but an API server.

Each row makes its nodes, what else is to be there, pods that have a node already, and the pods that are measured, which all wait
when the scheduler starts. Where scheduler_perf lets the scheduler place the first pods, they have their nodes from the beginning.
"""

import dataclasses
import json

MEASURED = "measured"
PLACED = "placed"
CHURN = "churn"
TEAM = {"team": "devops"}
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
DRIVER = "ebs.csi.aws.com"
PREEMPTING = "preempting"
# Of scheduler_perf's templates.
SMALL = {"cpu": "100m", "memory": "500Mi"}
CAPACITY = {"cpu": "4", "memory": "32Gi", "pods": "110"}


def line(method, path, document=None, content_type="application/json"):
    """A request as berth_scheduler_load reads it."""
    body = "" if document is None else json.dumps(document, separators=(",", ":"))
    return f"{method}\t{path}\t{content_type}\t{body}\n"


def node_name(index):
    return f"node-{index:05}"


def pod(name, namespace, labels=None, requests=None, **spec):
    container = {"name": "pause", "image": "registry.k8s.io/pause:3.10.1"}
    if requests:
        container["resources"] = {"requests": requests}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        # Without a kubelet nobody would confirm that a pod has ended.
        "spec": {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def small(labels=None, requests=SMALL, **spec):
    """Every pod is like that."""
    return lambda name, namespace, index, nodes: pod(name, namespace, labels, requests, **spec)


def near(required, kind, color, key, among):
    """A pod with one term of (anti-)affinity to pods of its color."""
    term = {"labelSelector": {"matchLabels": {"color": color}}, "topologyKey": key, **among}
    terms = (
        {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        if required
        else {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]}
    )
    return small({"color": color}, affinity={kind: terms})


def spread(when, key=ZONE, skew=5, **policies):
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, **policies}
    return small({"color": "blue"}, topologySpreadConstraints=[constraint | {"labelSelector": {"matchLabels": {"color": "blue"}}}])


def of_node(name, namespace, index, nodes):
    field = {"key": "metadata.name", "operator": "In", "values": [node_name(index % nodes)]}
    return pod(name, namespace, affinity=on_nodes("matchFields", field))


def on_nodes(how, requirement):
    terms = {"nodeSelectorTerms": [{how: [requirement]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def with_claim(name, namespace, index, nodes):
    return pod(name, namespace, requests=SMALL, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


NAMED = {"namespaces": [MEASURED, f"{PLACED}-0"]}
CHOSEN = {"namespaceSelector": {"matchLabels": TEAM}}
ANTI, AFFINITY = "podAntiAffinity", "podAffinity"


@dataclasses.dataclass
class Row:
    name: str
    what: str
    counts: dict  # Nodes -> pods that are placed, pods that are measured.
    pod: object = small()  # Of the measured: (name, namespace, index, nodes) -> document.
    placed: object = None  # Of those that are placed; nothing: as the measured.
    namespaces: int = 1  # Over so many the placed are spread.
    zones: int = 3
    tainted: float = 0  # Share of the nodes that are.
    volumes: bool = False  # A claim for each pod, bound to its volume.
    waiting: bool = False  # The placed have no node: they only stand there.
    more: tuple = ()  # Documents that are to be there, by path.
    churn: object = None  # Tick -> requests, each (method, path, document).
    churn_seconds: float = 0

    def counts_of(self, nodes, scale):
        near = min(self.counts, key=lambda known: abs(known - nodes))
        return tuple(max(least, int(count * scale * nodes / near)) for least, count in zip((0, 1), self.counts[near]))

    def setup(self, nodes, scale):
        """The requests that make everything but the nodes' room, in parts: of a part all at once."""
        placed, measured = self.counts_of(nodes, scale)
        names = [MEASURED, CHURN, *(f"{PLACED}-{i}" for i in range(self.namespaces))]
        yield [namespace(name) for name in names] + [line("POST", *part) for part in (PRIORITY, *self.more)]
        yield [line("POST", "/api/v1/nodes", self.node(i, nodes)) for i in range(nodes)]
        wanted = [(f"placed-{i:05}", f"{PLACED}-{i % self.namespaces}", i) for i in range(placed)]
        new = [(f"pod-{i:05}", MEASURED, i) for i in range(measured)]
        if self.volumes:
            yield [line("POST", "/apis/storage.k8s.io/v1/csinodes", csi_node(i)) for i in range(nodes)]
            yield [each for name, where, _ in wanted + new for each in volume(name, where)]
        yield [pod_line(self.placed_pod(name, where, i, nodes)) for name, where, i in wanted]
        yield [pod_line(self.pod(name, where, i, nodes)) for name, where, i in new]

    def placed_pod(self, name, where, index, nodes):
        document = (self.placed or self.pod)(name, where, index, nodes)
        if not self.waiting:
            document["spec"]["nodeName"] = node_name(index % nodes)
        return document

    def node(self, index, nodes):
        spec = {"taints": [{"key": "foo", "effect": "NoSchedule"}]} if index < self.tainted * nodes else {}
        labels = {HOST: node_name(index), ZONE: f"zone{index % self.zones + 1}"}
        return node(node_name(index), labels, CAPACITY, spec)


def node(name, labels, capacity, spec=None):
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec or {},
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
    }


def csi_node(index):
    driver = {"name": DRIVER, "nodeID": node_name(index), "allocatable": {"count": 39}}
    metadata = {"name": node_name(index)}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": [driver]}}


def volume(name, where):
    """A volume and its claim, bound to each other as the controller would have left them."""
    bound = {"pv.kubernetes.io/bind-completed": "true"}
    size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": where, "annotations": bound},
        "spec": {"accessModes": modes, "resources": {"requests": size}, "volumeName": f"{where}-{name}", "storageClassName": ""},
    }
    kept = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"{where}-{name}"},
        "spec": {
            "accessModes": modes,
            "capacity": size,
            "csi": {"driver": DRIVER, "volumeHandle": f"{where}-{name}"},
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "namespace": where},
        },
    }
    yield line("POST", "/api/v1/persistentvolumes", kept)
    yield line("POST", f"/api/v1/namespaces/{where}/persistentvolumeclaims", claim)


def namespace(name):
    metadata = {"name": name, "labels": {} if name == CHURN else TEAM}
    return line("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def pods_path(where):
    return f"/api/v1/namespaces/{where}/pods"


def pod_line(document):
    return line("POST", pods_path(document["metadata"]["namespace"]), document)


def secret(where):
    document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "namespace": where}}
    return f"/api/v1/namespaces/{where}/secrets", document


def service(name, where, app):
    document = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": where}}
    return f"/api/v1/namespaces/{where}/services", document | {"spec": {"selector": {"app": app}, "ports": [{"port": 80}]}}


PRIORITY = (
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": PREEMPTING}, "value": 10},
)


# ------------------------------------------------------------------------------------------------
# What goes on meanwhile, where something does.


def recreate(tick):
    """A node without room, a pod and a Service, that come and go by turns."""
    name = f"churn-{tick // 2}"
    services, of_churn = service(name, CHURN, "foo")
    if tick % 2 == 0:
        yield "POST", "/api/v1/nodes", node(name, {HOST: name}, {"cpu": "0", "memory": "0", "pods": "0"})
        yield "POST", pods_path(CHURN), pod(name, CHURN)
        yield "POST", services, of_churn
    else:
        for path in ("/api/v1/nodes", pods_path(CHURN), services):
            yield "DELETE", f"{path}/{name}", None


def too_large(tick):
    requests = {"cpu": "9", "memory": "500Mi"}
    yield "POST", pods_path(CHURN), pod(f"churn-{tick}", CHURN, requests=requests, priorityClassName=PREEMPTING)


def preemptor(tick):
    requests = {"cpu": "3", "memory": "500Mi"}
    yield "POST", pods_path(CHURN), pod(f"churn-{tick}", CHURN, requests=requests, priorityClassName=PREEMPTING)


FIVE_A_SECOND = 0.2
HALF_PLACED = {500: (500, 1000), 5000: (5000, 5000)}
LOW = {"cpu": "900m", "memory": "500Mi"}
INCLUSION = {"nodeAffinityPolicy": "Honor", "nodeTaintsPolicy": "Honor"}
ZONES = {"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}
GATES = {"schedulingGates": [{"name": "test.k8s.io/hold"}]}
SECRET = {"volumes": [{"name": "secret", "secret": {"secretName": "secret"}}]}

ROWS = (
    Row("basic", "SchedulingBasic", {500: (500, 2000), 5000: (1000, 10000)}),
    Row("daemonset", "SchedulingDaemonset: each pod names its node", {500: (0, 2000), 5000: (0, 10000)}, of_node),
    Row(
        "mixed-churn",
        "SchedulingWithMixedChurn: a node, a pod and a Service come or go each second",
        {500: (0, 2000), 5000: (0, 10000)},
        churn=recreate,
        churn_seconds=1,
    ),
    Row(
        "unschedulable-churn",
        "Unschedulable: 5 pods a second that fit nowhere",
        {500: (100, 2000), 5000: (100, 10000)},
        churn=too_large,
        churn_seconds=FIVE_A_SECOND,
    ),
    Row(
        "preemption",
        "PreemptionAsync: 5 preemptors a second",
        {500: (2000, 1000), 5000: (20000, 5000)},
        placed=small(requests=LOW),
        churn=preemptor,
        churn_seconds=FIVE_A_SECOND,
    ),
    Row("anti-affinity", "SchedulingPodAntiAffinity", {500: (100, 400), 5000: (1000, 2000)}, near(True, ANTI, "green", HOST, NAMED)),
    Row("affinity", "SchedulingPodAffinity", HALF_PLACED, near(True, AFFINITY, "blue", ZONE, NAMED), zones=1),
    Row("preferred-affinity", "SchedulingPreferredPodAffinity", HALF_PLACED, near(False, AFFINITY, "red", HOST, NAMED)),
    Row("preferred-anti-affinity", "SchedulingPreferredPodAntiAffinity", HALF_PLACED, near(False, ANTI, "yellow", HOST, NAMED)),
    Row(
        "ns-anti-affinity",
        "RequiredPodAntiAffinityWithNSSelector, 100 namespaces",
        {500: (100, 400), 5000: (3000, 2000)},
        near(True, ANTI, "green", HOST, CHOSEN),
        namespaces=100,
    ),
    Row(
        "ns-affinity",
        "RequiredPodAffinityWithNSSelector, 100 namespaces",
        {500: (500, 1000), 5000: (5000, 2000)},
        near(True, AFFINITY, "blue", ZONE, CHOSEN),
        namespaces=100,
        zones=1,
    ),
    Row(
        "ns-preferred-anti-affinity",
        "PreferredAntiAffinityWithNSSelector, 100 namespaces",
        {500: (400, 1000), 5000: (4000, 2000)},
        near(False, ANTI, "yellow", HOST, CHOSEN),
        namespaces=100,
    ),
    Row(
        "ns-preferred-affinity",
        "PreferredAffinityWithNSSelector, 100 namespaces",
        {500: (500, 1000), 5000: (5000, 5000)},
        near(False, AFFINITY, "red", HOST, CHOSEN),
        namespaces=100,
    ),
    Row(
        "node-affinity",
        "SchedulingNodeAffinity",
        {500: (500, 2000), 5000: (5000, 10000)},
        small(affinity=on_nodes("matchExpressions", ZONES)),
        placed=small(),
    ),
    Row("spread-hard", "TopologySpreading", HALF_PLACED, spread("DoNotSchedule"), placed=small()),
    Row("spread-soft", "PreferredTopologySpreading", HALF_PLACED, spread("ScheduleAnyway"), placed=small()),
    Row(
        "spread-default",
        "DefaultTopologySpreading: all pods are of one Service",
        {500: (0, 2000), 5000: (0, 10000)},
        small({"app": "measured"}),
        more=(service("service", MEASURED, "measured"),),
    ),
    Row(
        "inclusion",
        "SchedulingWithNodeInclusionPolicy, a fifth of the nodes tainted",
        {500: (0, 400), 5000: (0, 4000)},
        spread("DoNotSchedule", HOST, 1, **INCLUSION),
        tainted=0.2,
    ),
    Row(
        "secrets",
        "SchedulingSecrets",
        {500: (500, 2000), 5000: (5000, 10000)},
        small(**SECRET),
        more=(secret(MEASURED), secret(f"{PLACED}-0")),
    ),
    Row("csi", "SchedulingCSIPVs", HALF_PLACED, with_claim, volumes=True),
    Row(
        "gated",
        "SchedulingWhileGated: as many pods that are held back stand beside",
        {500: (2000, 2000), 5000: (10000, 10000)},
        placed=small(requests=None, **GATES),
        waiting=True,
    ),
)
