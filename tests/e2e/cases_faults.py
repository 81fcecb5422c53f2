"""Crowds, slow clients, a full disk, endless schemas, and Secrets that stay where they belong."""

import base64
import concurrent.futures
import contextlib
import json
import os
import pathlib
import resource
import selectors
import socket
import ssl
import subprocess
import tempfile
import threading

import objects
from cases_processes import CONFIG_MAPS, EMBEDDED, Writer, check_acknowledged, own, start
from clusters import BerthUp
from harness import Background, Connection, Failure, Skip, berth_program, case, wait_until

WATCHES_COUNT = 10_000
# Of the server, for each connection with a watch: buffers of TLS and HTTP, and the watch itself.
WATCH_BYTES_MAX = 200 * 1024
# What the server may take when clients don't read: 1 GiB of answers, what it has stored, and its log of changes.
SLOW_BYTES_MAX = 2 << 30
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"Content-Type": "application/merge-patch+json"}


def resident_bytes(up):
    status = pathlib.Path(f"/proc/{up.process.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def ask(credentials, path, receive_bytes=None):
    """A TLS connection on which a GET was sent, and nothing is read yet."""
    raw = socket.socket()
    if receive_bytes is not None:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    raw.settimeout(60)
    raw.connect((credentials.host, credentials.port))
    tls = credentials.context.wrap_socket(raw, server_hostname=credentials.host)
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nAuthorization: Bearer {credentials.token}\r\n\r\n"
    tls.sendall(head.encode())
    return tls


def descriptors_wanted(count):
    """Raises the limit of this process; a server that it starts may raise its own as far."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < count:
        raise Skip(f"needs {count} descriptors, the limit is {most} (ulimit -Hn)")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if soft != resource.RLIM_INFINITY and soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, most))


@case("10,000 watches at once are each told, and hold nobody up", on=EMBEDDED, alone=True, seconds=60)
def watches(test):
    descriptors_wanted(WATCHES_COUNT + 1000)
    up = own(test)
    connection = start(test, up)
    before = resident_bytes(up)
    path = f"{CONFIG_MAPS}?watch=1&resourceVersion=0&fieldSelector=metadata.name%3Dtold"

    def open_watch(_):
        tls = ask(up.credentials, path)
        head = tls.recv(4096)
        if not head.startswith(b"HTTP/1.1 200"):
            raise Failure(f"a watch was answered with {head!r}")
        return tls

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(open_watch, range(WATCHES_COUNT)))
    test.cleanups.append(lambda: [tls.close() for tls in opened])
    grown = resident_bytes(up) - before
    test.log.append(f"({WATCHES_COUNT} watches: {grown >> 20} MiB more, {grown // WATCHES_COUNT} bytes each)")
    test.true(grown < WATCHES_COUNT * WATCH_BYTES_MAX, f"{grown >> 20} MiB for {WATCHES_COUNT} watches")
    # Others read and write meanwhile, on new connections, too.
    for i in range(20):
        other = Connection(up.credentials)
        test.equal(other.request("POST", CONFIG_MAPS, objects.config_map(f"m{i}")).status, 201, "status")
        test.equal(other.request("GET", f"{CONFIG_MAPS}/m{i}").status, 200, "status")
        other.close()
    test.equal(connection.request("POST", CONFIG_MAPS, objects.config_map("told")).status, 201, "status")
    waiting = selectors.DefaultSelector()
    for tls in opened:
        tls.setblocking(False)
        waiting.register(tls, selectors.EVENT_READ, bytearray())

    def read_some():
        for key, _ in waiting.select(1):
            try:
                key.data.extend(key.fileobj.recv(16384))
            except ssl.SSLWantReadError:
                continue
            if key.data.endswith(b"}\n\r\n"):
                test.true(b'"ADDED"' in key.data and b'"name":"told"' in key.data, f"told {bytes(key.data)!r}")
                waiting.unregister(key.fileobj)
        return not waiting.get_map()

    test.wait("each watch is told", read_some)
    waiting.close()


@case("clients that read a byte now and then cost a bounded amount, and delay nobody", on=EMBEDDED, alone=True, seconds=40)
def slow_clients(test):
    up = own(test)
    connection = start(test, up)
    text = "x" * 500_000
    for i in range(40):
        connection.request("POST", CONFIG_MAPS, objects.config_map(f"large{i}", {"a": text}))
    version = connection.request("GET", f"{CONFIG_MAPS}?limit=1").json()["metadata"]["resourceVersion"]
    slow = []
    test.cleanups.append(lambda: [tls.close() for tls in slow])
    # 200 lists of 20 MB, 100 watches that will be told of 100 MB: 14 GB if all of it waited for them.
    for _ in range(100):
        slow.append(ask(up.credentials, CONFIG_MAPS, receive_bytes=4096))
        slow.append(ask(up.credentials, CONFIG_MAPS, receive_bytes=4096))
        slow.append(ask(up.credentials, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}", receive_bytes=4096))
    quick = WatchStreamOf(up, version)
    test.cleanups.append(quick.close)
    for i in range(200):
        patch = json.dumps({"data": {"a": f"{i}{text}"}})
        answer = connection.request("PATCH", f"{CONFIG_MAPS}/large{i % 40}", patch, MERGE)
        test.equal(answer.status, 200, f"status of patch {i}")
        with contextlib.suppress(OSError, ssl.SSLError):
            slow[i % len(slow)].recv(1)
    test.wait("who reads is told of all", lambda: quick.count() == 200)
    test.equal(Connection(up.credentials).request("GET", CONFIG_MAPS).status, 200, "a whole list meanwhile")
    used = resident_bytes(up)
    test.log.append(f"({used >> 20} MiB resident)")
    test.true(used < SLOW_BYTES_MAX, f"{used >> 20} MiB resident")


class WatchStreamOf:
    """A watch whose events are counted and forgotten."""

    def __init__(self, up, version):
        self.tls = ask(up.credentials, f"{CONFIG_MAPS}?watch=1&resourceVersion={version}")
        self.told = 0
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            while data := self.tls.recv(1 << 16):
                self.told += data.count(b'{"type":"MODIFIED"')

    def count(self):
        return self.told

    def close(self):
        # Python's TLS sockets are not for two threads at once: the reader is made to end before they are closed.
        with contextlib.suppress(OSError):
            self.tls.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.tls.close()


@contextlib.contextmanager
def small_disk(directory, mebibytes):
    """A file system of its own, that can be filled."""
    directory.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m,mode=700", "tmpfs", str(directory)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        raise Skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


def fill(directory):
    """Takes all room on the file system of `directory`; returns the file that has it."""
    filler = directory / "filler"
    with open(filler, "ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    return filler


@case("a full disk refuses writes by name, serves reads, loses nothing, and is written to again", on=EMBEDDED, seconds=15)
def disk_full(test):
    directory = pathlib.Path(tempfile.mkdtemp(prefix="disk-", dir=test.cluster.directory))
    with small_disk(directory / "mounted", 24):
        up = BerthUp(directory, test.program)
        up.data = directory / "mounted/data"
        test.cleanups.append(lambda: up.process and up.process.end())
        try:
            fill_and_free(test, up, directory / "mounted")
        finally:
            # The mount goes before the case's own clean-up.
            if up.process is not None:
                up.process.end()


def fill_and_free(test, up, mounted):
    connection = start(test, up, "--nodes=2")
    stop = threading.Event()
    writers = [Writer(up.credentials, f"w{i}", stop) for i in range(4)]
    wait_until("they write", lambda: all(len(writer.acknowledged) > 5 for writer in writers))
    filler = fill(mounted)
    # Each ends with the first write that is refused.
    for writer in writers:
        writer.thread.join(90)
        test.true(not writer.thread.is_alive(), "writes go on though the disk is full")
    answer = connection.request("POST", CONFIG_MAPS, objects.config_map("refused", {"a": "x" * 200_000}))
    test.equal((answer.status, answer.reason), (507, "InsufficientStorage"), f"answer: {answer.message}")
    test.match("no space left on the server's disk", answer.message)
    large = test.command(
        [test.program.path, "create", "configmap", "big", f"--from-literal=a={'x' * 100_000}"],
        environment=test.program.environment(up.kubeconfig),
        status=1,
    )
    test.match("no space left on the server's disk", large.stderr)
    # Reads go on, and show what was acknowledged and nothing else.
    test.equal(connection.request("GET", "/readyz").status, 200, "health")
    test.equal(connection.request("GET", f"{CONFIG_MAPS}/refused").status, 404, "what was refused")
    check_acknowledged(test, connection, writers)
    lines = [line for line in up.process.lines() if "no space left" in line]
    test.true(0 < len(lines) < 20, f"{len(lines)} lines about it")
    filler.unlink()
    retried = lambda: connection.request("POST", CONFIG_MAPS, objects.config_map("refused")).status == 201
    wait_until("writes go on", retried)
    # What was refused is not in the file either: a second time full, then killed or ended, and started without room.
    for end in (up.kill, up.stop):
        filler = fill(mounted)
        connection.request("POST", CONFIG_MAPS, objects.config_map("again", {"a": "x" * 900_000}))
        end()
        fill(mounted)  # The log was given back.
        connection = start(test, up, "--nodes=2", port=up.port)
        test.true(any("no space left" in line for line in up.process.lines()), "the start says nothing of the disk")
        check_acknowledged(test, connection, writers)
        test.equal(connection.request("GET", "/readyz").status, 200, "health")
        answer = connection.request("POST", CONFIG_MAPS, objects.config_map("without-room"))
        test.equal((answer.status, answer.reason), (507, "InsufficientStorage"), f"answer: {answer.message}")
        filler.unlink()
        wait_until("writes go on", lambda: connection.request("POST", CONFIG_MAPS, objects.config_map("r")).status in (201, 409))
        connection.request("DELETE", f"{CONFIG_MAPS}/r")
    up.kill()
    connection = start(test, up, "--nodes=2")
    test.true(check_acknowledged(test, connection, writers) > 20, "few writes were acknowledged")
    test.equal(connection.request("GET", f"{CONFIG_MAPS}/refused").status, 200, "what was written then")


def definition(name, schema):
    plural = f"{name}s"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.faults.e2e.test"},
        "spec": {
            "group": "faults.e2e.test",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": name, "kind": name.capitalize()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def schema_of(properties):
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


@case("schemas without end or measure are refused, and say why", on=EMBEDDED, seconds=5)
def schemas(test):
    def refused(name, properties, statuses, pattern):
        answer = test.http("POST", DEFINITIONS, definition(name, schema_of(properties)))
        test.true(answer.status in statuses, f"{name}: {answer.status} {answer.message[:300]}")
        test.match(pattern, answer.message, name)
        test.equal(test.http("GET", "/readyz").status, 200, "health after it")

    recursive = {"a": {"type": "object", "properties": {"b": {"type": "object", "$ref": "#/properties/spec"}}}}
    refused("recursive", recursive, (422,), r"\$ref: Forbidden: \$ref is not supported")
    deep = {"type": "string"}
    for _ in range(60):
        deep = {"type": "object", "properties": {"a": deep}}
    refused("deep", {"a": deep}, (400, 422), "nest|deep|depth")
    many = {f"property{i:06}": {"type": "string", "description": "x" * 20} for i in range(30_000)}
    refused("enormous", many, (413,), "limit is")
    refused("pattern", {"a": {"type": "string", "pattern": "((a{1,200}){1,200}){1,200}"}}, (422,), "pattern")
    # As large as may be: it is served, and its defaults fill no memory.
    bomb = {"type": "object", "properties": {"a": {"type": "string", "default": "x"}}}
    for _ in range(9):
        bomb = {"type": "object", "properties": {"a": {"type": "array", "items": bomb, "default": [{}] * 10}}}
    large = {f"property{i:06}": {"type": "string"} for i in range(15_000)}
    test.create(DEFINITIONS, definition("large", schema_of(large | {"bomb": bomb})))
    name = "larges.faults.e2e.test"
    test.cleanups.append(lambda: test.http("DELETE", f"{DEFINITIONS}/{name}"))
    established = lambda: objects.is_true(test.get(f"{DEFINITIONS}/{name}"), "Established")
    test.wait("it is established", established)
    path = test.path("larges", group="faults.e2e.test/v1")
    made = {"apiVersion": "faults.e2e.test/v1", "kind": "Large", "metadata": {"name": "a"}}
    test.wait("it is served", lambda: test.http("GET", path).status == 200)
    answer = test.http("POST", path, made | {"spec": {"bomb": {}}})
    test.equal(answer.status, 413, f"defaults that multiply: {answer.message[:300]}")
    test.match("limit is", answer.message)
    test.create(path, made | {"spec": {"property000007": "seven"}})
    test.equal(test.http("GET", "/openapi/v3/apis/faults.e2e.test/v1").status, 200, "its OpenAPI")


SECRET = "Tr0ub4dor-and-3-horses"


def leaks(text, more=()):
    """Which of the secret texts are in `text`, plain or as a Secret has them."""
    wanted = [SECRET, base64.b64encode(SECRET.encode()).decode(), *more]
    return [secret for secret in wanted if secret in text]


@case("Secrets and tokens are in no log and no event", on=EMBEDDED, seconds=10)
def secrets(test):
    up = own(test)
    connection = start(test, up, "--nodes=2", "--verbose", "--no-scheduler", "--no-controllers")
    parts = {}
    for name in ("controllers", "run"):
        command = [berth_program(), name, f"--kubeconfig={up.kubeconfig}", "--verbose"]
        parts[name] = Background(command, log=up.directory / f"{name}.log")
        test.cleanups.append(parts[name].end)
    path = "/api/v1/namespaces/default/secrets"
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_until("the default account is there", lambda: connection.request("GET", account).status == 200)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": SECRET}}
    encoded = base64.b64encode(SECRET.encode()).decode()
    for method, at, body, headers, status in (
        ("POST", path, secret, None, 201),
        ("POST", path, secret, None, 409),
        # What is wrong with it is said without it.
        ("POST", path, secret | {"metadata": {"name": "A_b"}}, None, 422),
        ("POST", path, secret | {"type": "kubernetes.io/tls", "metadata": {"name": "t"}}, None, 422),
        ("POST", path, secret | {"stringData": {"a b": SECRET}, "metadata": {"name": "u"}}, None, 422),
        ("POST", path, secret | {"data": {"a": SECRET + "!"}, "metadata": {"name": "v"}}, None, 400),
        ("POST", path, '{"kind":"Secret","data":{"a":"' + encoded, {"Content-Type": "application/json"}, 400),
        ("PATCH", f"{path}/s", json.dumps({"data": {"more": encoded}}), MERGE, 200),
        ("PATCH", f"{path}/s", json.dumps({"immutable": True}), MERGE, 200),
        ("PATCH", f"{path}/s", json.dumps({"stringData": {"more": SECRET + "2"}}), MERGE, 422),
        ("GET", f"{path}?fieldSelector=metadata.name%3Ds", None, None, 200),
    ):
        answer = connection.request(method, at, body, headers)
        test.equal(answer.status, status, f"{method} {at} {str(body)[:60]}: {answer.message}")
        if status >= 400:
            test.equal(leaks(answer.message), [], f"in the answer {answer.message!r}")
    connection.request("GET", path, token=SECRET)
    made = connection.request("POST", f"{account}/token", {"spec": {}})
    token = made.json()["status"]["token"]
    connection.request("GET", path, token=token)
    environment = [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]
    pod = objects.pod("p", imagePullSecrets=[{"name": "s"}])
    pod["spec"]["containers"][0]["env"] = environment
    volumes = [{"name": "v", "secret": {"secretName": "s"}}]
    huge = objects.pod("huge", cpu="9000", volumes=volumes)
    for each in (pod, huge):
        test.equal(connection.request("POST", "/api/v1/namespaces/default/pods", each).status, 201, "status")
    events = "/api/v1/events"
    told = lambda: {item["reason"] for item in connection.request("GET", events).json()["items"]}
    wait_until("there are events of both pods", lambda: {"Scheduled", "FailedScheduling"} <= told())
    test.equal(connection.request("DELETE", f"{path}/s").status, 200, "status")
    own_token = up.credentials.token
    found = leaks(connection.request("GET", events).body.decode(), [token, own_token])
    test.equal(found, [], "in events")
    logs = {"berth up": up.process.text()} | {name: part.text() for name, part in parts.items()}
    for name, text in logs.items():
        test.equal(leaks(text, [token, own_token]), [], f"in the log of {name}")
    for log in up.directory.glob("*.log"):
        test.equal(leaks(log.read_text(errors="replace"), [token, own_token]), [], f"in {log.name}")
