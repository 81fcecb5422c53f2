"""The clusters that the tests run on: start() returns the path of a kubeconfig, stop() what went wrong."""

import dataclasses
import json
import subprocess

import clusters
import harness

NODES_COUNT = 4
# The programs of the tests' Jobs would end by themselves.
JOBS_END = "--job-run-for=1s"

# Many tests wait a minute for what nodes of most clusters run, and go on without. One pod per node that has all
# of these names saves that; it asks for nothing and may not be evicted.
STAND_INS = """\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: kube-proxy-fluentd-elasticsearch-node-problem-detector
  namespace: kube-system
spec:
  selector: {matchLabels: {app: stand-in}}
  template:
    metadata: {labels: {app: stand-in}}
    spec:
      priorityClassName: system-node-critical
      tolerations: [{operator: Exists}]
      containers: [{name: stand-in, image: stand-in}]
"""


# kube-scheduler does not begin before it has listed the claims of devices, which `berth up` does not serve.
# Of these kinds nothing is asked but that there are none.
DEVICE_KINDS = {
    "DeviceClass": ("deviceclasses", "Cluster"),
    "ResourceClaim": ("resourceclaims", "Namespaced"),
    "ResourceSlice": ("resourceslices", "Cluster"),
}
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.resource.k8s.io
  annotations: {{api-approved.kubernetes.io: "unapproved, for a test"}}
spec:
  group: resource.k8s.io
  scope: {scope}
  names: {{plural: {plural}, singular: {singular}, kind: {kind}, listKind: {kind}List}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"""


def device_definitions():
    return "---\n".join(
        DEFINITION.format(kind=kind, singular=kind.lower(), plural=plural, scope=scope)
        for kind, (plural, scope) in DEVICE_KINDS.items()
    )


@dataclasses.dataclass(frozen=True)
class Place:
    """What a cluster is made of."""

    on: str  # embedded, real
    nodes: str = "berth"
    scheduler: str = "berth"
    has_stand_ins: bool = False

    def cluster(self, directory, programs):
        return {"embedded": Embedded, "real": Genuine}[self.on](self, directory, programs)


class Parts:
    """The processes that are started beside a cluster."""

    def __init__(self, directory):
        self.directory = directory
        self.running = {}

    def start(self, name, *command):
        self.running[name] = harness.Background(command, log=self.directory / f"{name}.log")

    def stop(self):
        problems = []
        for name, part in reversed(self.running.items()):
            if not part.alive():
                problems.append(f"{name} ended early:\n{clusters.tail(part)}")
            part.end()
        return problems


def kube_scheduler(programs, kubeconfig):
    return [
        programs["kube-scheduler"],
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
    ]


class Embedded:
    def __init__(self, place, directory, programs):
        self.programs = programs
        self.place = place
        self.up = clusters.BerthUp(directory, None, access=lambda *_: None)
        self.parts = Parts(directory)

    def start(self):
        others = [] if self.place.scheduler == "berth" else ["--no-scheduler"]
        self.up.start("--in-memory", f"--nodes={NODES_COUNT}", JOBS_END, *others)
        if others:
            Kubectl(self.programs["kubectl"], self.up.kubeconfig).run("apply", "-f", "-", text=device_definitions())
            self.parts.start("kube-scheduler", *kube_scheduler(self.programs, self.up.kubeconfig))
        return self.up.kubeconfig

    def stop(self):
        problems = self.parts.stop()
        if self.up.process is None:
            return problems
        alive = self.up.process.alive()
        status = self.up.stop()
        if not alive or status != 0:
            when = "after SIGTERM" if alive else "before its time"
            problems.append(f"berth up ended with {status} {when}:\n{clusters.tail(self.up.process)}")
        return problems


class Genuine:
    def __init__(self, place, directory, _programs):
        self.place = place
        self.directory = directory
        self.parts = Parts(directory)
        self.started = False

    def start(self):
        program = harness.berth_program()
        if not program.exists():
            raise harness.Unavailable(f"there is no {program}; `./dev build` makes it")
        options = [f"--kwok={NODES_COUNT}"] if self.place.nodes == "kwok" else []
        if self.place.scheduler == "berth":
            options.append("--no-scheduler")
        begun = subprocess.run(
            [harness.ROOT / "tests/real/cluster", "start", "--control-plane", *options, "--dir", self.directory],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if begun.returncode == 3:
            raise harness.Unavailable("the genuine programs are not there")
        if begun.returncode != 0:
            raise harness.Failure(f"the genuine control plane does not start: {begun.stderr}")
        self.started = True
        kubeconfig = f"--kubeconfig={self.directory / 'kubeconfig'}"
        if self.place.nodes == "berth":
            self.parts.start("nodes", program, "nodes", kubeconfig, f"--count={NODES_COUNT}", JOBS_END)
        if self.place.scheduler == "berth":
            self.parts.start("scheduler", program, "run", kubeconfig)
        return self.directory / "kubeconfig"

    def stop(self):
        problems = self.parts.stop()
        if self.started:
            ended = subprocess.run(
                [harness.ROOT / "tests/real/cluster", "stop", "--dir", self.directory],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if ended.returncode != 0:
                problems.append(f"the genuine parts do not end; see {self.directory}/logs")
        return problems


class Kubectl:
    """kubectl of one cluster."""

    def __init__(self, program, kubeconfig):
        self.command = [program, f"--kubeconfig={kubeconfig}"]

    def run(self, *words, text=None):
        ran = subprocess.run([*self.command, *words], input=text, capture_output=True, text=True)
        if ran.returncode != 0:
            raise harness.Failure(f"kubectl {words[0]}: {ran.stderr}")
        return ran.stdout

    def nodes_are_ready(self):
        """That all nodes are there, and pods are let onto them."""
        nodes = json.loads(self.run("get", "nodes", "-o", "json"))["items"]
        return len([node for node in nodes if not node["spec"].get("taints")]) == NODES_COUNT

    def stand_ins_run(self):
        pods = json.loads(self.run("get", "pods", "-n", "kube-system", "-l", "app=stand-in", "-o", "json"))
        return sum(pod["status"].get("phase") == "Running" for pod in pods["items"]) == NODES_COUNT


def prepare(place, program, kubeconfig):
    """Waits until pods can run on all nodes."""
    kubectl = Kubectl(program, kubeconfig)
    harness.wait_until("the nodes are ready", kubectl.nodes_are_ready)
    if place.has_stand_ins:
        kubectl.run("apply", "-f", "-", text=STAND_INS)
        harness.wait_until("what all nodes run does", kubectl.stand_ins_run)


def wait_until_tidy(program, kubeconfig):
    """Waits until no node has a taint of an earlier test."""
    harness.wait_until("the nodes are ready", Kubectl(program, kubeconfig).nodes_are_ready)
