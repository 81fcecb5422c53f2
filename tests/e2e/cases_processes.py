"""`berth up` as a process: durability, ends, damaged files, ports, and what it writes for its user."""

import itertools
import json
import os
import pathlib
import signal
import socket
import sqlite3
import stat
import tempfile
import threading

import objects
from clusters import BerthUp
from harness import (
    TOLERATION,
    Background,
    Connection,
    Failure,
    berth_program,
    case,
    free_port,
    wait_until,
)

EMBEDDED = ("embedded",)
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def own(test):
    """A server of the case's own, on a directory of its own, ended with the case."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="server-", dir=test.cluster.directory))
    up = BerthUp(directory, test.program)
    up.data = directory / "data"

    def end():
        if up.process is not None:
            up.process.end()

    test.cleanups.append(end)
    return up


def start(test, up, *arguments, **options):
    up.start(f"--data-dir={up.data}", *arguments, **options)
    test.log.append(f"(berth up on {up.data}, port {up.port})")
    return Connection(up.credentials)


def journal_of(test, up):
    """The data file: the largest one in SQLite's format."""
    found = [
        path
        for path in up.data.rglob("*")
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3"
    ]
    test.true(found, f"no data file in {up.data}: {list(up.data.rglob('*'))}")
    return max(found, key=lambda path: path.stat().st_size)


def refused_start(test, up, pattern, compare=True):
    """Starts it, which must fail with such a message and leave what was written as it was."""

    def contents():
        # SQLite's index of its write-ahead log, and an empty log, hold nothing.
        files = [p for p in up.data.rglob("*") if p.is_file() and not p.name.endswith("-shm")]
        return {p.name: p.read_bytes() for p in files if p.stat().st_size > 0}

    before = contents()
    command = [berth_program(), "up", f"--data-dir={up.data}", f"--listen=127.0.0.1:{free_port()}"]
    command.append(f"--kubeconfig={up.kubeconfig}.refused")
    ran = test.command([str(part) for part in command], status=1, timeout=20)
    test.match(pattern, ran.stderr)
    after = contents()
    changed = sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )
    test.true(not compare or not changed, f"the refused start changed {changed}")


@case("SIGTERM and SIGINT end berth up cleanly with exit status 0", on=EMBEDDED, each_kubectl=False)
def signals(test):
    for number in (signal.SIGTERM, signal.SIGINT):
        up = own(test)
        connection = start(test, up, "--nodes=2")
        connection.request("POST", CONFIG_MAPS, objects.config_map("a"))
        wait_until(
            "the nodes are there",
            lambda: len(connection.request("GET", "/api/v1/nodes").json()["items"]) == 2,
        )
        up.process.signal(number)
        test.equal(up.process.wait(30), 0, f"exit status after {number.name}: {up.process.text()}")


@case("SIGTERM ends berth up though watches are open and writes are on their way", on=EMBEDDED)
def signal_busy(test):
    up = own(test)
    start(test, up, "--nodes=2")
    command = [test.program.path, "get", "pods", "-w"]
    watching = Background(command, test.program.environment(up.kubeconfig))
    test.cleanups.append(watching.end)
    stop = threading.Event()
    writers = [Writer(up.credentials, f"w{i}", stop) for i in range(4)]
    wait_until("they write", lambda: all(len(writer.acknowledged) > 5 for writer in writers))
    up.process.signal(signal.SIGTERM)
    test.equal(up.process.wait(30), 0, f"exit status: {up.process.text()}")
    stop.set()
    for writer in writers:
        writer.thread.join(30)
    # What was acknowledged is there at the next start.
    connection = start(test, up)
    check_acknowledged(test, connection, writers)


class Writer:
    """Creates, changes and deletes objects until it is stopped or refused; remembers what was acknowledged."""

    def __init__(self, credentials, name, stop):
        self.credentials = credentials
        self.name = name
        self.stop = stop
        self.acknowledged = {}
        self.deleted = set()
        # The write whose answer did not come: it may have been done or not.
        self.unknown = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        connection = Connection(self.credentials)
        for i in itertools.count():
            if self.stop.is_set():
                return
            name = f"{self.name}-{i}"
            self.unknown = name
            try:
                made = connection.request("POST", CONFIG_MAPS, objects.config_map(name, {"v": "1"}))
                if made.status != 201:
                    return
                self.acknowledged[name] = "1"
                if i % 3 == 1:
                    changed = made.json() | {"data": {"v": "2"}}
                    if connection.request("PUT", f"{CONFIG_MAPS}/{name}", changed).status == 200:
                        self.acknowledged[name] = "2"
                if (
                    i % 3 == 2
                    and connection.request("DELETE", f"{CONFIG_MAPS}/{name}").status == 200
                ):
                    self.deleted.add(name)
            except Failure:
                return
            self.unknown = None


def check_acknowledged(test, connection, writers):
    items = connection.request("GET", CONFIG_MAPS).json()["items"]
    found = {
        item["metadata"]["name"]: item["data"]["v"] for item in items if "v" in item.get("data", {})
    }
    count = 0
    for writer in writers:
        for name, value in writer.acknowledged.items():
            count += 1
            if name in writer.deleted:
                test.true(name not in found, f"{name} is back after its acknowledged deletion")
            elif name != writer.unknown:
                test.true(name in found, f"{name} was acknowledged and is lost")
                test.equal(found[name], value, f"value of {name}")
            else:
                # Created, then changed or deleted with an answer that never came.
                test.true(found.get(name, "1") in ("1", "2"), f"value of {name}")
    return count


@case("kill -9 amid writes loses no acknowledged write, again and again", on=EMBEDDED, seconds=10)
def kill(test):
    up = own(test)
    versions = []
    total = 0
    all_writers = []
    for round_number in range(4):
        connection = start(test, up, "--nodes=2")
        total = check_acknowledged(test, connection, all_writers)
        listed = connection.request("GET", CONFIG_MAPS).json()
        versions.append(int(listed["metadata"]["resourceVersion"]))
        connection.close()
        stop = threading.Event()
        writers = [Writer(up.credentials, f"r{round_number}w{i}", stop) for i in range(8)]
        enough = 20 * (round_number + 1)
        wait_until("they write", lambda: sum(len(w.acknowledged) for w in writers) > enough)
        up.kill()
        stop.set()
        for writer in writers:
            writer.thread.join(90)
        all_writers += writers
    connection = start(test, up)
    total = check_acknowledged(test, connection, all_writers)
    test.true(total > 100, f"only {total} writes were acknowledged")
    test.equal(versions, sorted(set(versions)), "versions after restarts, which must grow")
    made = connection.request("POST", CONFIG_MAPS, objects.config_map("new")).json()
    test.true(int(made["metadata"]["resourceVersion"]) > versions[-1], "a version was given twice")


@case("pods, deployments and nodes go on after kill -9 and a restart", on=EMBEDDED, seconds=6)
def goes_on(test):
    up = own(test)
    connection = start(test, up, "--nodes=2", "--seed=1")
    path = "/apis/apps/v1/namespaces/default/deployments"
    pods = "/api/v1/namespaces/default/pods"
    wait_until(
        "the default account is there",
        lambda: connection.request(
            "GET", "/api/v1/namespaces/default/serviceaccounts/default"
        ).status
        == 200,
    )
    test.equal(
        connection.request("POST", path, objects.deployment("web", replicas=3)).status,
        201,
        "status",
    )

    def ready(count):
        items = connection.request("GET", pods).json()["items"]
        return (
            len(items) == count and all(objects.is_true(item, "Ready") for item in items) and items
        )

    before = {
        i["metadata"]["uid"]: i["spec"]["nodeName"]
        for i in wait_until("three run", lambda: ready(3))
    }
    authority = up.credentials.cluster["certificate-authority-data"]
    token = up.credentials.token
    port = up.port
    up.kill()
    connection = start(test, up, "--nodes=2", "--seed=1", port=port)
    test.equal(up.credentials.cluster["certificate-authority-data"], authority, "authority")
    test.equal(up.credentials.token, token, "token")
    items = wait_until("the same three run", lambda: ready(3))
    after = {i["metadata"]["uid"]: i["spec"]["nodeName"] for i in items}
    test.equal(after, before, "pods and their nodes")
    scale = {"spec": {"replicas": 5}}
    headers = {"Content-Type": "application/merge-patch+json"}
    connection.request("PATCH", f"{path}/web", json.dumps(scale), headers)
    wait_until("five run", lambda: ready(5))


@case(
    "a watch and a list from before a restart are told that they are too old",
    on=EMBEDDED,
    seconds=2,
)
def gone(test):
    up = own(test)
    connection = start(test, up)
    for i in range(5):
        connection.request("POST", CONFIG_MAPS, objects.config_map(f"a{i}"))
    old = connection.request("GET", f"{CONFIG_MAPS}/a0").json()["metadata"]["resourceVersion"]
    token = connection.request("GET", f"{CONFIG_MAPS}?limit=1").json()["metadata"]["continue"]
    up.kill()
    connection = start(test, up)
    # Either the history is still there, and all that came after is told, or it says Expired.
    answer = connection.request(
        "GET", f"{CONFIG_MAPS}?watch=true&resourceVersion={old}&timeoutSeconds=1"
    )
    test.equal(answer.status, 200, "status of the watch")
    event = json.loads(answer.body.splitlines()[0])
    if event["type"] == "ERROR":
        test.equal(
            (event["object"]["code"], event["object"]["reason"]),
            (410, "Expired"),
            "error of the watch",
        )
    else:
        test.equal(event["object"]["metadata"]["name"], "a1", "first event")
    answer = connection.request("GET", f"{CONFIG_MAPS}?limit=1&continue={token}")
    if answer.status != 200:
        test.equal(
            (answer.status, answer.reason), (410, "Expired"), "answer to an old continue token"
        )
    answer = connection.request(
        "GET", f"{CONFIG_MAPS}?resourceVersion=1&resourceVersionMatch=Exact"
    )
    test.equal((answer.status, answer.reason), (410, "Expired"), "answer to an old exact version")


@case("a damaged data file is refused and left as it is", on=EMBEDDED, seconds=4)
def damaged(test):
    up = own(test)
    connection = start(test, up)
    for i in range(50):
        connection.request("POST", CONFIG_MAPS, objects.config_map(f"a{i}", {"k": "x" * 500}))
    test.equal(up.stop(), 0, "exit status")
    file = journal_of(test, up)
    whole = file.read_bytes()
    # The header, and a value: pages that hold nothing may say what they like.
    value = whole.index(b"a25")
    for place in (0, value):
        broken = bytearray(whole)
        for offset in range(place, place + 16):
            broken[offset] ^= 0x5A
        file.write_bytes(broken)
        refused_start(test, up, "(?i)damaged|not (a|of) berth|not a database")
    file.write_bytes(whole[: len(whole) // 2])
    refused_start(test, up, "(?i)damaged")
    file.write_bytes(whole)
    connection = start(test, up)
    test.equal(
        len(connection.request("GET", f"{CONFIG_MAPS}?labelSelector=!x").json()["items"]) >= 50,
        True,
        "objects",
    )


@case("a log that is gone after a crash is missed until the loss is accepted", on=EMBEDDED, seconds=4)
def lost_log(test):
    up = own(test)
    connection = start(test, up)
    for i in range(20):
        connection.request("POST", CONFIG_MAPS, objects.config_map(f"a{i}", {"k": "x"}))
    up.kill()
    log = journal_of(test, up).with_name("journal.db-wal")
    whole = log.read_bytes()
    log.write_bytes(whole[: len(whole) // 2])
    refused_start(test, up, "writes up to [0-9]+ were acknowledged.*--accept-lost-writes")
    log.unlink()
    refused_start(test, up, "writes up to [0-9]+ were acknowledged.*--accept-lost-writes")
    start(test, up, "--accept-lost-writes")
    test.equal(up.stop(), 0, "exit status")
    start(test, up)


@case("a data file of a newer version, and one in use, are refused", on=EMBEDDED, seconds=3)
def newer(test):
    up = own(test)
    start(test, up)
    refused_start(test, up, "(?i)in use|locked|another", compare=False)
    test.equal(up.stop(), 0, "exit status")
    file = journal_of(test, up)
    database = sqlite3.connect(file)
    version = database.execute("PRAGMA user_version").fetchone()[0]
    database.execute(f"PRAGMA user_version={version + 1}")
    database.commit()
    database.close()
    refused_start(test, up, "(?i)newer")


@case("a port in use and a bad directory are refused with a message", on=EMBEDDED)
def port_in_use(test):
    directory = test.cluster.directory
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = (
            "up",
            "--in-memory",
            f"--listen=127.0.0.1:{port}",
            f"--kubeconfig={directory}/none",
        )
        ran = test.berth(*arguments, status=1)
        test.match(f"(?i){port}.*in use|in use.*{port}", ran.stderr)
        test.true("ready" not in ran.stdout, f"it says ready: {ran.stdout}")
    blocked = directory / test.unique("file")
    blocked.write_text("no directory")
    ran = test.berth("up", f"--data-dir={blocked}", f"--listen=127.0.0.1:{free_port()}", status=1)
    test.match(str(blocked), ran.stderr)


@case("the kubeconfig and the data are for their owner only", on=EMBEDDED)
def permissions(test):
    up = own(test)
    old = os.umask(0)
    try:
        start(test, up)
    finally:
        os.umask(old)

    def mode(path):
        return stat.S_IMODE(path.stat().st_mode)

    test.equal(oct(mode(up.kubeconfig)), oct(0o600), "mode of the kubeconfig")
    for path in up.data.rglob("*"):
        if path.is_file():
            open_to_all = mode(path) & 0o077
            folders = [p for p in path.parents if p == up.data or up.data in p.parents]
            closed = any(not mode(folder) & 0o077 for folder in folders)
            test.true(not open_to_all or closed, f"{path} can be read by others")
    config = json.loads(
        test.command(
            [test.program.path, "config", "view", "--raw", "-o", "json"],
            environment=test.program.environment(up.kubeconfig),
        ).stdout
    )
    user = config["users"][0]["user"]
    test.true(user.get("token"), "no token")
    test.true(
        user.get("client-certificate-data") and user.get("client-key-data"), "no client certificate"
    )


@case("the client certificate is a credential by itself", on=EMBEDDED)
def client_certificate(test):
    import base64
    import ssl

    up = own(test)
    connection = start(test, up)
    user = up.credentials.user
    certificate = up.directory / "client.pem"
    certificate.write_bytes(
        base64.b64decode(user["client-certificate-data"])
        + base64.b64decode(user["client-key-data"])
    )
    authority = base64.b64decode(up.credentials.cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    context.load_cert_chain(certificate)
    up.credentials.context = context
    with_certificate = Connection(up.credentials)
    test.equal(
        with_certificate.request("GET", CONFIG_MAPS, token=None).status, 200, "with the certificate"
    )
    test.equal(connection.request("GET", "/readyz").status, 200, "health")


@case("berth up --in-memory forgets, and needs no directory", on=EMBEDDED)
def in_memory(test):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="memory-", dir=test.cluster.directory))
    up = BerthUp(directory, test.program)
    test.cleanups.append(lambda: up.process and up.process.end())
    up.start("--in-memory")
    connection = Connection(up.credentials)
    connection.request("POST", CONFIG_MAPS, objects.config_map("a"))
    test.equal(up.stop(), 0, "exit status")
    up.start("--in-memory")
    connection = Connection(up.credentials)
    test.equal(connection.request("GET", f"{CONFIG_MAPS}/a").status, 404, "status after a restart")


@case("the ready line comes when it serves, and names the address", on=EMBEDDED)
def ready_line(test):
    up = own(test)
    start(test, up, "--nodes=1")
    test.match(rf"^ready https://127\.0\.0\.1:{up.port}", up.ready_line())
    lines = [line for line in up.process.lines() if line.startswith("ready ")]
    test.equal(len(lines), 1, "ready lines")


@case("bad arguments end with status 2 and a message, --help with 0", on=EMBEDDED)
def arguments(test):
    for wrong in (
        ["up", "--nosuch"],
        ["nosuch"],
        ["up", "--listen=nonsense"],
        ["up", "--listen=127.0.0.1:99999"],
        ["up", "--in-memory", "--data-dir=x"],
        ["up", "--in-memory", "--nodes=-1"],
        ["nodes", "--count=x"],
        ["why"],
    ):
        ran = test.berth(*wrong, status=2)
        test.true(ran.stderr.strip(), f"{wrong}: no message")
    for command in (
        [],
        ["up"],
        ["run"],
        ["nodes"],
        ["controllers"],
        ["why"],
        ["queue"],
        ["replay"],
        ["replay", "openb"],
    ):
        test.match("(?i)usage|options", test.berth(*command, "--help").stdout)
    test.match(r"\d", test.berth("--version").stdout)


@case("a kubeconfig that lacks things is refused with what it lacks", on=EMBEDDED)
def kubeconfigs(test):
    directory = test.cluster.directory
    good = pathlib.Path(test.cluster.kubeconfig).read_text()
    exec_plugin = """
users:
- name: u
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: get-token, interactiveMode: Never}
"""
    head = """apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:1"}}]
"""
    for text, pattern in (
        ("", "(?i)empty|0 documents|context"),
        ("a: [", "(?i)yaml|line|parse"),
        ("apiVersion: v1\nkind: Config\n", "(?i)context|cluster"),
        (head.replace("current-context: c", "current-context: other"), "other"),
        (head.replace("user: u", "user: nosuch") + "users: []\n", "nosuch"),
        (
            head.replace("https://127.0.0.1:1", "nonsense")
            + "users: [{name: u, user: {token: t}}]\n",
            "nonsense|server",
        ),
        (head + exec_plugin, "(?i)exec"),
    ):
        file = directory / test.unique("config")
        file.write_text(text)
        ran = test.berth("why", "pod/p", "-n", "default", f"--kubeconfig={file}", status=1)
        test.match(pattern, ran.stderr, f"complaint of {text[:100]!r}")
        ran = test.berth("nodes", "--count=1", f"--kubeconfig={file}", status=1, timeout=20)
        test.match(pattern, ran.stderr, f"complaint of {text[:100]!r}")
    test.true("server:" in good, "the good one has no server")
    for bad in (directory / "nosuch.crt", test.cluster.kubeconfig):
        options = (f"--kubeconfig={test.cluster.kubeconfig}", f"--why-ca={bad}")
        ran = test.berth("why", "pod/p", *options, status=1)
        test.match(rf"--why-ca .*{bad.name}", ran.stderr)
    ran = test.berth("run", f"--kubeconfig={directory}/nosuch", status=1, timeout=20)
    test.match("nosuch", ran.stderr)


def ask_why(test, up, connection, port, authority):
    """`berth why` of a `berth run`: of pods that run, wait, are others', have finished, or are none."""
    pods = "/api/v1/namespaces/default/pods"
    large = objects.pod("large", cpu="9000")
    others = objects.pod("others", schedulerName="zzz")
    for pod in (large, others, objects.short_pod("short")):
        test.equal(connection.request("POST", pods, pod).status, 201, "status")

    def phase(name):
        return connection.request("GET", f"{pods}/{name}").json()["status"]["phase"]

    wait_until("one has finished", lambda: phase("short") == "Succeeded")
    options = ["-n", "default", f"--kubeconfig={up.kubeconfig}"]
    of_run = [*options, f"--why-address=127.0.0.1:{port}", f"--why-ca={authority}"]
    running = connection.request("GET", pods).json()["items"]
    name = next(pod["metadata"]["name"] for pod in running if "web" in pod["metadata"]["name"])
    # The scheduler hears later what we saw.
    for pod, why in (
        (name, "on node "),
        ("large", "0/2 nodes are available"),
        ("others", 'spec.schedulerName names, "zzz"'),
        ("short", "finished\n  on node "),
    ):
        test.wait(f"it says {why!r}", lambda: why in test.berth("why", pod, *of_run, status=None).stdout)
    test.match("is not known", test.berth("why", "nosuch", *of_run, status=1).stderr)
    # Without the authority of its own, by a port where nobody listens, and where no scheduler is.
    address = of_run[:-1]
    test.match("--why-ca", test.berth("why", "large", *address, status=1).stderr)
    nobody = [*options, f"--why-address=127.0.0.1:{free_port()}", of_run[-1]]
    test.match("Connection refused", test.berth("why", "large", *nobody, status=1).stderr)
    test.match("--why-address", test.berth("why", "large", *options, status=1).stderr)


@case("nodes, controllers and the scheduler run as processes of their own", on=EMBEDDED, seconds=6)
def separate_processes(test):
    up = own(test)
    connection = start(test, up, "--no-scheduler", "--no-controllers")
    parts = {}
    for name, *more in (("controllers",), ("nodes", "--count=2"), ("run", "--leader-elect=false")):
        command = [berth_program(), name, f"--kubeconfig={up.kubeconfig}", *more]
        parts[name] = Background(command, log=up.directory / f"{name}.log")
        test.cleanups.append(parts[name].end)
    path = "/apis/apps/v1/namespaces/default/deployments"
    pods = "/api/v1/namespaces/default/pods"
    test.equal(
        connection.request("POST", path, objects.deployment("web", replicas=3)).status,
        201,
        "status",
    )

    def ready(count):
        for name, part in parts.items():
            test.true(part.alive(), f"berth {name} ended: {part.text()}")
        items = connection.request("GET", pods).json()["items"]
        return len(items) == count and all(objects.is_true(item, "Ready") for item in items)

    wait_until("three run", lambda: ready(3))
    # A scheduler that dies and another that follows: nothing is bound twice, nothing is lost.
    parts["run"].signal(signal.SIGKILL)
    parts["run"].wait(10)
    headers = {"Content-Type": "application/merge-patch+json"}
    connection.request("PATCH", f"{path}/web", '{"spec":{"replicas":6}}', headers)
    port, authority = free_port(), up.directory / "run-ca.crt"
    command = [berth_program(), "run", f"--kubeconfig={up.kubeconfig}", "--leader-elect=false"]
    command += [f"--secure-port={port}", f"--secure-ca={authority}"]
    parts["run"] = Background(command, log=up.directory / "run.log")
    test.cleanups.append(parts["run"].end)
    wait_until("six run", lambda: ready(6))
    ask_why(test, up, connection, port, authority)
    for name, part in parts.items():
        part.signal(signal.SIGTERM)
        test.equal(part.wait(30), 0, f"exit status of berth {name}")


@case(
    "a scheduler that is killed amid its work loses no pod and overfills no node",
    needs=("controllers",),
    seconds=6,
)
def scheduler_killed(test):
    name = test.unique("scheduler")
    running = []

    def start_scheduler():
        # The lease is the cluster's own scheduler's; cases_leader.py has the election.
        options = (
            f"--kubeconfig={test.cluster.kubeconfig}",
            f"--scheduler-name={name}",
            "--leader-elect=false",
        )
        running.append(Background([berth_program(), "run", *options]))
        test.cleanups.append(running[-1].end)

    start_scheduler()
    for i in range(4):
        test.make_node(f"{name}-{i}", cpu="4", labels={"row": name})
    spec = {"schedulerName": name, "nodeSelector": {"row": name}, "tolerations": [TOLERATION]}

    def placed():
        return [p["spec"]["nodeName"] for p in test.pods() if p["spec"].get("nodeName")]

    made = 0
    for goal in (20, 60, 100):
        # Killed while pods are on their way: some bound, some not, some bound without our knowing.
        for made in range(made, goal):
            test.create(test.path("pods"), objects.pod(f"p{made:03d}", cpu="150m", **spec))
        made = goal
        test.wait("some are placed", lambda: len(placed()) > goal - 20)
        running[-1].signal(signal.SIGKILL)
        running[-1].wait(10)
        start_scheduler()
    # 26 of 150m fit a node of 4.
    test.wait("all are placed", lambda: len(placed()) == 100)
    nodes = placed()
    test.true(max(nodes.count(n) for n in set(nodes)) <= 26, f"overfilled: {sorted(nodes)}")
    for i in range(100, 110):
        test.create(test.path("pods"), objects.pod(f"p{i:03d}", cpu="150m", **spec))
    test.wait("four more are placed", lambda: len(placed()) == 104)
    # Pods of one second have no order.
    waiting = next(p for p in test.pods() if not p["spec"].get("nodeName"))
    test.unschedulable(waiting["metadata"]["name"], "4 Insufficient cpu")
    test.equal(sorted(placed().count(n) for n in set(nodes)), [26] * 4, "pods by node")


@case(
    "berth up --demo --once runs its load and ends with a summary",
    on=EMBEDDED,
    seconds=80,
)
def demo(test):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="demo-", dir=test.cluster.directory))
    ran = test.berth(
        "up",
        "--demo",
        "--once",
        "--in-memory",
        f"--listen=127.0.0.1:{free_port()}",
        f"--kubeconfig={directory}/kubeconfig",
        timeout=300,
    )
    test.match(r"(?m)^ready https://", ran.stdout)
    test.match("kubectl", ran.stdout, "the lines to try")
    test.true("\033[" not in ran.stdout, "control sequences though stdout is no terminal")


@case(
    "berth replay runs the project's own trace, the same with the same seed", on=EMBEDDED, seconds=5
)
def replay(test):
    root = pathlib.Path(__file__).resolve().parents[2]
    found = sorted(root.glob("src/**/testdata/**/*nodes*.csv")) + sorted(
        root.glob("tests/**/*nodes*.csv")
    )
    if not found:
        raise Failure("the project has no small trace of its own")
    nodes = found[0]
    pods = next(nodes.parent.glob("*pods*.csv"))
    reports = []
    for _ in range(2):
        report = test.cluster.directory / test.unique("report.json")
        test.berth("replay", "openb", nodes, pods, "--seed=7", f"--report={report}")
        reports.append(json.loads(report.read_text()))
    test.equal(reports[0]["decision_hash"], reports[1]["decision_hash"], "decision hash")
    test.equal(reports[0]["seed"], 7, "seed")
    bad = test.cluster.directory / test.unique("bad.csv")
    lines = pods.read_text().splitlines()
    lines[2] = lines[2].replace(",", ",nonsense", 2)
    bad.write_text("\n".join(lines) + "\n")
    ran = test.berth("replay", "openb", nodes, bad, status=1)
    test.match(rf"{bad.name}.*\b3\b", ran.stderr, "file and line")
    test.berth("replay", "openb", nodes, bad, "--skip-bad")
