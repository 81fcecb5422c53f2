"""The genuine API server, the proxy before it, `berth run` behind that, and a load of pods."""

import base64
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import urllib.request
import ssl

import harness
import observer
import proxy

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NODES_COUNT = 6
NODE_CPU = 8000
# What pods ask for while things break is more than there is, so that each room is wanted; at the end it fits.
LOAD_CPU_MAX = NODES_COUNT * NODE_CPU * 11 // 10
FITS_CPU_MAX = NODES_COUNT * NODE_CPU * 8 // 10
PODS_A_SECOND = 40
SETTLE_SECONDS_MAX = 120
# More than its start takes on a busy machine.
API_SERVER_SECONDS_MAX = 180
LOG_LINES_TOLD = 5
NAME = "berth"
# Short, so that a run takes seconds: a holder acts for 3 s after its last renewal, others wait 5 s.
LEASE_TIMES = (
    "--leader-elect-lease-duration=5s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
)
METRICS_THAT_COUNT_BUGS = ("berth_missed_wakes_total", "berth_audit_findings_total")


class Rig:
    def __init__(self, directory, kubectl):
        self.directory, self.kubectl = directory, kubectl
        self.audit_log = directory / "audit.log"
        self.proxy = None
        self.started = False

    def start(self):
        policy = self.directory / "audit.yaml"
        policy.write_text(observer.AUDIT_POLICY)
        flags = (
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.audit_log}",
        )
        command = [ROOT / "tests/real/cluster", "start", "--dir", self.directory, *(f"--api-server-flag={flag}" for flag in flags)]
        started = subprocess.run(command, capture_output=True, text=True)
        if started.returncode == 3:
            raise harness.Unavailable(f"the genuine programs are not there: {started.stderr.strip()}")
        if started.returncode != 0:
            raise harness.Failure(f"the genuine API server does not start: {started.stderr}")
        self.started = True
        self.credentials = harness.Credentials(self.directory / "kubeconfig", self.kubectl)
        self.connection = harness.Connection(self.credentials)
        port = harness.free_port()
        upstream = (self.credentials.host, self.credentials.port, self.credentials.context)
        self.proxy = proxy.Proxy(self.directory, port, upstream)
        self.kubeconfig = self.directory / "proxied.kubeconfig"
        text = (self.directory / "kubeconfig").read_text()
        authority = base64.b64encode(self.proxy.certificate.read_bytes()).decode()
        lines = []
        for line in text.splitlines():
            key = line.split(":")[0]
            line = f"{key}: https://127.0.0.1:{port}" if key.strip() == "server" else line
            lines.append(f"{key}: {authority}" if key.strip() == "certificate-authority-data" else line)
        self.kubeconfig.write_text("\n".join(lines) + "\n")
        for i in range(NODES_COUNT):
            amounts = {"cpu": f"{NODE_CPU}m", "memory": "64Gi", "pods": "500"}
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
            self.send("POST", "/api/v1/nodes", {"metadata": {"name": f"node-{i:02d}"}, "status": status})

    def send(self, method, path, body=None):
        answer = self.connection.request(method, path, body)
        if answer.status >= 300:
            raise harness.Failure(f"{method} {path}: {answer.status} {answer.message}")
        return answer

    # Processes.

    def process(self, name):
        return json.loads((self.directory / "state.json").read_text())["processes"][name]["pid"]

    def restart_api_server(self):
        """Ends it as a crash does, and starts it again as it was."""
        pid = self.process("kube-apiserver")
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
        os.kill(pid, signal.SIGKILL)
        harness.wait_until("the API server is gone", lambda: not running(pid))
        self.start_api_server(command)
        self.until_ready(command)

    def start_api_server(self, command):
        with open(self.directory / "logs/kube-apiserver.log", "ab") as log:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        # As tests/real/cluster keeps it, which ends it.
        state = json.loads((self.directory / "state.json").read_text())
        fields = pathlib.Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        state["processes"]["kube-apiserver"] = {"pid": self.child.pid, "start_time": int(fields[19])}
        (self.directory / "state.json").write_text(json.dumps(state))

    def until_ready(self, command, seconds=API_SERVER_SECONDS_MAX):
        """Starts it again where it ended by itself: a client that asks for its port meanwhile may have had that port as its own."""

        def is_ready():
            if self.child.poll() is not None:
                print(f"   kube-apiserver ended with {self.child.returncode} while it started, and is started again{self.end_of_log()}", flush=True)
                time.sleep(1)
                self.start_api_server(command)
            return self.ready()

        try:
            harness.wait_until("the API server is ready after its restart", is_ready, seconds)
        except harness.Failure as failure:
            raise harness.Failure(f"{failure}{self.end_of_log()}") from None

    def end_of_log(self):
        try:
            lines = (self.directory / "logs/kube-apiserver.log").read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "; its log ends:\n" + "\n".join(lines[-LOG_LINES_TOLD:])

    def ready(self):
        try:
            return self.connection.request("GET", "/readyz").status == 200
        except (OSError, harness.Failure):
            return False

    def clear(self, namespace, seconds=API_SERVER_SECONDS_MAX):
        """Deletes the namespace's pods once the API server does that: a scenario may end while it is away.

        What was in the way, where it doesn't within the seconds; else nothing.
        """
        path = f"/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0"
        waits = []

        def deleted():
            try:
                self.send("DELETE", path)
            except harness.Failure as failure:
                if not waits:
                    print(f"   waits until the API server deletes the pods of {namespace}, {seconds} s at most: {failure}", flush=True)
                waits.append(failure)
                raise
            return True

        try:
            harness.wait_until(f"the API server deletes the pods of {namespace}", deleted, seconds)
        except harness.Failure as failure:
            return f"{failure}{self.end_of_log()}"
        return None

    def stop(self):
        if self.proxy is not None:
            self.proxy.end()
        if self.started:
            subprocess.run([ROOT / "tests/real/cluster", "stop", "--dir", self.directory], capture_output=True)


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Berth:
    """One `berth run` that is started again and again."""

    def __init__(self, rig, *options):
        self.rig, self.options = rig, options
        self.process = None
        self.starts = 0

    def start(self):
        self.starts += 1
        self.port = harness.free_port()
        self.process = harness.Background(
            [harness.berth_program(), "run", f"--kubeconfig={self.rig.kubeconfig}", f"--scheduler-name={NAME}",
             f"--secure-port={self.port}", "--authorization-always-allow-paths=/metrics", *self.options],
            log=self.rig.directory / "berth.log",
        )
        return self

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.wait(10)
        self.process.end()

    def metrics(self):
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/metrics", context=context, timeout=20) as answer:
            return answer.read().decode().splitlines()

    def bugs(self):
        """What it counted as bugs of its own: lines."""
        return [line for line in self.metrics() if line.startswith(METRICS_THAT_COUNT_BUGS) and not line.endswith(" 0")]

    def leads(self):
        try:
            return any(line.startswith("leader_election_master_status{") and line.endswith(" 1") for line in self.metrics())
        except OSError:
            return False


class Load(threading.Thread):
    """Makes pods, and deletes placed ones so that not too many wait. Its connection is its own."""

    def __init__(self, rig, namespace, seed, watching):
        super().__init__(daemon=True)
        self.connection = harness.Connection(rig.credentials)
        self.path = f"/api/v1/namespaces/{namespace}/pods"
        self.rng = random.Random(f"load-{seed}")
        self.watching = watching
        self.made = self.deleted = self.cpu = 0
        self.cpu_of = {}
        self.stopping = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.stopping.wait(1 / PODS_A_SECOND):
                self.step()
        except Exception as failure:  # Told at the end.
            self.failure = failure

    def step(self):
        amount = self.rng.randrange(100, 1000)
        while self.cpu + amount > LOAD_CPU_MAX:
            if not self.remove_one():
                return
        name = f"p{self.made:05d}"
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": f"{amount}m"}}}
        pod = {"metadata": {"name": name}, "spec": {"schedulerName": NAME, "containers": [container]}}
        self.until_done("POST", self.path, pod, (201, 409))
        self.made += 1
        self.cpu += amount
        self.cpu_of[name] = amount

    def leave_what_fits(self):
        while self.cpu > FITS_CPU_MAX and self.remove_one():
            pass
        return self.cpu <= FITS_CPU_MAX

    def remove_one(self):
        """Whether there was one to delete."""
        # Of some that were deleted the observer may not know yet.
        placed = [name for name, _ in self.watching.placed() if name in self.cpu_of]
        if not placed:
            return False
        name = placed[self.rng.randrange(len(placed))]
        self.until_done("DELETE", f"{self.path}/{name}?gracePeriodSeconds=0", None, (200, 404))
        self.deleted += 1
        self.cpu -= self.cpu_of.pop(name)
        return True

    def until_done(self, method, path, body, statuses):
        """Repeats it until the server says that it is done, however long it is away."""
        while True:
            try:
                answer = self.connection.request(method, path, body)
                if answer.status in statuses:
                    return
                if answer.status not in (429, 500, 503, 504):
                    raise RuntimeError(f"{method} {path}: {answer.status} {answer.message}")
            except (OSError, harness.Failure):
                pass
            time.sleep(0.1)

    def end(self):
        """Ends it with as many as fit; how many there are then."""
        self.stopping.set()
        self.join(120)
        if self.failure is not None or self.is_alive():
            raise harness.Failure(f"the load ended: {self.failure}")
        harness.wait_until("as many are deleted as don't fit", self.leave_what_fits, SETTLE_SECONDS_MAX)
        return self.made - self.deleted
