"""What a case works with: kubectl, HTTPS, waiting, and a namespace of its own.

A case waits by polling a condition until a deadline (Test.wait), never by sleeping for a time.
"""

import dataclasses
import http.client
import importlib
import itertools
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

WAIT_SECONDS = 60  # How long a condition may take; busy machines are slow, hung ones are not.
POLL_SECONDS = 0.05
BEAT_SECONDS = 15  # Nodes that say nothing for 40 s and more are given up.
KUBECTL_SECONDS_MAX = 120
TRANSCRIPT_CHARACTERS_MAX = 4000
KUBECTL_MINOR_MIN = 32

# On nodes that a case makes for itself, and tolerated by its pods.
KEEP_OUT = {"key": "e2e.test/keep-out", "effect": "NoSchedule"}
TOLERATION = {"key": "e2e.test/keep-out", "operator": "Exists"}


class Failure(Exception):
    """The system under test did something wrong."""


class Skip(Exception):
    """The case can't be told here; the text says why."""


class Unavailable(Exception):
    """A whole tier can't run here; the text says why."""


def tested_commit(*written):
    """The commit of the work tree, short, with a + where something besides what is written differs from it."""
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed_files(*written) else "")


def git(*words, root=ROOT):
    return subprocess.run(["git", "-C", root, *words], capture_output=True, text=True).stdout.rstrip()


def changed_files(*written, root=ROOT):
    """What differs from the commit, but for what the command writes itself: one run after the other may write."""
    listed = git("status", "--porcelain", "--untracked-files=no", "--", ".", *(f":!{path}" for path in written), root=root)
    return [line[3:] for line in listed.splitlines()]


def add_force(parser):
    parser.add_argument(
        "--force",
        action="store_true",
        help="with --write: also where files differ from the commit, of which the document then can't be",
    )


def refuse_changes(parser, options, *written, root=ROOT):
    """Before the hours of a run whose document would name a commit that it is not of."""
    changed = changed_files(*written, root=root) if options.write and not options.force else []
    if changed:
        some = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        parser.error(f"--write tells of a commit, from which these differ: {some}; commit first, or --force to write all the same")


def indented(text):
    return "\n".join("    " + line for line in text.rstrip("\n").splitlines())


def traceback_text(error):
    return "".join(traceback.format_exception(error))


def berth_program():
    return pathlib.Path(os.environ.get("BERTH", ROOT / "build/release/berth"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, condition, seconds=WAIT_SECONDS):
    """Returns the first true value of condition().

    A Failure inside counts as not yet, and so does what looks into an object that does not say it all yet.
    """
    deadline = time.monotonic() + seconds
    while True:
        last = None
        try:
            value = condition()
            if value:
                return value
        except (Failure, LookupError, TypeError, AttributeError) as failure:
            last = failure
        if time.monotonic() > deadline:
            because = f"; last: {last}" if last else ""
            raise Failure(f"not within {seconds} s: {what}{because}")
        time.sleep(POLL_SECONDS)


# ------------------------------------------------------------------------------------------------
# Cases.


@dataclasses.dataclass(frozen=True)
class Case:
    group: str
    name: str
    function: object
    tiers: tuple
    # Which of berth's parts must run: nodes, controllers, scheduler.
    needs: frozenset
    # Runs with nothing beside it: it counts all nodes, or loads the server.
    alone: bool
    # Runs once with each kubectl that is there.
    each_kubectl: bool
    # About how long it takes; long ones are begun first.
    seconds: float

    def title(self, tier, kubectl):
        suffix = f" [kubectl {kubectl.version}]" if self.each_kubectl and kubectl else ""
        return f"{tier} {self.group}: {self.name}{suffix}"


_cases = []


def case(name, *, on=("embedded", "real"), needs=(), alone=False, each_kubectl=False, seconds=1.0):
    """Registers a function as a case. Its name is a sentence of what holds."""

    def register(function):
        group = function.__module__.removeprefix("cases_").replace("_", " ")
        _cases.append(
            Case(group, name, function, tuple(on), frozenset(needs), alone, each_kubectl, seconds)
        )
        return function

    return register


RUN = ("nodes", "controllers", "scheduler")


def load_cases(modules):
    for module in modules:
        importlib.import_module(module)
    titles = [(c.group, c.name) for c in _cases]
    for title in titles:
        if titles.count(title) > 1:
            raise Failure(f"two cases are called {title}")
    return list(_cases)


# ------------------------------------------------------------------------------------------------
# kubectl.


@dataclasses.dataclass(frozen=True)
class Kubectl:
    path: str
    version: str
    home: pathlib.Path

    def environment(self, kubeconfig):
        return dict(
            os.environ,
            KUBECONFIG=str(kubeconfig),
            HOME=str(self.home),
            KUBECACHEDIR=str(self.home / "cache"),
            KUBE_EDITOR="false",
            NO_PROXY="*",
        )


def _kubectl_at(path, directory):
    home = directory / f"home-{len(list(directory.iterdir()))}"
    home.mkdir(mode=0o700)
    shown = subprocess.run(
        [path, "version", "--client", "-o", "json"],
        capture_output=True,
        text=True,
        env=dict(os.environ, HOME=str(home), KUBECONFIG="/dev/null"),
    )
    try:
        version = json.loads(shown.stdout)["clientVersion"]
        text = re.sub(r"^v|[-+].*$", "", version["gitVersion"])
        minor = int(re.sub(r"\D.*$", "", version["minor"]))
    except (ValueError, KeyError):
        return None
    return Kubectl(str(path), text, home) if minor >= KUBECTL_MINOR_MIN else None


def find_kubectls(directory):
    """The kubectls of tests/real and that of PATH, one per minor version, built ones first.

    A kubectl in PATH may be a vendor's; it serves for minor versions that are not built. All are
    built when CI asks for the whole, or when there is no other.
    """
    found = {}

    def add(path):
        kubectl = _kubectl_at(path, directory)
        if kubectl is not None:
            found.setdefault(kubectl.version, kubectl)

    def add_built():
        listed = subprocess.run(
            [ROOT / "tests/real/build", "--list"], capture_output=True, text=True
        )
        for line in listed.stdout.splitlines():
            program, _, state, path = line.split(None, 3)
            if program.startswith("kubectl") and state == "built":
                add(path)

    add_built()
    in_path = shutil.which("kubectl")
    if os.environ.get("CI") == "true" or not (found or in_path):
        subprocess.run(
            [ROOT / "tests/real/build", "kubectl", "kubectl-1.32"], stdout=subprocess.DEVNULL
        )
        add_built()
    if in_path:
        add(in_path)
    if not found:
        raise Unavailable(
            f"no kubectl 1.{KUBECTL_MINOR_MIN} or later in PATH, and tests/real/build can't build one"
        )
    # One per minor version: what differs between patches is not ours to test.
    minors = {}
    for kubectl in found.values():
        minors.setdefault(kubectl.version.rsplit(".", 1)[0], kubectl)
    return list(minors.values())


# ------------------------------------------------------------------------------------------------
# HTTPS.


class Credentials:
    """Where a server is and who we are there, from a kubeconfig."""

    def __init__(self, kubeconfig, kubectl):
        self.kubeconfig = pathlib.Path(kubeconfig)
        shown = subprocess.run(
            [kubectl.path, "config", "view", "--raw", "--minify", "-o", "json"],
            capture_output=True,
            text=True,
            env=kubectl.environment(kubeconfig),
        )
        if shown.returncode != 0:
            raise Failure(f"kubectl can't read {kubeconfig}: {shown.stderr}")
        config = json.loads(shown.stdout)
        self.cluster = config["clusters"][0]["cluster"]
        self.user = config["users"][0]["user"]
        url = urllib.parse.urlsplit(self.cluster["server"])
        self.url = self.cluster["server"]
        self.host, self.port = url.hostname, url.port
        self.token = self.user.get("token")
        import base64

        authority = base64.b64decode(self.cluster["certificate-authority-data"]).decode()
        self.context = ssl.create_default_context(cadata=authority)


@dataclasses.dataclass
class Answer:
    status: int
    headers: dict
    body: bytes

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError:
            raise Failure(f"answer {self.status} is not JSON: {self.body[:300]!r}") from None

    @property
    def message(self):
        """The message of a Status, or the body's beginning."""
        try:
            return json.loads(self.body)["message"]
        except (ValueError, KeyError, TypeError):
            return self.body[:500].decode(errors="replace")

    @property
    def reason(self):
        return self.json().get("reason")


class Connection:
    """One HTTPS connection at a time, made anew when the server closed it."""

    def __init__(self, credentials):
        self.credentials = credentials
        self.connection = None

    def request(self, method, path, body=None, headers=None, token=True):
        merged = {"Accept": "application/json"}
        if token is True:
            merged["Authorization"] = f"Bearer {self.credentials.token}"
        elif token:
            merged["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            merged["Content-Type"] = "application/json"
        if isinstance(body, str):
            body = body.encode()
        merged.update(headers or {})
        merged = {name: value for name, value in merged.items() if value is not None}
        for fresh in (False, True):
            reused = self.connection is not None
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPSConnection(
                        self.credentials.host,
                        self.credentials.port,
                        timeout=60,
                        context=self.credentials.context,
                    )
                self.connection.request(method, path, body, merged)
                response = self.connection.getresponse()
                given = response.getheaders()
                together = {name: ", ".join(value for other, value in given if other == name) for name, _ in given}
                answer = Answer(response.status, together, response.read())
                if response.will_close:
                    self.close()
                return answer
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # A kept connection that the server closed meanwhile: nothing was read of it.
                closed = isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError))
                if fresh or not reused or not closed or method == "POST":
                    raise Failure(f"{method} {path}: {type(error).__name__}: {error}") from None
        raise AssertionError("not reached")

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class WatchStream:
    """A watch read line by line in a thread of its own; events() is what came so far."""

    def __init__(self, credentials, path, headers=None):
        self.connection = http.client.HTTPSConnection(
            credentials.host,
            credentials.port,
            timeout=KUBECTL_SECONDS_MAX,
            context=credentials.context,
        )
        merged = {"Accept": "application/json", "Authorization": f"Bearer {credentials.token}"}
        self.connection.request("GET", path, headers=merged | (headers or {}))
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.lines = []
        self.ended = False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        try:
            for line in self.response:
                self.lines.append(line)
        except (OSError, http.client.HTTPException, ValueError, AttributeError):
            pass
        self.ended = True

    def events(self):
        return [json.loads(line) for line in list(self.lines) if line.strip()]

    def types(self):
        return [event["type"] for event in self.events()]

    def close(self):
        try:
            if self.connection.sock is not None:
                self.connection.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.thread.join(10)
        self.connection.close()


# ------------------------------------------------------------------------------------------------
# What a case holds in its hands.


@dataclasses.dataclass
class Ran:
    status: int
    stdout: str
    stderr: str


_serial = itertools.count(1)


class Test:
    """One case at work on a cluster. Not for use from two threads."""

    def __init__(self, case, cluster, kubectl):
        self.case = case
        self.cluster = cluster
        self.program = kubectl
        self.serial = next(_serial)
        self.log = []
        self.cleanups = []
        self._namespace = None
        self._connections = {}  # By thread: what a case serves to others may ask, too.
        self._made_nodes = {}  # Their conditions, by name.
        self._beaten = time.monotonic()

    # Names.

    def unique(self, prefix):
        """A name that no other case uses."""
        return f"{prefix}-{self.serial}"

    @property
    def namespace(self):
        """A namespace of this case, with its default service account when something makes one."""
        if self._namespace is None:
            self._namespace = self.unique("e2e")
            self.make_namespace(self._namespace)
        return self._namespace

    def make_namespace(self, name):
        self.create("/api/v1/namespaces", {"metadata": {"name": name}})
        self.cleanups.append(lambda: self.http("DELETE", f"/api/v1/namespaces/{name}"))
        if "controllers" in self.cluster.missing():
            self.create(
                f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}}
            )
        else:
            path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            wait_until(f"{name} has its default ServiceAccount", lambda: self.exists(path))

    # Commands.

    def kubectl(
        self, *arguments, stdin=None, status=0, namespace=True, timeout=KUBECTL_SECONDS_MAX
    ):
        """Runs kubectl in the case's namespace; fails unless it ends with this status (None: any)."""
        command = [self.program.path]
        if namespace:
            command += ["-n", namespace if isinstance(namespace, str) else self.namespace]
        command += [str(argument) for argument in arguments]
        if stdin is not None and not isinstance(stdin, str):
            stdin = json.dumps(stdin)
        return self.command(
            command,
            stdin=stdin,
            status=status,
            timeout=timeout,
            environment=self.program.environment(self.cluster.kubeconfig),
        )

    def refused(self, *arguments, **options):
        """Runs kubectl, which must fail; returns what it complains."""
        return self.kubectl(*arguments, status=1, **options).stderr

    def berth(self, *arguments, status=0, timeout=KUBECTL_SECONDS_MAX):
        if not berth_program().exists():
            raise Skip(f"there is no {berth_program()}")
        return self.command(
            [str(berth_program()), *map(str, arguments)], status=status, timeout=timeout
        )

    def command(
        self, command, *, stdin=None, status=0, timeout=KUBECTL_SECONDS_MAX, environment=None
    ):
        shown = "$ " + " ".join(str(c) for c in [pathlib.Path(command[0]).name, *command[1:]])
        try:
            ran = subprocess.run(
                command,
                input=stdin if stdin is not None else "",
                capture_output=True,
                text=True,
                timeout=timeout,
                env=environment,
            )
        except subprocess.TimeoutExpired as expired:
            self.log.append(
                f"{shown}\n(no end within {timeout} s) {expired.stdout} {expired.stderr}"
            )
            raise Failure(f"{shown[2:]} does not end within {timeout} s") from None
        self.log.append(f"{shown}\n{ran.stdout}{ran.stderr}(exit {ran.returncode})")
        if status is not None and ran.returncode != status:
            raise Failure(
                f"{shown[2:]} ended with {ran.returncode}, not {status}: {ran.stderr.strip()}"
            )
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def start_kubectl(self, *arguments):
        """kubectl in the background; its output so far is in lines()."""
        command = [self.program.path, "-n", self.namespace, *map(str, arguments)]
        running = Background(command, self.program.environment(self.cluster.kubeconfig))
        self.log.append("$ " + " ".join(command[1:]) + " &")
        self.cleanups.append(running.end)
        return running

    # HTTPS.

    @property
    def credentials(self):
        return self.cluster.credentials

    def http(self, method, path, body=None, *, headers=None, token=True, status=None):
        """One request; fails unless the status is this one, when one is given."""
        connection = self._connections.setdefault(threading.get_ident(), Connection(self.credentials))
        answer = connection.request(method, path, body, headers, token)
        if method != "GET" or answer.status not in (200, 404):
            shown = (
                answer.message
                if answer.status >= 400
                else answer.body[:100].decode(errors="replace")
            )
            self.log.append(f"> {method} {path[:300]}: {answer.status} {shown[:300]}")
        if status is not None and answer.status != status:
            raise Failure(f"{method} {path[:300]}: {answer.status}, not {status}: {answer.message}")
        return answer

    def get(self, path):
        return self.http("GET", path, status=200).json()

    def exists(self, path):
        status = self.http("GET", path).status
        if status not in (200, 404):
            raise Failure(f"GET {path}: {status}")
        return status == 200

    def create(self, path, document, status=201):
        return self.http("POST", path, document, status=status).json()

    def merge(self, path, patch, status=200):
        headers = {"Content-Type": "application/merge-patch+json"}
        return self.http("PATCH", path, json.dumps(patch), headers=headers, status=status).json()

    def watch(self, path, headers=None):
        stream = WatchStream(self.credentials, path, headers)
        self.cleanups.append(stream.close)
        return stream

    # Objects that many cases use.

    def make_priority_class(self, name, value, **more):
        """One that the API server's admission knows, too: it hears of it a little later."""
        path = "/apis/scheduling.k8s.io/v1/priorityclasses"
        self.create(path, {"metadata": {"name": name}, "value": value, **more})
        self.cleanups.append(lambda: self.http("DELETE", f"{path}/{name}"))
        spec = {"containers": [{"name": "c", "image": "i"}], "priorityClassName": name}
        probe = {"metadata": {"name": "probe"}, "spec": spec}
        self.wait(f"pods may be of class {name}", lambda: self.create(self.path("pods") + "?dryRun=All", probe))

    def path(self, resource, name="", group="", namespace=None):
        prefix = f"/apis/{group}" if group else "/api/v1"
        return f"{prefix}/namespaces/{namespace or self.namespace}/{resource}" + (
            f"/{name}" if name else ""
        )

    def pod(self, name):
        return self.get(self.path("pods", name))

    def pods(self, selector=""):
        query = f"?labelSelector={urllib.parse.quote(selector)}" if selector else ""
        return self.get(self.path("pods") + query)["items"]

    def make_node(
        self, name, *, cpu="4", memory="16Gi", pods="110", labels=None, taints=(), extra=None
    ):
        """A ready node without a kubelet: pods are bound to it, and stay Pending there.

        It has the label e2e=NAME, and a taint that keeps pods of other cases off.
        """
        taints = [KEEP_OUT, *taints]
        labels = {"kubernetes.io/hostname": name, "e2e": name} | (labels or {})
        amounts = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"} | (
            extra or {}
        )
        conditions = node_conditions(now_text())
        node = self.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions},
            },
        )
        self.cleanups.append(lambda: self.http("DELETE", f"/api/v1/nodes/{name}"))
        # The API server taints new nodes as not ready; the node lifecycle controller lifts that.
        if "controllers" in self.cluster.missing():
            self.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": taints}})
        self._made_nodes[name] = now_text()
        return node

    def take_pods(self, *names):
        """Waits until made nodes have no taint but their own."""
        for name in names:
            self.wait(f"{name} takes pods", lambda: len(self.get(f"/api/v1/nodes/{name}")["spec"]["taints"]) == 1)

    def beat(self):
        """Says for made nodes what a kubelet would, before they count as silent."""
        if time.monotonic() - self._beaten < BEAT_SECONDS:
            return
        self._beaten = time.monotonic()
        headers = {"Content-Type": "application/merge-patch+json"}
        for name, since in self._made_nodes.items():
            body = json.dumps({"status": {"conditions": node_conditions(since)}})
            self.http("PATCH", f"/api/v1/nodes/{name}/status", body, headers=headers)

    def node_of(self, pod):
        return self.pod(pod)["spec"].get("nodeName")

    def placed(self, pod, node=None):
        """Waits until the pod is placed, on this node if one is named; returns the node."""
        found = self.wait(f"{pod} is placed", lambda: self.node_of(pod))
        if node is not None:
            self.equal(found, node, f"node of {pod}")
        return found

    def unschedulable(self, pod, pattern):
        """Waits until the pod's PodScheduled condition is False with such a message."""

        def told():
            for found in self.pod(pod).get("status", {}).get("conditions", []):
                if found["type"] == "PodScheduled" and found["status"] == "False":
                    self.match(pattern, found.get("message", ""), "message")
                    return found
            return None

        return self.wait(f"{pod} is refused with {pattern!r}", told)

    # Checks.

    def equal(self, actual, expected, what):
        if actual != expected:
            raise Failure(f"{what}: {actual!r}, not {expected!r}")

    def true(self, condition, what):
        if not condition:
            raise Failure(what)

    def match(self, pattern, text, what="output"):
        found = re.search(pattern, text)
        if not found:
            raise Failure(f"{what} does not match {pattern!r}: {text.strip()!r}")
        return found

    def wait(self, what, condition, seconds=WAIT_SECONDS):
        def beating():
            self.beat()
            return condition()

        return wait_until(what, beating, seconds)

    def stays(self, what, condition, times=5):
        """Holds now and in several looks after: for what must not change any more."""
        for _ in range(times):
            if not condition():
                raise Failure(f"does not stay: {what}")
            time.sleep(POLL_SECONDS)

    # The end.

    def clean_up(self):
        """Undoes what the case made, without waiting for it; returns what went wrong, or ''."""
        problems = []
        shown = len(self.log)
        for cleanup in reversed(self.cleanups):
            try:
                cleanup()
            except Exception as error:
                problems.append(f"clean-up: {error}")
        for connection in list(self._connections.values()):
            connection.close()
        del self.log[shown:]
        return "\n".join(problems)

    def transcript(self):
        text = "\n".join(self.log)
        if len(text) > TRANSCRIPT_CHARACTERS_MAX:
            text = "...\n" + text[-TRANSCRIPT_CHARACTERS_MAX:]
        return text


def node_conditions(since):
    return [
        {
            "type": kind,
            "status": state,
            "reason": "E2e",
            "lastHeartbeatTime": now_text(),
            "lastTransitionTime": since,
        }
        for kind, state in (("Ready", "True"), ("MemoryPressure", "False"))
    ]


def now_text():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Background:
    """A process whose output is collected by a thread."""

    def __init__(self, command, environment=None, log=None):
        self.log = open(log, "ab") if log else None
        self.process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        self.collected = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        for line in self.process.stdout:
            self.collected.append(line.decode(errors="replace").rstrip("\n"))
            if self.log:
                self.log.write(line)
                self.log.flush()

    def lines(self):
        return list(self.collected)

    def text(self):
        return "\n".join(self.collected)

    def alive(self):
        return self.process.poll() is None

    def wait(self, seconds):
        """The exit status; None when it still runs after so long."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.thread.join(5)
        return status

    def signal(self, number):
        if self.alive():
            self.process.send_signal(number)

    def end(self):
        """Asks it to end, insists after a while, and waits."""
        if self.alive():
            self.process.terminate()
            if self.wait(30) is None:
                self.process.kill()
                self.wait(10)
        self.thread.join(5)
        if self.log and not self.log.closed:
            self.log.close()


def words(text):
    """A table as kubectl prints it: its lines, split at runs of blanks."""
    return [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if line.strip()]
