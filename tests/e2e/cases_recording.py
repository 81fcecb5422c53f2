"""`berth run --record`, and `berth replay record` of what it left."""

import pathlib
import re
import signal
import struct
import tempfile
import uuid
import zlib

import objects
from cases_operations import RUN, Scheduler
from harness import TOLERATION, berth_program, case


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

    def replay(self, *options, file=None, status=0):
        command = [str(berth_program()), "replay", "record", str(file or self.file), *options]
        ran = self.test.command(command, status=status, timeout=120)
        return ran.stdout + ran.stderr

    def content(self):
        """What is in the file, inflated."""
        data = self.file.read_bytes()
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


@case("what `berth run --record` left when it was killed under load is done again to the same bytes", needs=RUN, seconds=20)
def killed(test):
    recorded = Recorded(test)
    recorded.make_pod("large", cpu="100")
    for i in range(40):
        recorded.make_pod(f"p{i}")
    test.wait("it is at work", lambda: len(recorded.placed()) > 10)
    large = f"{test.namespace}/large"
    test.wait("it is on the disk", lambda: b"/pods/p5/binding" in recorded.content() and b"Insufficient cpu" in recorded.content())
    for i in range(40, 60):
        recorded.make_pod(f"p{i}")
    recorded.scheduler.process.signal(signal.SIGKILL)
    recorded.scheduler.process.wait(10)
    told = recorded.replay()
    test.match(r"equal: \d+ inputs", told)
    test.true(int(re.search(r"(\d+) bindings", told)[1]) >= 6, f"bindings: {told}")
    test.match("has no end: the scheduler was killed", told)
    test.match("Insufficient cpu", recorded.replay("--why", large))
    test.match(r"POST \S*/pods/p5/binding", recorded.replay("--print"))
    # No credentials, neither of it nor of those who asked it.
    content = recorded.content()
    test.true(b"Bearer" not in content and b"PRIVATE KEY" not in content, "credentials in the recording")
    token = getattr(test.cluster.credentials, "token", None)
    test.true(not token or token.encode() not in content, "the token in the recording")


@case("a recording that is stopped says so, and one that was changed or is none is told", needs=RUN, seconds=10)
def stopped(test):
    recorded = Recorded(test)
    recorded.make_pod("one")
    test.wait("it is placed", recorded.placed)
    recorded.scheduler.process.signal(signal.SIGTERM)
    test.equal(recorded.scheduler.process.wait(30), 0, "exit status")
    test.match("the recording ended: the process ended", recorded.replay())
    data = recorded.file.read_bytes()
    other = recorded.file.with_name("other")
    other.write_bytes(data[:-30] + bytes([data[-30] ^ 1]) + data[-29:])
    test.match("is damaged at byte", recorded.replay(file=other, status=2))
    other.write_text("notes")
    test.match("is no recording of berth", recorded.replay(file=other, status=2))
    refused = [str(berth_program()), "run", f"--kubeconfig={test.cluster.kubeconfig}", f"--record={other}"]
    test.match("other: is no recording of berth: move it away", test.command(refused, status=1).stderr)
    test.equal(other.read_text(), "notes", "what was there")


class Growing(Recorded):
    """Pods that deflating makes little of."""

    def grow(self):
        name = f"n{len(self.test.pods())}"
        self.make_pod(name, annotations={"noise": "".join(uuid.uuid4().hex for _ in range(1000))})
        return name

    def grow_until(self, what, condition):
        def grown():
            self.grow()
            return condition()

        self.test.wait(what, grown, seconds=60)
        last = self.grow()
        self.test.wait("it goes on", lambda: self.test.pod(last)["spec"].get("nodeName"))
        self.test.true(self.scheduler.process.alive(), self.scheduler.process.text())
        return last


@case("a recording that is full ends, is told of once, and the scheduler goes on", needs=RUN, seconds=20)
def full(test):
    recorded = Growing(test, "--record-size=1Mi")
    text = recorded.scheduler.process.text
    recorded.grow_until("it is full", lambda: "recording ended" in text())
    test.equal(text().count("recording ended"), 1, "lines about it")
    test.match("the recording ended: .* is full", recorded.replay())
    test.true(recorded.file.stat().st_size <= 1 << 19, "its size")


@case("told to, a scheduler whose recording is full starts anew with a new file, and both are done again", needs=RUN, seconds=30)
def anew(test):
    recorded = Growing(test, "--record-size=1Mi", "--record-full=restart")
    old = recorded.file.with_name("rec.1")
    last = recorded.grow_until("it begins anew", old.exists)
    test.wait("that is on the disk", lambda: f"/pods/{last}/binding".encode() in recorded.content())
    for file in (old, recorded.file):
        test.match("equal: ", recorded.replay(file=file))
        test.true(file.stat().st_size <= 1 << 19, "its size")
