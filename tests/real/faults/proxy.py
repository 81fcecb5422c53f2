"""A proxy between berth and the API server, that speaks TLS on both sides and does wrong on request.

One thread has each client's connection and the one to the server that belongs to it: a TLS socket of
Python's is of one thread.
"""

import collections
import contextlib
import pathlib
import select
import socket
import ssl
import subprocess
import threading
import time

CHUNK = 1 << 16
HOLD_SECONDS = 33  # berth gives a request up after 30.
STATUSES = {
    409: (b"Conflict", b"Conflict"),
    429: (b"Too Many Requests", b"TooManyRequests"),
    500: (b"Internal Server Error", b"InternalError"),
}


class Closed(Exception):
    """One side closed the connection."""


def make_certificate(directory):
    """(certificate, key) for loopback, that signs itself."""
    certificate, key = pathlib.Path(directory) / "proxy.crt", pathlib.Path(directory) / "proxy.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=proxy"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


class Wire:
    """Reads messages of HTTP/1.1 from a socket as the bytes that they are."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = b""

    def more(self):
        data = self.sock.recv(CHUNK)
        if not data:
            raise Closed
        self.buffer += data

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def until(self, end):
        while end not in self.buffer:
            self.more()
        return self.take(self.buffer.index(end) + len(end))

    def body(self, head):
        """The bytes that follow a head: by their length, or chunks as they are."""
        fields = fields_of(head)
        if fields.get("transfer-encoding") == "chunked":
            made = b""
            while True:
                line = self.until(b"\r\n")
                size = int(line.split(b";")[0], 16)
                made += line + self.take(size + 2)
                if size == 0:
                    return made
        return self.take(int(fields.get("content-length", 0)))

    def waiting(self, seconds):
        """Whether there is something to read within so long."""
        return bool(self.buffer or self.sock.pending() or select.select([self.sock], [], [], seconds)[0])


def fields_of(head):
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


class Link(contextlib.ExitStack):
    """The connection to the server that belongs to a client's, once there is one."""

    wire = None

    def connect(self, upstream):
        if self.wire is None:
            host, port, context = upstream
            raw = self.enter_context(socket.create_connection((host, port), timeout=600))
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.wire = Wire(self.enter_context(context.wrap_socket(raw, server_hostname=host)))
        return self.wire


class Proxy:
    """`decide(method, path)` names what is done to a request: None, a status, "lose-request", "lose-answer" or "hold"."""

    def __init__(self, directory, port, upstream, decide=lambda method, path: None):
        certificate, key = make_certificate(directory)
        self.certificate = certificate
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate, key)
        self.upstream, self.decide = upstream, decide
        self.listener = socket.create_server(("127.0.0.1", port), backlog=256)
        self.lock = threading.Lock()
        self.fired = collections.Counter()
        self.generation = 0  # Watches of an earlier one are cut.
        self.holding = 0
        self.ended = False
        threading.Thread(target=self.accept, daemon=True).start()

    def cut_watches(self):
        self.generation += 1

    def end(self):
        self.ended = True
        self.cut_watches()
        self.listener.close()

    def count(self, what):
        with self.lock:
            self.fired[what] += 1

    def accept(self):
        while not self.ended:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(accepted,), daemon=True).start()

    def serve(self, accepted):
        with contextlib.suppress(OSError, Closed, ValueError), accepted:
            accepted.settimeout(600)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.context.wrap_socket(accepted, server_side=True) as tls:
                client = Wire(tls)
                with Link() as link:
                    while not self.ended:
                        head = client.until(b"\r\n\r\n")
                        self.answer(client, link, head, client.body(head))

    def answer(self, client, link, head, body):
        """Answers one request."""
        method, path, _ = head.decode("latin-1").split(" ", 2)
        watch = "watch=1" in path or "watch=true" in path
        fault = None if watch else self.decide(method, path)
        if fault is not None:
            self.count(f"{fault} of {kind_of(method, path)}")
        if fault == "lose-request":
            raise Closed
        if isinstance(fault, int):
            client.sock.sendall(refusal(fault))
            return
        if fault == "hold":
            with self.lock:
                self.holding += 1
            time.sleep(HOLD_SECONDS)
        server = link.connect(self.upstream)
        server.sock.sendall(head + body)
        answer = server.until(b"\r\n\r\n")
        if fault == "hold":
            with self.lock:
                self.holding -= 1
        if watch and answer.startswith(b"HTTP/1.1 200"):
            client.sock.sendall(answer)
            self.relay(client, server)
            return
        answer += server.body(answer)
        if fault == "lose-answer":
            raise Closed
        client.sock.sendall(answer)
        if fields_of(answer.partition(b"\r\n\r\n")[0]).get("connection", "").lower() == "close":
            raise Closed

    def relay(self, client, server):
        """The chunks of a watch, until it ends or is cut."""
        generation = self.generation
        while generation == self.generation:
            if not server.waiting(0.05):
                continue
            line = server.until(b"\r\n")
            size = int(line.split(b";")[0], 16)
            client.sock.sendall(line + server.take(size + 2))
            if size == 0:
                return
        self.count("watches cut")
        raise Closed


def kind_of(method, path):
    resource = path.partition("?")[0].rstrip("/")
    return "a binding" if resource.endswith("/binding") else f"a {method}"


def refusal(status):
    reason, name = STATUSES[status]
    body = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"made by the proxy","reason":"%s","code":%d}' % (name, status)
    retry = b"Retry-After: 1\r\n" if status == 429 else b""
    head = b"HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (status, reason, retry, len(body))
    return head + body
