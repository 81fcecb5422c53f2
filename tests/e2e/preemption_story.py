"""kube-scheduler #70622 (case A01) on a running cluster, told step by step.

Two nodes are full of the pods of two ReplicaSets, which are replaced as soon as they are deleted and
take a while to stop. A more important pod needs the room of two of them. The story is well told when
as many pods are evicted as there must be, each once, and the pod runs where it was promised room.
"""

import itertools

from harness import Failure, wait_until

NAMESPACE = "story"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PRIORITIES = {"batch": 10, "web": 20, "urgent": 1000}
STOP_SECONDS = 3
COLUMNS = ("Name", "Status", "Node", "Nominated Node")


class Story:
    """`connection` is of an administrator; `say` gets each line."""

    def __init__(self, connection, say):
        self.connection = connection
        self.say = say
        self.seen = {}  # Every pod that was ever seen, as last seen, by uid.

    def play(self):
        """Plays it; returns (evictions, the fewest that do). Raises Failure when it goes wrong."""
        self.step("Two nodes, and two ReplicaSets of different priority that fill them.")
        slot = self.begin()
        self.show()
        fewest = self.fewest(2 * slot)
        self.step(
            f"A pod of priority {PRIORITIES['urgent']} asks for half a node; "
            f"{fewest} pods have to go for it, at least."
        )
        self.send("POST", self.path("pods"), self.pod("urgent", 2 * slot))
        wait_until("victims leave, and their replacements are there", self.under_way)
        self.show()
        promised = self.named("urgent")["status"]["nominatedNodeName"]
        self.say(f"  It is promised {promised}: who replaces its victims may not take their room.")
        self.step("The victims have stopped, and the room is taken by whom it was promised to.")
        wait_until("the pod runs", lambda: self.running("urgent"))
        wait_until("the victims are gone", lambda: not self.leaving())
        self.show()
        node = self.named("urgent")["spec"]["nodeName"]
        if node != promised:
            raise Failure(f"urgent was promised {promised} and runs on {node}")
        evicted = self.evictions()
        self.step("It is done and goes; the replacements get their place back.")
        self.send("DELETE", self.path("pods", "urgent"))
        wait_until("all pods run again", lambda: self.all_run(8))
        self.show()
        if self.evictions() != evicted:
            raise Failure("pods were evicted when nobody needed room any more")
        return len(evicted), fewest

    # Steps.

    def begin(self):
        """Fills the nodes; returns the thousandths of a CPU that one pod takes."""
        for name, value in PRIORITIES.items():
            self.send("POST", CLASSES, {"metadata": {"name": f"story-{name}"}, "value": value})
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        wait_until("the namespace can be used", lambda: self.get(account))
        nodes = wait_until("two nodes are there", self.two_nodes)
        slot = min(milli(node["status"]["allocatable"]["cpu"]) for node in nodes) // 4
        for count, name in ((4, "batch"), (8, "web")):
            self.send("POST", self.path("replicasets", group="apps/v1"), self.set_of(name, slot))
            wait_until(f"{name} runs", lambda: self.all_run(count))
        return slot

    def under_way(self):
        """Whether the victims are on their way out and what replaces them waits."""
        going = self.leaving()
        urgent = self.named("urgent")
        waiting = [pod for pod in self.pods if not pod["spec"].get("nodeName")]
        promised = urgent and urgent["status"].get("nominatedNodeName")
        return promised and going and len(waiting) == 1 + len(going)

    def evictions(self):
        """The uids of those evicted, as Events and marks on the pods have it."""
        marked = sorted(uid for uid, pod in self.seen.items() if preempted(pod))

        def told():
            events = self.get(self.path("events", group="events.k8s.io/v1"))["items"]
            events = [event for event in events if event["reason"] == "Preempted"]
            found = sorted(event["regarding"]["uid"] for event in events)
            return found == marked and not any(event.get("series") for event in events)

        wait_until(f"there is one Event of each of {marked}", told, 20)
        return marked

    def fewest(self, milli_needed):
        """The fewest pods of any node whose room suffices: all of them are of lower priority."""
        counts = []
        for node in self.two_nodes():
            name = node["metadata"]["name"]
            sizes = [request(p) for p in self.pods if p["spec"].get("nodeName") == name]
            free = milli(node["status"]["allocatable"]["cpu"]) - sum(sizes)
            for count in range(len(sizes) + 1):
                sums = (sum(some) for some in itertools.combinations(sizes, count))
                if free + max(sums, default=0) >= milli_needed:
                    counts.append(count)
                    break
        return min(counts)

    # What is there.

    def look(self):
        self.pods = self.get(self.path("pods"))["items"]
        self.seen.update((pod["metadata"]["uid"], pod) for pod in self.pods)
        return self.pods

    def named(self, name):
        return next((pod for pod in self.pods if pod["metadata"]["name"] == name), None)

    def leaving(self):
        return [pod for pod in self.look() if "deletionTimestamp" in pod["metadata"]]

    def running(self, name):
        self.look()
        pod = self.named(name)
        return pod is not None and pod["status"]["phase"] == "Running"

    def all_run(self, count):
        going = self.leaving()
        phases = [pod["status"]["phase"] for pod in self.pods]
        return not going and phases == ["Running"] * count

    def two_nodes(self):
        nodes = self.get("/api/v1/nodes")["items"]
        return len(nodes) == 2 and not any(node["spec"].get("taints") for node in nodes) and nodes

    # Telling.

    def step(self, text):
        self.say("")
        self.say(text)

    def show(self):
        """What `kubectl get pods -o wide` shows, but for columns that are no matter here."""
        self.look()
        table = self.get(
            self.path("pods"), {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        )
        names = [column["name"] for column in table["columnDefinitions"]]
        rows = [[name.upper() for name in COLUMNS]]
        for row in table["rows"]:
            rows.append([str(row["cells"][names.index(name)]) for name in COLUMNS])
        widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
        self.say(f"  $ kubectl get pods -n {NAMESPACE} -o wide")
        for row in rows:
            self.say("  " + "   ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip())

    # Objects.

    def path(self, plural, name="", group="v1"):
        root = f"/apis/{group}" if "/" in group else f"/api/{group}"
        return f"{root}/namespaces/{NAMESPACE}/{plural}" + (f"/{name}" if name else "")

    def template(self, name, cpu):
        container = {"name": "c", "image": "busybox"}
        container["resources"] = {"requests": {"cpu": f"{cpu}m"}}
        return {
            "metadata": {
                "labels": {"app": name},
                "annotations": {"berth.dev/stop-after": f"{STOP_SECONDS}s"},
            },
            "spec": {"priorityClassName": f"story-{name}", "containers": [container]},
        }

    def pod(self, name, cpu):
        made = self.template(name, cpu)
        made["metadata"]["name"] = name
        return made

    def set_of(self, name, cpu):
        selector = {"matchLabels": {"app": name}}
        spec = {"replicas": 4, "selector": selector, "template": self.template(name, cpu)}
        return {"metadata": {"name": name}, "spec": spec}

    def get(self, path, headers=None):
        answer = self.connection.request("GET", path, headers=headers)
        if answer.status != 200:
            raise Failure(f"GET {path}: {answer.status} {answer.message}")
        return answer.json()

    def send(self, method, path, body=None):
        answer = self.connection.request(method, path, body)
        if answer.status not in (200, 201):
            raise Failure(f"{method} {path}: {answer.status} {answer.message}")


def milli(quantity):
    return int(quantity[:-1]) if quantity.endswith("m") else int(quantity) * 1000


def request(pod):
    return sum(milli(c["resources"]["requests"]["cpu"]) for c in pod["spec"]["containers"])


def preempted(pod):
    """Whether it carries the mark of a preemption."""
    conditions = pod["status"].get("conditions", ())
    marks = [c for c in conditions if c["type"] == "DisruptionTarget" and c["status"] == "True"]
    return any(mark.get("reason") == "PreemptionByScheduler" for mark in marks)
