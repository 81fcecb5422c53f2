"""The two systems that the cases run on: `berth up`, and the genuine API server with berth's parts."""

import os
import pathlib
import re
import signal
import subprocess

from harness import (
    ROOT,
    Background,
    Connection,
    Credentials,
    Failure,
    Unavailable,
    berth_program,
    free_port,
    wait_until,
)

NODES_COUNT = 3
READY_SECONDS_MAX = 60
END_SECONDS_MAX = 60


class BerthUp:
    """One `berth up` process on a free port of loopback."""

    def __init__(self, directory, kubectl, access=Credentials):
        self.directory = directory
        self.kubectl = kubectl
        self.access = access
        self.kubeconfig = directory / "kubeconfig"
        self.process = None
        self.credentials = None
        self.port = None
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def start(self, *arguments, port=None):
        """Starts it and waits until it says that it serves."""
        program = berth_program()
        if not program.exists():
            raise Unavailable(f"there is no {program}; `./dev build` makes it")
        self.port = port or free_port()
        command = [
            program,
            "up",
            f"--listen=127.0.0.1:{self.port}",
            f"--kubeconfig={self.kubeconfig}",
            *arguments,
        ]
        self.process = Background(command, log=self.directory / "berth.log")
        wait_until("berth up says ready, or ends", self._settled, READY_SECONDS_MAX)
        if self.ready_line() is None:
            raise Failure(f"berth up ended with {self.process.wait(5)}: {self.process.text()}")
        self.credentials = self.access(self.kubeconfig, self.kubectl)
        return self

    def _settled(self):
        return self.ready_line() is not None or not self.process.alive()

    def ready_line(self):
        for line in self.process.lines():
            if re.match(r"ready https://\S+", line):
                return line
        return None

    def stop(self):
        """Ends it as a user does; returns its exit status, or None when it had to be killed."""
        self.process.signal(signal.SIGTERM)
        status = self.process.wait(END_SECONDS_MAX)
        self.process.end()
        return status

    def kill(self):
        """Ends it as a power cut does, as far as a process can be."""
        self.process.signal(signal.SIGKILL)
        self.process.wait(10)


class Embedded:
    """The embedded tier: one shared `berth up --in-memory`."""

    tier = "embedded"

    def __init__(self, directory, kubectls):
        self.up = BerthUp(directory, kubectls[0])
        self.kubeconfig = self.up.kubeconfig
        self.directory = directory

    @property
    def credentials(self):
        return self.up.credentials

    def missing(self):
        return frozenset(x for x in os.environ.get("BERTH_LACKS", "").split(",") if x)

    def why_options(self):
        return []

    def start(self):
        self.up.start("--in-memory", f"--nodes={NODES_COUNT}")

    def check_parts(self):
        """Raises when the cluster is one no more, so that what follows need not find that out by itself."""
        if not self.up.process.alive():
            raise Failure(f"berth up ended:\n{tail(self.up.process)}")

    def stop(self):
        if self.up.process is None:
            return []
        alive = self.up.process.alive()
        status = self.up.stop()
        if not alive:
            return [f"berth up had ended with {status} before its time:\n{tail(self.up.process)}"]
        if status is None:
            return [f"berth up does not end within {END_SECONDS_MAX} s after SIGTERM"]
        if status != 0:
            return [f"berth up ended with status {status} after SIGTERM:\n{tail(self.up.process)}"]
        return []


def definitions():
    """Kueue's and Volcano's CustomResourceDefinitions, of BERTH_CRDS or of the folder beside the project."""
    folder = pathlib.Path(os.environ.get("BERTH_CRDS", ROOT.parent / "shared/crds"))
    return [*sorted(folder.glob("kueue/*.yaml")), *sorted(folder.glob("volcano/scheduling.*.yaml"))]


class Real:
    """The genuine kube-apiserver and etcd, with berth's parts as processes beside it."""

    tier = "real"

    def __init__(self, directory, kubectls):
        self.directory = directory
        self.kubectl = kubectls[0]
        self.kubeconfig = directory / "kubeconfig"
        self.parts = {}
        self.credentials = None
        self.started = False

    def missing(self):
        lacking = set() if definitions() else {"definitions"}
        if not berth_program().exists():
            lacking |= {"nodes", "controllers", "scheduler"}
        return frozenset(lacking)

    def start(self):
        cluster = subprocess.run(
            [ROOT / "tests/real/cluster", "start", "--dir", self.directory],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if cluster.returncode == 3:
            reason = cluster.stderr.strip().splitlines()[0]
            raise Unavailable(f"the genuine programs are not there: {reason}")
        if cluster.returncode != 0:
            raise Failure(f"the genuine API server does not start: {cluster.stderr}")
        self.started = True
        self.credentials = Credentials(self.kubeconfig, self.kubectl)
        self.install(definitions())
        if not berth_program().exists():
            return
        self.why_port = free_port()
        self.why_ca = self.directory / "scheduler-ca.crt"
        self.start_part("controllers", "controllers")
        self.start_part("nodes", "nodes", f"--count={NODES_COUNT}")
        self.start_part("scheduler", "run", "--quota", "--scheduler-name=default-scheduler", "--scheduler-name=berth",
                        "--scheduler-name=volcano", f"--secure-port={self.why_port}", f"--secure-ca={self.why_ca}")
        connection = Connection(self.credentials)
        wait_until("the nodes are there", lambda: self.nodes_ready(connection))
        connection.close()

    def install(self, paths):
        """Custom kinds are there before berth's parts look for them."""
        if not paths:
            return
        files = [option for path in paths for option in ("-f", str(path))]
        for verb in (["create"], ["wait", "--for=condition=Established", "--timeout=60s"]):
            ran = subprocess.run([self.kubectl.path, f"--kubeconfig={self.kubeconfig}", *verb, *files],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if ran.returncode != 0:
                raise Failure(f"the definitions of custom kinds are not taken: {ran.stderr}")

    def why_options(self):
        return [f"--why-address=127.0.0.1:{self.why_port}", f"--why-ca={self.why_ca}"]

    def nodes_ready(self, connection):
        self.check_parts()
        nodes = connection.request("GET", "/api/v1/nodes").json()["items"]
        ready = [node for node in nodes if not node["spec"].get("taints")]
        return len(ready) >= NODES_COUNT

    def start_part(self, name, command, *arguments):
        self.parts[name] = Background(
            [berth_program(), command, f"--kubeconfig={self.kubeconfig}", *arguments],
            log=self.directory / f"{name}.log",
        )

    def check_parts(self):
        for name, part in self.parts.items():
            if not part.alive():
                raise Failure(f"berth {name} ended with {part.wait(1)}:\n{tail(part)}")

    def stop(self):
        problems = []
        for name, part in self.parts.items():
            alive = part.alive()
            part.signal(signal.SIGTERM)
            status = part.wait(END_SECONDS_MAX)
            part.end()
            if not alive:
                problems.append(
                    f"berth {name} had ended with {status} before its time:\n{tail(part)}"
                )
            elif status != 0:
                problems.append(f"berth {name} ended with {status} after SIGTERM:\n{tail(part)}")
        if self.started:
            subprocess.run(
                [ROOT / "tests/real/cluster", "stop", "--dir", self.directory],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ,
            )
        return problems


def tail(process):
    return "\n".join(process.lines()[-30:])


def make(tier, directory, kubectls):
    return {"embedded": Embedded, "real": Real}[tier](directory, kubectls)
