"""A scheduler extender of a case's own: HTTP or HTTPS, whose answers the case decides."""

import http.server
import json
import pathlib
import ssl
import subprocess
import tempfile
import threading
import time

from harness import Background, berth_program
from webhooks import make_certificate


class Extender:
    """Answers each call with what `decide(verb, arguments)` returns: a document, a number as a status,
    or an Event to wait for, after which the connection ends."""

    def __init__(self, test, decide, tls=False, port=0):
        self.decide = decide
        self.calls = []
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="extender-", dir=test.cluster.directory))
        self.context = self.make_context() if tls else None
        extender = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                if extender.context:
                    self.request = extender.context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_POST(self):
                arguments = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                verb = self.path.rsplit("/", 1)[-1]
                extender.calls.append((self.path, arguments))
                extender.answer(self, verb, arguments)

            def log_message(self, *arguments):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # Clients that leave.

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()
        test.cleanups.append(self.end)

    def make_context(self):
        """Of a server that knows one client, whose certificate has signed itself."""
        self.key, self.certificate = make_certificate(self.directory, ["DNS:extender.example.com"])
        self.client_key, self.client_certificate = self.directory / "client-key.pem", self.directory / "client.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
             "-subj", "/CN=berth", "-keyout", str(self.client_key), "-out", str(self.client_certificate)],
            check=True, capture_output=True,
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        context.load_verify_locations(self.client_certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def answer(self, handler, verb, arguments):
        decided = self.decide(verb, arguments)
        if isinstance(decided, threading.Event):
            decided.wait(60)
            handler.close_connection = True
            return
        text = b"" if isinstance(decided, int) else json.dumps(decided).encode()
        handler.send_response(decided if isinstance(decided, int) else 200)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def verbs(self, pod=None):
        def of(arguments):
            return arguments.get("PodName") or arguments["Pod"]["metadata"]["name"]

        return [path.rsplit("/", 1)[-1] for path, a in list(self.calls) if pod in (None, of(a))]

    def url(self):
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}/extender"

    def settings(self, **more):
        return {"urlPrefix": self.url(), "filterVerb": "filter", "nodeCacheCapable": True} | more

    def end(self):
        self.server.shutdown()
        self.server.server_close()


class Scheduler:
    """A `berth run` by a file with these extenders, for the pods of a name of its own."""

    def __init__(self, test, *extenders, profile=None):
        self.test = test
        self.name = test.unique("extended")
        self.file = write_configuration(test, self.name, extenders, profile)
        self.process = Background([
            berth_program(), "run", f"--kubeconfig={test.cluster.kubeconfig}", f"--config={self.file}",
        ])
        test.cleanups.append(self.process.end)

    def spec(self, **more):
        return {"schedulerName": self.name} | more


def write_configuration(test, name, extenders, profile=None):
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": name} | (profile or {})],
        "extenders": list(extenders),
    }
    path = pathlib.Path(test.cluster.directory) / f"{name}-{time.monotonic_ns()}.yaml"
    path.write_text(json.dumps(configuration))
    return path
