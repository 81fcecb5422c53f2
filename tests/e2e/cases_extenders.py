"""`berth run` with scheduler extenders: they filter, score, bind, and fail."""

import base64
import re
import threading

import objects
from extenders import Extender, Scheduler, write_configuration
from harness import TOLERATION, case, free_port

RUN = ("controllers",)
CARD = "example.com/card"


def nodes_of(test, count=3):
    """Nodes that only pods of this case go to, and what such a pod says."""
    row = test.unique("row")
    names = [f"{row}-{i}" for i in range(count)]
    for name in names:
        test.make_node(name, cpu="4", labels={"row": row})
    test.take_pods(*names)
    return names, {"nodeSelector": {"row": row}, "tolerations": [TOLERATION]}


def make(test, name, spec, **more):
    test.create(test.path("pods"), objects.pod(name, cpu="100m", **more, **spec))


@case("an extender filters and scores by names, and what it refuses is told in its words", needs=RUN, seconds=15)
def by_names(test):
    names, spec = nodes_of(test)
    refused = set()

    def decide(verb, arguments):
        nodes = arguments["NodeNames"]
        if verb == "prioritize":
            return [{"Host": name, "Score": 10 if name == names[1] else 0} for name in nodes]
        pod = arguments["Pod"]["metadata"]["name"]
        left = [] if pod in refused else [name for name in nodes if name != names[2]]
        return {"NodeNames": left, "FailedNodes": {name: "no card is free" for name in nodes if name not in left}}

    extender = Extender(test, decide)
    scheduler = Scheduler(test, extender.settings(prioritizeVerb="prioritize", weight=10))
    make(test, "scored", scheduler.spec(**spec))
    test.placed("scored", names[1])
    test.equal(extender.verbs("scored"), ["filter", "prioritize"], "verbs")
    path, arguments = extender.calls[0]
    test.equal(path, "/extender/filter", "path")
    test.equal(sorted(arguments["NodeNames"]), names, "nodes that it is asked about")
    test.equal(arguments["Nodes"], None, "Nodes")
    test.equal(arguments["Pod"]["metadata"]["namespace"], test.namespace, "the pod's namespace")
    refused.add("unlucky")
    make(test, "unlucky", scheduler.spec(**spec))
    told = test.unschedulable("unlucky", r" 3 no card is free")
    test.equal(told["reason"], "Unschedulable", "reason")
    refused.clear()
    # Nothing happens in the cluster that tells.
    test.placed("unlucky", names[1])


@case("over HTTPS an extender is shown the nodes and a certificate, and binds what asks for its resource", needs=RUN,
      seconds=10)
def over_https(test):
    names, spec = nodes_of(test)

    def decide(verb, arguments):
        if verb == "bind":
            pod = arguments["PodName"]
            binding = {"metadata": {"name": pod, "uid": arguments["PodUID"]},
                       "target": {"kind": "Node", "name": arguments["Node"]}}
            # As a document: of a subresource a case has no short way.
            test.create(f"/api/v1/namespaces/{arguments['PodNamespace']}/pods/{pod}/binding", binding)
            return {}
        items = [node for node in arguments["Nodes"]["items"] if node["metadata"]["name"] == names[2]]
        return {"Nodes": {"items": items}}

    extender = Extender(test, decide, tls=True)

    def data(path):
        return base64.b64encode(path.read_bytes()).decode()

    tls = {"serverName": "extender.example.com", "caFile": str(extender.certificate),
           "certData": data(extender.client_certificate), "keyData": data(extender.client_key)}
    scheduler = Scheduler(test, extender.settings(
        nodeCacheCapable=False, enableHTTPS=True, tlsConfig=tls, bindVerb="bind",
        managedResources=[{"name": CARD, "ignoredByScheduler": True}],
    ))
    # No node offers it.
    make(test, "carded", scheduler.spec(**spec), extended={CARD: "1"})
    make(test, "plain", scheduler.spec(**spec))
    test.placed("plain")
    test.placed("carded", names[2])
    test.equal(extender.verbs("carded"), ["filter", "bind"], "verbs")
    test.equal(extender.verbs("plain"), [], "verbs of a pod that asks for nothing of its")
    event = test.wait("it is told", lambda: [
        e for e in test.get(test.path("events"))["items"]
        if e["involvedObject"]["name"] == "carded" and e["reason"] == "Scheduled"
    ])
    test.match(re.escape(names[2]), event[0]["message"])


@case("an extender that is away, fails or hangs is told of, and delays nobody else's pods", needs=RUN, seconds=20)
def failing(test):
    names, spec = nodes_of(test)
    port = free_port()
    hangs = threading.Event()
    test.cleanups.append(hangs.set)
    answers = {"first": 500, "second": hangs}

    def decide(verb, arguments):
        return answers.get(arguments["Pod"]["metadata"]["name"]) or {"NodeNames": arguments["NodeNames"]}

    nobody = f"http://127.0.0.1:{port}"
    managed = [{"name": CARD, "ignoredByScheduler": True}]
    scheduler = Scheduler(
        test,
        {"urlPrefix": f"{nobody}/extender", "filterVerb": "filter", "nodeCacheCapable": True, "httpTimeout": "1s",
         "managedResources": managed},
        {"urlPrefix": f"http://127.0.0.1:{free_port()}", "filterVerb": "filter", "ignorable": True},
    )
    make(test, "first", scheduler.spec(**spec), extended={CARD: "1"})
    told = test.unschedulable("first", "connection refused")
    test.equal(told["reason"], "SchedulerError", "reason")
    make(test, "plain", scheduler.spec(**spec))
    test.placed("plain")
    Extender(test, decide, port=port)
    test.unschedulable("first", r"failed filter with extender at URL http://127.0.0.1:\d+/extender/filter, code 500")
    make(test, "second", scheduler.spec(**spec), extended={CARD: "1"})
    test.unschedulable("second", "context deadline exceeded")
    make(test, "third", scheduler.spec(**spec), extended={CARD: "1"})
    test.placed("third")
    answers.clear()
    test.placed("first")
    test.placed("second")
    test.true(scheduler.process.text().count("connection refused") <= 2, "the log tells of trouble once for each")


@case("nobody is evicted whom an extender does not permit", needs=RUN, seconds=15)
def victims(test):
    names, spec = nodes_of(test, 2)
    for name in names:
        test.create(test.path("pods"), objects.pod(f"low-{name}", cpu="3", nodeName=name, terminationGracePeriodSeconds=0,
                                                   tolerations=[TOLERATION]))
    priority = test.unique("important")
    test.make_priority_class(priority, 100)
    permitted = {}

    def decide(verb, arguments):
        asked = arguments["NodeNameToMetaVictims"]
        test.equal(arguments["NodeNameToVictims"], None, "victims of who is told uids")
        return {"NodeNameToMetaVictims": {name: asked[name] for name in asked if name in permitted}}

    extender = Extender(test, decide)
    scheduler = Scheduler(test, extender.settings(filterVerb="", preemptVerb="preempt"))
    test.create(test.path("pods"), objects.pod("important", cpu="3", priorityClassName=priority, **scheduler.spec(**spec)))
    test.unschedulable("important", "preemption: no candidate node for preemption")
    uids = {name: test.pod(f"low-{name}")["metadata"]["uid"] for name in names}
    _, arguments = extender.calls[0]
    test.equal(arguments["NodeNameToMetaVictims"],
               {name: {"Pods": [{"UID": uids[name]}], "NumPDBViolations": 0} for name in names}, "what it is asked")
    permitted[names[1]] = True
    # Nothing happens in the cluster that tells.
    test.placed("important", names[1])
    test.true(test.exists(test.path("pods") + f"/low-{names[0]}"), "the other stays")


@case("what a file says of extenders is explained, and what is not supported keeps berth from starting",
      on=("embedded",))
def explained(test):
    good = {"urlPrefix": "http://127.0.0.1:1/e", "filterVerb": "filter", "httpTimeout": "2s"}
    ran = test.berth("run", f"--check-config={write_configuration(test, 'a', [good])}")
    test.match(r"honoured +extenders\[0\]\.filterVerb: filter\n", ran.stdout)
    test.match("berth can run by it", ran.stdout)
    file = write_configuration(test, "a", [good, good | {"httpTimeout": "-2s"}])
    ran = test.berth("run", f"--check-config={file}", status=1)
    test.match(r"not supported +extenders\[1\]\.httpTimeout: -2s", ran.stdout)
    ran = test.berth("run", f"--kubeconfig={test.cluster.kubeconfig}", f"--config={file}", status=1)
    test.match(r"extenders\[1\]\.httpTimeout: -2s: not supported", ran.stderr)
    secured = {"urlPrefix": "https://127.0.0.1:1/e", "filterVerb": "filter", "tlsConfig": {"caFile": "/nowhere"}}
    file = write_configuration(test, "a", [good, good | secured])
    ran = test.berth("run", f"--check-config={file}", status=1)
    test.match(r"does not run by it: extenders\[1\]\.tlsConfig\.caFile: /nowhere: can't be read", ran.stdout)
    file = write_configuration(test, "a", [good])
    ran = test.berth("run", f"--check-config={file}", "--quota", status=1)
    test.match("does not run by it: --quota: extenders of --config are not asked", ran.stdout)
    ran = test.berth("run", f"--kubeconfig={test.cluster.kubeconfig}", f"--config={file}", "--quota", status=1)
    test.match("--quota: extenders of --config are not asked", ran.stderr)
    ran = test.berth("up", "--in-memory", "--listen=127.0.0.1:0", f"--config={file}", status=1)
    test.match("gives out quota, too: extenders of --config are not asked", ran.stderr)
