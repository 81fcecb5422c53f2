"""Who looks on: a watch of pods straight at the API server, and what its audit log says of bindings."""

import collections
import contextlib
import http.client
import json
import os
import socket
import threading
import time


class Observer(threading.Thread):
    """Follows the pods of a namespace. Its connections are its thread's alone."""

    def __init__(self, credentials, namespace, cpu_of_nodes):
        super().__init__(daemon=True)
        self.credentials, self.path = credentials, f"/api/v1/namespaces/{namespace}/pods"
        self.cpu_of_nodes = cpu_of_nodes  # In milli.
        self.lock = threading.Condition()
        self.node_of = {}  # By uid, of those that are there.
        self.cpu = {}
        self.names = {}
        self.used = collections.Counter()
        self.first_node = {}  # By uid, of all that ever were.
        self.violations = []
        self.overcommitted = set()
        self.relists = 0
        self.socket = None
        self.ended = False

    def run(self):
        while not self.ended:
            with contextlib.suppress(OSError, http.client.HTTPException, ValueError, KeyError):
                self.follow()
            time.sleep(0.05)

    def open(self, query):
        connection = http.client.HTTPSConnection(
            self.credentials.host, self.credentials.port, context=self.credentials.context, timeout=600)
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self.credentials.token}"}
        connection.request("GET", self.path + query, headers=headers)
        return connection, connection.getresponse()

    def follow(self):
        connection, answer = self.open("")
        listed = json.loads(answer.read())
        connection.close()
        with self.lock:
            self.relists += 1
            there = {pod["metadata"]["uid"] for pod in listed["items"]}
            for uid in [uid for uid in self.names if uid not in there]:
                self.gone(uid)
            for pod in listed["items"]:
                self.seen(pod)
            self.lock.notify_all()
        connection, answer = self.open(f"?watch=1&resourceVersion={listed['metadata']['resourceVersion']}")
        # The same connection, for whoever ends it: a TLS socket is of one thread.
        if connection.sock is None:
            return
        self.socket = socket.socket(fileno=os.dup(connection.sock.fileno()))
        for line in answer:
            event = json.loads(line)
            with self.lock:
                if event["type"] == "DELETED":
                    self.gone(event["object"]["metadata"]["uid"])
                elif event["type"] == "ERROR":
                    return
                else:
                    self.seen(event["object"])
                self.lock.notify_all()

    def seen(self, pod):
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        node = pod["spec"].get("nodeName")
        self.names[uid] = name
        if node is None or self.node_of.get(uid) == node:
            return
        if self.first_node.setdefault(uid, node) != node:
            self.violations.append(f"{name} is on {node}, and was on {self.first_node[uid]}")
        amount = pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        self.cpu[uid] = int(amount.removesuffix("m"))
        self.node_of[uid] = node
        self.used[node] += self.cpu[uid]
        if self.used[node] > self.cpu_of_nodes:
            self.overcommitted.add((node, name))

    def gone(self, uid):
        self.names.pop(uid, None)
        node = self.node_of.pop(uid, None)
        if node is not None:
            self.used[node] -= self.cpu.pop(uid)

    def placed(self):
        """[(name, uid)] of those that are there and have a node."""
        with self.lock:
            return [(self.names[uid], uid) for uid in self.node_of]

    def waiting(self):
        with self.lock:
            return sorted(name for uid, name in self.names.items() if uid not in self.node_of)

    def cpu_wanted(self):
        with self.lock:
            return sum(self.used.values())

    def wait_placed(self, count, seconds):
        """Whether there are so many pods within so long, all with a node."""
        with self.lock:
            return self.lock.wait_for(lambda: len(self.names) == count == len(self.node_of), seconds)

    def end(self):
        self.ended = True
        if self.socket is not None:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)
            self.socket.close()
        self.join(10)


AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create]
  resources: [{group: "", resources: [pods/binding]}]
- level: None
"""


def bindings(log, namespace):
    """Of the API server's audit log: ({pod: how often it was bound}, {status: how many bindings})."""
    done, statuses = collections.Counter(), collections.Counter()
    for line in log.read_text(errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # The end of one that was killed.
        if entry.get("objectRef", {}).get("namespace") != namespace:
            continue
        code = entry.get("responseStatus", {}).get("code", 0)
        statuses[code] += 1
        if code in (200, 201):
            done[entry["objectRef"]["name"]] += 1
    return done, statuses
