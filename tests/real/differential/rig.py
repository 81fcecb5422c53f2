"""The genuine API server with both schedulers on it, and a watch that tells what they do."""

import contextlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess
import threading
import urllib.request

import harness
import pods
import scores
import verdicts

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent

GENUINE_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 100
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
leaderElection: {{leaderElect: false}}
clientConnection: {{kubeconfig: {kubeconfig}, qps: 5000, burst: 5000}}
"""
BERTH_CONFIG = "apiVersion: config.berth.dev/v1alpha1\nkind: BerthConfiguration\ncompat: true\n"
NAMES = {"genuine": "default-scheduler", "berth": "berth"}
# Controllers that would serve these plugins do not run.
WITHOUT = "--api-server-flag=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection"
ANSWER_SECONDS_MAX = 60
# How long a promise may follow the words, and one eviction the other; one that comes later is a difference.
NOMINATION_SECONDS = 1
VICTIM_SECONDS = 0.3
MERGE = "application/merge-patch+json"
METRICS_THAT_COUNT_BUGS = ("berth_missed_wakes_total", "berth_audit_findings_total")


class Pods(threading.Thread):
    """The pods as a watch tells them. The watch's connection is this thread's alone."""

    def __init__(self, credentials):
        super().__init__(daemon=True)
        self.credentials = credentials
        self.changed = threading.Condition()
        self.pods = {}
        self.failure = None
        self.socket = None

    def run(self):
        try:
            self.follow()
        except Exception as failure:  # Whoever waits is told.
            self.failure = failure

    def follow(self):
        host, port = self.credentials.host, self.credentials.port
        connection = http.client.HTTPSConnection(host, port, context=self.credentials.context)
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self.credentials.token}"}
        # There are none yet: from the beginning.
        connection.request("GET", "/api/v1/pods?watch=1&timeoutSeconds=36000", headers=headers)
        # The same connection, for whoever ends it: a TLS socket is of one thread.
        self.socket = socket.socket(fileno=os.dup(connection.sock.fileno()))
        for line in connection.getresponse():
            event = json.loads(line)
            with self.changed:
                if event["type"] == "DELETED":
                    self.pods.pop(key(event["object"]), None)
                else:
                    self.pods[key(event["object"])] = event["object"]
                self.changed.notify_all()

    def copy(self):
        with self.changed:
            return dict(self.pods)

    def end(self):
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.socket.close()
        self.join(10)

    def wait(self, what, condition):
        """The first true value of condition(pods)."""
        value = self.holds(condition, ANSWER_SECONDS_MAX)
        if not value:
            raise harness.Failure(f"not within {ANSWER_SECONDS_MAX} s: {what}")
        return value

    def holds(self, condition, seconds):
        """The same; false when there is none within so long."""
        with self.changed:
            value = self.changed.wait_for(lambda: self.failure or condition(self.pods), seconds)
            if self.failure:
                raise harness.Failure(f"the watch ended: {self.failure}")
            return value


def key(pod):
    return pod["metadata"]["namespace"], pod["metadata"]["name"]


def nominated(pod):
    return pod["status"].get("nominatedNodeName")


def verdict_of(pod):
    """What a scheduler said of it; None before it did."""
    if pod is None:
        return None
    if pod["spec"].get("nodeName"):
        return verdicts.Verdict(node=pod["spec"]["nodeName"])
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return verdicts.Verdict(message=condition.get("message", ""))
    return None


class Rig:
    def __init__(self, directory, kubectl):
        self.directory = directory
        self.kubectl = kubectl
        self.parts = {}
        self.pods = None
        self.specs = {}  # Of pods, as they were sent.

    def start(self):
        started = subprocess.run([ROOT / "tests/real/cluster", "start", "--dir", self.directory, WITHOUT], capture_output=True, text=True)
        if started.returncode == 3:
            raise harness.Unavailable(f"the genuine programs are not there: {started.stderr.strip()}")
        if started.returncode != 0:
            raise harness.Failure(f"the genuine API server does not start: {started.stderr}")
        self.credentials = harness.Credentials(self.directory / "kubeconfig", self.kubectl)
        self.connection = harness.Connection(self.credentials)
        self.make_shared()
        self.start_genuine()
        self.start_berth()
        self.pods = Pods(self.credentials)
        self.pods.start()
        return self

    def start_genuine(self):
        built = subprocess.run([ROOT / "tests/real/build", "kube-scheduler"], capture_output=True, text=True)
        if built.returncode != 0:
            raise harness.Unavailable(f"no kube-scheduler: {built.stderr.strip()}")
        config = self.directory / "genuine.yaml"
        config.write_text(GENUINE_CONFIG.format(kubeconfig=self.directory / "kubeconfig"))
        command = [built.stdout.split()[1], f"--config={config}", "--secure-port=0", "--vmodule=schedule_one=10"]
        self.parts["kube-scheduler"] = harness.Background(command, log=self.directory / "genuine.log")
        self.scores = scores.Scores(self.directory / "genuine.log")

    def start_berth(self):
        config = self.directory / "berth.yaml"
        config.write_text(BERTH_CONFIG)
        self.port = harness.free_port()
        self.parts["berth"] = harness.Background(
            [harness.berth_program(), "run", "--quota", f"--kubeconfig={self.directory / 'kubeconfig'}", f"--config={config}",
             f"--scheduler-name={NAMES['berth']}", "--leader-elect=false", f"--secure-port={self.port}",
             "--authorization-always-allow-paths=/metrics"],
            log=self.directory / "berth.log",
        )

    def make_shared(self):
        for name in ("na", "nb", "nc"):
            self.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        for value, name in enumerate(("low", "middle", "high"), 1):
            made = {"metadata": {"name": name}, "value": 100 * value, "preemptionPolicy": "Never"}
            self.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", made)
        for value, name in ((150, "above-low"), (1000, "top")):
            self.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
        for name, zones in pods.CLASSES.items():
            made = {"metadata": {"name": name}, "provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"}
            if zones:
                made["allowedTopologies"] = [{"matchLabelExpressions": [{"key": pods.ZONE, "values": zones}]}]
            self.send("POST", "/apis/storage.k8s.io/v1/storageclasses", made)
        heavy = {"metadata": {"name": "heavy"}, "handler": "heavy", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}}
        self.send("POST", "/apis/node.k8s.io/v1/runtimeclasses", heavy)

    def send(self, method, path, body=None, content="application/json"):
        if method == "POST" and path.endswith("/pods"):
            self.specs[path.split("/")[4], body["metadata"]["name"]] = body["spec"]
        answer = self.connection.request(method, path, body, {"Content-Type": content} if body is not None else None)
        if answer.status >= 300 and not (method == "DELETE" and answer.status == 404):
            raise harness.Failure(f"{method} {path}: {answer.status} {answer.message} of {json.dumps(body)}")
        return answer

    def play(self, requests):
        for request in requests:
            self.send(request.method, request.path, request.body, request.content)

    def ask(self, side, pod, name):
        """Has a scheduler decide about the pod; it is there afterwards."""
        namespace = pod["metadata"]["namespace"]
        storage_class = pods.fresh_class(pod)
        if storage_class is not None:
            pod = pods.with_claim(pod, name)
        made = {"metadata": pod["metadata"] | {"name": name}, "spec": pod["spec"] | {"schedulerName": NAMES[side]}}
        if storage_class is not None:
            return self.ask_with_claim(made, storage_class)
        self.send("POST", f"/api/v1/namespaces/{namespace}/pods", made)
        return self.pods.wait(f"{side} decides about {name}: {json.dumps(made)}", lambda there: verdict_of(there.get((namespace, name))))

    def ask_with_claim(self, made, storage_class):
        """Of a pod whose claim waits for it: it is never bound, for nobody makes a volume, but its node is said there."""
        namespace, name = made["metadata"]["namespace"], made["metadata"]["name"]
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        resources = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, "resources": resources}
        self.send("POST", claims, {"metadata": {"name": name}, "spec": spec})
        self.send("POST", f"/api/v1/namespaces/{namespace}/pods", made)

        def verdict():
            annotations = self.send("GET", f"{claims}/{name}").json()["metadata"].get("annotations", {})
            node = annotations.get("volume.kubernetes.io/selected-node")
            return verdicts.Verdict(node=node) if node else verdict_of(self.pods.copy().get((namespace, name)))

        return harness.wait_until(f"{name} with a claim is decided: {json.dumps(made)}", verdict, ANSWER_SECONDS_MAX)

    def ask_preemptor(self, side, pod, name):
        """The same of one that may evict; whom it evicts is there again afterwards, and it is not."""
        namespace = pod["metadata"]["namespace"]
        before = self.pods.copy()
        verdict = self.ask(side, pod, name)
        victims = frozenset()
        if verdict.node is None:
            # The promise and the evictions may follow the words.
            self.pods.holds(lambda there: nominated(there[namespace, name]), NOMINATION_SECONDS)
            promised = nominated(self.pods.copy()[namespace, name])
            if promised:
                victims = self.victims(before)
                verdict = verdicts.Verdict(message=verdict.message, promised=promised, victims=victims)
        self.remove(namespace, name)
        for victim in sorted(victims):
            self.remove(*victim)
            self.restore(before[victim])
        return verdict, before

    def victims(self, before):
        """Who is evicted, once that is somebody and nobody follows."""
        found = frozenset()
        while True:
            evicted = lambda there: frozenset(k for k, p in there.items() if k in before and "deletionTimestamp" in p["metadata"])
            more = self.pods.holds(lambda there: evicted(there) - found, VICTIM_SECONDS if found else ANSWER_SECONDS_MAX)
            if not more:
                return found
            found |= more

    def restore(self, pod):
        """Makes a pod again, as it was but for its identity."""
        namespace, name = key(pod)
        pods_path = f"/api/v1/namespaces/{namespace}/pods"
        metadata = {k: v for k, v in pod["metadata"].items() if k in ("name", "labels")}
        # As it was sent: the server adds what it doesn't take.
        spec = self.specs[namespace, name] | {"nodeName": pod["spec"]["nodeName"]}
        self.send("POST", pods_path, {"metadata": metadata, "spec": spec})
        status = {k: v for k, v in pod["status"].items() if k in ("startTime", "phase")}
        self.send("PATCH", f"{pods_path}/{name}/status", {"status": status}, MERGE)
        self.pods.wait(f"{name} is there again", lambda there: (namespace, name) in there)

    def remove(self, namespace, name):
        self.send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0")
        self.pods.wait(f"{name} is gone", lambda there: (namespace, name) not in there)

    def clear(self):
        """Nothing of a history stays."""
        self.specs.clear()
        for namespace in ("na", "nb", "nc"):
            for pod in self.connection.request("GET", f"/api/v1/namespaces/{namespace}/pods").json()["items"]:
                self.send("DELETE", f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}?gracePeriodSeconds=0")
            self.send("DELETE", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims")
            self.send("DELETE", f"/api/v1/namespaces/{namespace}/services")
        self.pods.wait("all pods are gone", lambda there: not there)
        self.send("DELETE", "/api/v1/nodes")
        self.send("DELETE", "/api/v1/persistentvolumes")
        self.send("DELETE", "/apis/storage.k8s.io/v1/csinodes")

    def bugs(self):
        """What berth itself counted as bugs: lines. Of one that ended stop() tells."""
        if not self.parts["berth"].alive():
            return []
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/metrics", context=context, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.startswith(METRICS_THAT_COUNT_BUGS) and not line.endswith(" 0")]

    def stop(self):
        """Ends all; returns what had ended before its time."""
        problems = []
        if self.pods is not None:
            self.pods.end()
        for name, part in self.parts.items():
            if not part.alive():
                problems.append(f"{name} ended with {part.wait(1)}:\n" + "\n".join(part.lines()[-20:]))
            part.end()
        subprocess.run([ROOT / "tests/real/cluster", "stop", "--dir", self.directory], capture_output=True)
        return problems
