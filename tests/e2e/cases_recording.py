"""`berth run --record`, and `berth replay record` of what it left."""

import pathlib
import re
import signal
import struct
import tempfile
import uuid
import zlib

import objects
from cases_operations import RUN, Account, Scheduler
from cases_processes import own, start
from harness import TOLERATION, berth_program, case


def replay(test, file, *options, status=0):
    command = [str(berth_program()), "replay", "record", str(file), *options]
    ran = test.command(command, status=status, timeout=120)
    return ran.stdout + ran.stderr


def content(file):
    """What is in the file, inflated."""
    data = file.read_bytes()
    text = b""
    at = 12
    while at + 20 <= len(data):
        _, size, method, _, _ = struct.unpack("<5I", data[at : at + 20])
        block = data[at + 20 : at + 20 + size]
        if len(block) < size:
            break
        text += zlib.decompress(block) if method == 1 else block
        at += 20 + size
    return text


class Recorded:
    """A scheduler that records, and nodes of the case's own."""

    def __init__(self, test, *options):
        self.test = test
        self.file = pathlib.Path(tempfile.mkdtemp(prefix="recording-", dir=test.cluster.directory)) / "rec"
        self.node = test.unique("recorded")
        test.make_node(self.node, cpu="8", pods="500", labels={"row": self.node})
        self.scheduler = Scheduler(test, f"--record={self.file}", *options)

    def make_pod(self, name, cpu="10m", **options):
        spec = {"schedulerName": self.scheduler.name, "nodeSelector": {"row": self.node}, "tolerations": [TOLERATION]}
        self.test.create(self.test.path("pods"), objects.pod(name, cpu=cpu, **spec, **options))

    def placed(self):
        return [pod for pod in self.test.pods() if pod["spec"].get("nodeName")]


@case("what `berth run --record` left when it was killed under load is done again to the same bytes", needs=RUN, seconds=20)
def killed(test):
    recorded = Recorded(test)
    recorded.make_pod("large", cpu="100")
    for i in range(40):
        recorded.make_pod(f"p{i}")
    test.wait("it is at work", lambda: len(recorded.placed()) > 10)
    large = f"{test.namespace}/large"
    test.wait("it is on the disk", lambda: b"/pods/p5/binding" in content(recorded.file) and b"Insufficient cpu" in content(recorded.file))
    reader = Account(test, "reader", ["/metrics"])
    test.wait("metrics are read", lambda: recorded.scheduler.get("/metrics", reader.token).status == 200)
    for i in range(40, 60):
        recorded.make_pod(f"p{i}")
    recorded.scheduler.process.signal(signal.SIGKILL)
    recorded.scheduler.process.wait(10)
    told = replay(test, recorded.file)
    test.match(r"equal: \d+ inputs", told)
    test.true(int(re.search(r"(\d+) bindings", told)[1]) >= 6, f"bindings: {told}")
    test.match("has no end: the scheduler was killed", told)
    test.match("Insufficient cpu", replay(test, recorded.file, "--why", large))
    test.match(r"POST \S*/pods/p5/binding", replay(test, recorded.file, "--print"))
    # No credentials, neither of it nor of those who asked it.
    written = content(recorded.file)
    test.true(b"Bearer" not in written and b"PRIVATE KEY" not in written, "credentials in the recording")
    token = getattr(test.cluster.credentials, "token", None)
    test.true(not token or token.encode() not in written, "the token in the recording")


@case("a recording that is stopped says so, and one that was changed or is none is told", needs=RUN, seconds=10)
def stopped(test):
    recorded = Recorded(test)
    recorded.make_pod("one")
    test.wait("it is placed", recorded.placed)
    recorded.scheduler.process.signal(signal.SIGTERM)
    test.equal(recorded.scheduler.process.wait(30), 0, "exit status")
    test.match("the recording ended: the process ended", replay(test, recorded.file))
    data = recorded.file.read_bytes()
    other = recorded.file.with_name("other")
    other.write_bytes(data[:-30] + bytes([data[-30] ^ 1]) + data[-29:])
    test.match("is damaged at byte", replay(test, other, status=2))
    other.write_text("notes")
    test.match("is no recording of berth", replay(test, other, status=2))
    refused = [str(berth_program()), "run", f"--kubeconfig={test.cluster.kubeconfig}", f"--record={other}"]
    test.match("other: is no recording of berth: move it away", test.command(refused, status=1).stderr)
    test.equal(other.read_text(), "notes", "what was there")


class Growing:
    """A cluster of the case's own, and pods that deflating makes little of. They don't stay: lists are small."""

    PODS = "/api/v1/namespaces/default/pods"

    def __init__(self, test, *options):
        self.test = test
        up = own(test)
        self.connection = start(test, up, "--nodes=1", "--no-scheduler")
        self.file = up.directory / "rec"
        self.scheduler = Scheduler(test, f"--record={self.file}", *options, kubeconfig=up.kubeconfig)
        self.made = 0

    def grow(self):
        self.made += 1
        noise = "".join(uuid.uuid4().hex for _ in range(1000))
        pod = objects.pod(f"n{self.made}", annotations={"noise": noise}, schedulerName=self.scheduler.name)
        self.test.equal(self.connection.request("POST", self.PODS, pod).status, 201, "status")
        self.connection.request("DELETE", f"{self.PODS}/n{self.made - 3}?gracePeriodSeconds=0")
        return f"n{self.made}"

    def grow_until(self, what, condition):
        def grown():
            self.grow()
            return condition()

        self.test.wait(what, grown, seconds=60)
        last = self.grow()
        pod = f"{self.PODS}/{last}"
        self.test.wait("it goes on", lambda: self.connection.request("GET", pod).json()["spec"].get("nodeName"))
        self.test.true(self.scheduler.process.alive(), self.scheduler.process.text())
        return last


@case("a recording that is full ends, is told of once, and the scheduler goes on", on=("embedded",), seconds=15)
def full(test):
    recorded = Growing(test, "--record-size=1Mi")
    text = recorded.scheduler.process.text
    recorded.grow_until("it is full", lambda: "recording ended" in text())
    test.equal(text().count("recording ended"), 1, "lines about it")
    test.match("the recording ended: .* is full", replay(test, recorded.file))
    test.true(recorded.file.stat().st_size <= 1 << 19, "its size")


@case("told to, a scheduler whose recording is full starts anew with a new file, and both are done again", on=("embedded",), seconds=15)
def anew(test):
    recorded = Growing(test, "--record-size=1Mi", "--record-full=restart")
    old = recorded.file.with_name("rec.1")
    last = recorded.grow_until("it begins anew", old.exists)
    test.wait("that is on the disk", lambda: f"/pods/{last}/binding".encode() in content(recorded.file))
    for file in (old, recorded.file):
        test.match("equal: ", replay(test, file))
        test.true(file.stat().st_size <= 1 << 19, "its size")
