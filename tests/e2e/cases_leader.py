"""Replicas of `berth run`: one leads by the Lease, the other takes over, and no pod is bound twice or lost."""

import signal

import objects
from harness import TOLERATION, Background, berth_program, case

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
# Short, so that a case takes seconds: a holder acts for 3 s after its last renewal, others wait 5 s.
TIMES = (
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)


class Replicas:
    """Two replicas that place the pods of one scheduler name, with a Lease of their own."""

    def __init__(self, test):
        self.test = test
        self.name = test.unique("replicas")
        self.running = []
        for i in range(4):
            test.make_node(f"{self.name}-{i}", cpu="4", labels={"row": self.name})
        for _ in range(2):
            self.start()
        test.cleanups.append(lambda: test.http("DELETE", f"{LEASES}/{self.name}"))
        self.made = 0

    def start(self):
        options = (
            f"--kubeconfig={self.test.cluster.kubeconfig}",
            f"--scheduler-name={self.name}",
            f"--leader-elect-resource-name={self.name}",
            *TIMES,
        )
        process = Background([berth_program(), "run", *options])
        self.test.cleanups.append(process.end)
        self.running.append(process)
        return process

    def lease(self):
        answer = self.test.http("GET", f"{LEASES}/{self.name}")
        return answer.json()["spec"] if answer.status == 200 else {}

    def leads(self, process):
        holder = self.lease().get("holderIdentity")
        return bool(holder) and any(f"{holder} leads" in line and "standing by" not in line for line in process.lines())

    def leader(self):
        return next((p for p in self.running if p.alive() and self.leads(p)), None)

    def make(self, count):
        spec = {
            "schedulerName": self.name,
            "nodeSelector": {"row": self.name},
            "tolerations": [TOLERATION],
        }
        for _ in range(count):
            pod = objects.pod(f"p{self.made:03d}", cpu="150m", **spec)
            self.test.create(self.test.path("pods"), pod)
            self.made += 1

    def placed(self):
        return [p["spec"]["nodeName"] for p in self.test.pods() if p["spec"].get("nodeName")]

    def check(self):
        """All are placed, and no node has more than fit: 26 of 150m a node of 4."""
        self.test.wait("all are placed", lambda: len(self.placed()) == self.made, seconds=60)
        nodes = self.placed()
        self.test.true(max(nodes.count(n) for n in set(nodes)) <= 26, f"overfilled: {nodes}")


@case(
    "a leader that is stopped past its lease and goes on again writes nothing more",
    needs=("controllers",),
    seconds=20,
)
def paused(test):
    replicas = Replicas(test)
    first = test.wait("one leads", replicas.leader)
    replicas.make(30)
    test.wait("some are placed", lambda: len(replicas.placed()) > 10)
    before = replicas.lease()
    first.signal(signal.SIGSTOP)
    replicas.make(30)
    second = test.wait(
        "the other leads",
        lambda: next((p for p in replicas.running if p is not first and replicas.leads(p)), None),
        seconds=60,
    )
    first.signal(signal.SIGCONT)
    replicas.make(30)
    replicas.check()
    test.wait("the first knows", lambda: "back to standby" in first.text())
    after = replicas.lease()
    test.true(after["holderIdentity"] != before["holderIdentity"], f"the lease is {after}")
    test.equal(after["leaseTransitions"], before["leaseTransitions"] + 1, "leaseTransitions")
    test.true(replicas.leads(second), f"the second does not lead: {second.text()}")


@case(
    "a leader that is killed is followed by the other, and one that ends gives the lease back",
    needs=("controllers",),
    seconds=20,
)
def killed(test):
    replicas = Replicas(test)
    first = test.wait("one leads", replicas.leader)
    replicas.make(30)
    test.wait("some are placed", lambda: len(replicas.placed()) > 10)
    first.signal(signal.SIGKILL)
    first.wait(10)
    replicas.make(30)
    second = test.wait("the other leads", replicas.leader, seconds=60)
    replicas.check()
    second.signal(signal.SIGTERM)
    test.equal(second.wait(30), 0, f"exit status: {second.text()}")
    spec = replicas.lease()
    test.equal(spec.get("holderIdentity") or "", "", "holder of the lease that was given back")
    test.equal(spec["leaseDurationSeconds"], 1, "leaseDurationSeconds")
    third = replicas.start()
    test.wait("the next leads at once", lambda: replicas.leads(third))
    replicas.make(10)
    replicas.check()


@case("the flags of the leader election are checked as kube-scheduler's", on=("embedded",))
def flags(test):
    config = f"--kubeconfig={test.cluster.kubeconfig}"
    for wrong, status, pattern in (
        (["--leader-elect-renew-deadline=15s"], 1, "lease-duration .* must be more than"),
        (["--leader-elect-retry-period=9s"], 1, "must be more than 1.2 times"),
        (["--leader-elect-lease-duration=x"], 2, "leader-elect-lease-duration"),
        (["--leader-elect-resource-lock=endpoints"], 2, "leader-elect-resource-lock"),
    ):
        ran = test.berth("run", config, *wrong, status=status, timeout=20)
        test.match(pattern, ran.stderr)
