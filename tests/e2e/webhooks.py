"""A webhook server of a case's own: HTTPS with a certificate made by openssl, whose answers the case decides."""

import base64
import http.server
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading


def own_address():
    """An address of this machine that isn't a loopback one: EndpointSlices may have it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # Nothing is sent.
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def make_certificate(directory, names):
    """A key, and a certificate for names that has signed itself; their paths."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=webhook", "-addext", "subjectAltName=" + ",".join(names),
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )
    return key, certificate


def allow(request, **more):
    return {"uid": request["uid"], "allowed": True} | more


def deny(request, **status):
    return {"uid": request["uid"], "allowed": False} | ({"status": status} if status else {})


def patch(request, *operations):
    text = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return allow(request, patchType="JSONPatch", patch=text)


class Webhook:
    """Answers each review with what `decide(request)` returns: a response, bytes to send as they are,
    None to hang up, or an Event to wait for, after which the connection ends."""

    def __init__(self, test, decide, names=()):
        self.decide = decide
        self.reviews = []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="webhook-", dir=test.cluster.directory))
        key, certificate = make_certificate(self.directory, ["IP:127.0.0.1", *(f"DNS:{name}" for name in names)])
        self.ca_bundle = base64.b64encode(certificate.read_bytes()).decode()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                # The handshake in this thread: one that hangs holds up nobody.
                self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                review = json.loads(body)
                webhook.reviews.append({"path": self.path} | review)
                webhook.answer(self, review)

            def log_message(self, *arguments):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Clients that leave.

        self.server = Server(("0.0.0.0", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        test.cleanups.append(self.end)

    def answer(self, handler, review):
        decided = self.decide(review["request"])
        if isinstance(decided, threading.Event):
            decided.wait(60)
            decided = None
        if decided is None:
            handler.close_connection = True
            return
        if not isinstance(decided, bytes):
            text = json.dumps({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": decided})
            decided = (
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(text)
                + text.encode()
            )
        handler.wfile.write(decided)

    def requests(self, operation=None):
        return [r["request"] for r in list(self.reviews) if operation in (None, r["request"]["operation"])]

    def url(self, path="/"):
        return f"https://127.0.0.1:{self.port}{path}"

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def rule(resources, operations=("*",), groups=("*",), versions=("*",), **more):
    return {
        "apiGroups": list(groups), "apiVersions": list(versions), "operations": list(operations),
        "resources": list(resources),
    } | more


def entry(test, webhook, rules, name="hook.example.com", **more):
    """One webhook of a configuration, for this case's namespace alone unless it says otherwise."""
    made = {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": webhook.url(), "caBundle": webhook.ca_bundle},
        "rules": rules,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": test.namespace}},
    }
    return made | more


def install(test, kind, *entries, name="hooks"):
    """Makes a ValidatingWebhookConfiguration or a Mutating one, and waits until it counts."""
    name = test.unique(name)
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
    test.create(path, {"metadata": {"name": name}, "webhooks": list(entries)})
    test.cleanups.append(lambda: test.http("DELETE", f"{path}/{name}"))
    return f"{path}/{name}"
