"""`berth run` as operators meet it: who may read what of its port, its configuration, its dump and its log."""

import base64
import json
import pathlib
import re
import signal
import ssl
import types

import objects
from cases_processes import own, start
from cases_quota import queue, queued
from cases_custom import KUEUE, named
from harness import ROOT, TOLERATION, Background, Connection, Failure, berth_program, case, free_port, wait_until

RBAC = "/apis/rbac.authorization.k8s.io/v1"
RUN = ("controllers",)  # Tokens are of ServiceAccounts.


def connect(port):
    """To the port of a `berth run`; its certificate is its own."""
    context = ssl._create_unverified_context()
    return Connection(types.SimpleNamespace(host="127.0.0.1", port=port, token=None, context=context))


class Scheduler:
    """A `berth run` and its port; by itself of a scheduler name and Lease of its own."""

    def __init__(self, test, *options, kubeconfig=None, own_name=True):
        self.test = test
        self.name = test.unique("operated")
        self.port = free_port()
        command = [
            berth_program(),
            "run",
            f"--kubeconfig={kubeconfig or test.cluster.kubeconfig}",
            f"--secure-port={self.port}",
            *options,
        ]
        if own_name:
            command += [f"--scheduler-name={self.name}", f"--leader-elect-resource-name={self.name}"]
        self.process = Background(command)
        test.cleanups.append(self.process.end)
        if kubeconfig is None:
            leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
            test.cleanups.append(lambda: test.http("DELETE", f"{leases}/{self.name}"))
        self.connection = connect(self.port)
        test.cleanups.append(self.connection.close)
        wait_until("it has listed the cluster, or ends", lambda: not self.process.alive() or self.is_ready())
        test.true(self.process.alive(), f"berth run ended: {self.process.text()}")

    def is_ready(self):
        try:
            return self.get("/readyz").status == 200
        except Failure:
            return False  # It does not listen yet.

    def get(self, path, token=None, method="GET"):
        return self.connection.request(method, path, token=token)


class Account:
    """A ServiceAccount of the case's namespace, its token, and a role of its own for paths."""

    def __init__(self, test, name, paths=()):
        self.test = test
        self.user = f"system:serviceaccount:{test.namespace}:{name}"
        test.create(test.path("serviceaccounts"), {"metadata": {"name": name}})
        self.token = test.kubectl("create", "token", name).stdout.strip()
        if paths:
            self.grant(name, paths)

    def grant(self, name, paths):
        role = self.test.unique(name)
        rules = [{"nonResourceURLs": list(paths), "verbs": ["get"]}]
        self.test.create(f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": rules})
        self.test.cleanups.append(lambda: self.test.http("DELETE", f"{RBAC}/clusterroles/{role}"))
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.test.namespace}
        binding = {
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        self.test.create(f"{RBAC}/clusterrolebindings", binding)
        self.test.cleanups.append(lambda: self.test.http("DELETE", f"{RBAC}/clusterrolebindings/{role}"))


@case("who has the right to get /metrics reads it with its token, as of kube-scheduler", needs=RUN, seconds=5)
def metrics(test):
    scheduler = Scheduler(test)
    prometheus = Account(test, "prometheus", ["/metrics"])
    other = Account(test, "other")
    for path in ("/healthz", "/livez", "/readyz"):
        test.equal(scheduler.get(path).status, 200, path)
    nobody = scheduler.get("/metrics")
    test.equal(nobody.status, 403, "of who shows nothing")
    test.equal(
        nobody.json(),
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "reason": "Forbidden",
            "details": {},
            "code": 403,
        },
        "what it is told",
    )
    wrong = scheduler.get("/metrics", "no-token")
    test.equal((wrong.status, wrong.reason), (401, "Unauthorized"), "of a token that is none")
    refused = scheduler.get("/metrics", other.token)
    test.equal(refused.status, 403, "of who lacks the right")
    test.match(re.escape(f'User "{other.user}" cannot get path "/metrics"'), refused.message)
    test.wait("who has it reads", lambda: scheduler.get("/metrics", prometheus.token).status == 200)
    test.match("scheduler_pending_pods", scheduler.get("/metrics", prometheus.token).body.decode())
    test.equal(scheduler.get("/debug/ledger", prometheus.token).status, 403, "another path")
    test.equal(scheduler.get("/metrics", prometheus.token, "DELETE").status, 403, "another verb")
    other.grant("other", ["/metrics", "/debug/*"])
    # What was refused holds ten seconds.
    test.wait("a right that is given counts", lambda: scheduler.get("/metrics", other.token).status == 200)
    test.equal(scheduler.get("/debug/ledger", other.token).status, 200, "/debug/ledger")


@case("/configz says what it was started by, in kube-scheduler's form", needs=RUN, seconds=3)
def configz(test):
    scheduler = Scheduler(test, "--leader-elect-lease-duration=20s")
    reader = Account(test, "reader", ["/configz"])
    test.equal(scheduler.get("/configz").status, 403, "of who shows nothing")
    test.wait("who may reads", lambda: scheduler.get("/configz", reader.token).status == 200)
    shown = scheduler.get("/configz", reader.token).json()["componentconfig"]
    test.equal(shown["kind"], "KubeSchedulerConfiguration", "kind")
    test.equal(shown["leaderElection"]["leaseDuration"], "20s", "leaseDuration")
    test.equal(shown["leaderElection"]["resourceName"], scheduler.name, "resourceName")
    test.equal([profile["schedulerName"] for profile in shown["profiles"]], [scheduler.name], "profiles")


@case("a dump names nodes, claims and who waits, and finds no difference to the objects", needs=RUN, seconds=8)
def dump(test):
    node = test.unique("dumped")
    test.make_node(node, cpu="4", labels={"row": node})
    scheduler = Scheduler(test, "--logging-format=json")

    def pod(name, cpu):
        spec = {"schedulerName": scheduler.name, "nodeSelector": {"row": node}, "tolerations": [TOLERATION]}
        test.create(test.path("pods"), objects.pod(name, cpu=cpu, **spec))

    pod("small", "100m")
    pod("large", "100")
    test.wait("one is placed", lambda: test.pod("small")["spec"].get("nodeName"))

    def lines():
        return [json.loads(line) for line in scheduler.process.lines()]

    def told(msg, **keys):
        return [x for x in lines() if x["msg"] == msg and all(x.get(k) == v for k, v in keys.items())]

    end = "comparison with the objects: ends"
    scheduler.process.signal(signal.SIGUSR2)
    test.wait("it has told what it knows", lambda: told("dump: ends"))
    test.true(told("dump: node", node=node, present="true"), "the node")
    claims = told("dump: claim", node=node, owner=f"{test.namespace}/small")
    test.true(claims and "cpu 100" in claims[0]["amounts"], f"the claim: {claims}")
    test.true(told("dump: pod", pod=f"{test.namespace}/large", stage="pending"), "who waits")
    test.wait("it has compared", lambda: told(end))
    test.equal([x["differences"] for x in told(end)], ["0"], "differences")
    test.true(scheduler.process.alive(), "it goes on")
    for line in lines():
        test.true(
            isinstance(line["ts"], float) and line["logger"] and line["msg"] and ("v" in line or "err" in line),
            f"a line of the log: {line}",
        )


def interrupt(test, up):
    """Ctrl-C ends who waits for an answer that does not come."""
    up.process.signal(signal.SIGSTOP)
    try:
        why = Background([berth_program(), "why", "nobody", f"--kubeconfig={up.kubeconfig}"])
        test.cleanups.append(why.end)
        tasks = pathlib.Path(f"/proc/{why.process.pid}/task")
        test.wait("it asks", lambda: any("https" in (t / "comm").read_text() for t in tasks.iterdir()))
        why.signal(signal.SIGINT)
        test.equal(why.wait(10), -signal.SIGINT, "exit status of `berth why` by Ctrl-C")
    finally:
        up.process.signal(signal.SIGCONT)


@case("an API server of another authority is told to be that, once, and asked again", on=("embedded",), seconds=8)
def untrusted(test):
    up = own(test)
    start(test, up, "--nodes=1")
    other = up.directory / "other.crt"
    test.cleanups.append(Background([berth_program(), "run", f"--kubeconfig={up.kubeconfig}", f"--secure-port={free_port()}",
                                     f"--secure-ca={other}", "--leader-elect-resource-name=other"]).end)
    test.wait("there is another authority", lambda: other.exists() and other.read_text().endswith("-----END CERTIFICATE-----\n"))
    view = [test.program.path, f"--kubeconfig={up.kubeconfig}", "config", "view", "--raw", "-o", "json"]
    config = json.loads(test.command(view).stdout)
    cluster = config["clusters"][0]["cluster"]
    trusted = cluster["certificate-authority-data"]

    def run(name, authority, server, *options):
        cluster.update({"certificate-authority-data": authority, "server": server})
        path = up.directory / f"{name}.json"
        path.write_text(json.dumps(config))
        process = Background([berth_program(), "run", f"--kubeconfig={path}", f"--leader-elect-resource-name={name}", *options])
        test.cleanups.append(process.end)
        return process

    server = cluster["server"]
    port = free_port()
    untrusting = run("untrusting", base64.b64encode(other.read_bytes()).decode(), server, f"--secure-port={port}")
    nobody = run("nobody", trusted, f"https://127.0.0.1:{free_port()}")
    signed = "list of pods: no connection to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority"
    test.wait("it says which check failed", lambda: signed in untrusting.text())
    test.wait("of a port, too", lambda: re.search(r"list of pods: .* dial tcp 127\.0\.0\.1:\d+: connect: connection refused", nobody.text()))
    connection = connect(port)
    test.cleanups.append(connection.close)

    def attempts():
        metrics = connection.request("GET", "/metrics", token=up.credentials.token).body.decode()
        return int(re.search(r'rest_client_requests_total\{code="<error>",.*method="GET"\} (\d+)', metrics)[1])

    before = test.wait("it has asked", attempts)
    test.wait("it asks again", lambda: attempts() > before)
    for process in (untrusting, nobody):
        test.equal(len([x for x in process.lines() if "list of pods" in x]), 1, f"told once: {process.text()}")
        process.signal(signal.SIGTERM)
        test.equal(process.wait(30), 0, "exit status")


@case("while the API server is away nobody new is let in, and probes and operators are answered", on=("embedded",), seconds=20)
def away(test):
    up = own(test)
    start(test, up, "--nodes=1", "--no-scheduler")
    scheduler = Scheduler(test, kubeconfig=up.kubeconfig)
    operator = up.credentials.token
    test.equal(scheduler.get("/metrics", operator).status, 200, "an operator's")
    up.process.signal(signal.SIGSTOP)  # It hangs: connections come about, and nothing is answered.
    try:
        test.equal(scheduler.get("/metrics", "some-token").status, 401, "of a token that can't be looked up")
        refused = scheduler.get("/metrics")
        test.equal(refused.status, 500, "of rights that can't be looked up")
        test.match("Internal Server Error: \"/metrics\"", refused.body.decode())
        test.equal(scheduler.get("/livez").status, 200, "/livez")
        test.equal(scheduler.get("/metrics", operator).status, 200, "an operator's")
    finally:
        up.process.signal(signal.SIGCONT)
    test.wait("the API server is asked again", lambda: scheduler.get("/metrics").status == 403)
    interrupt(test, up)
    up.kill()
    test.equal(scheduler.get("/metrics", "another").status, 401, "where nobody listens")
    test.equal(scheduler.get("/healthz").status, 200, "/healthz")
    test.true(scheduler.process.alive(), scheduler.process.text())


@case("`berth up` serves /configz by RBAC, and dumps what its scheduler knows", on=("embedded",), seconds=3)
def up_dumps(test):
    up = own(test)
    connection = start(test, up, "--nodes=1")
    shown = connection.request("GET", "/configz")
    test.equal(shown.status, 200, "/configz of an operator")
    test.equal(shown.json()["componentconfig"]["leaderElection"]["leaderElect"], False, "leaderElect")
    test.true(connection.request("GET", "/configz", token="no-token").status == 401, "of a token that is none")
    test.wait("the node is there", lambda: connection.request("GET", "/api/v1/nodes").json()["items"])
    up.process.signal(signal.SIGUSR2)
    test.wait("it has told", lambda: re.search(r'comparison with the objects: ends .*differences="0"', up.process.text()))
    test.match(r'dump: node node="', up.process.text())


class Deployment:
    """A `berth up` without a scheduler, manifests of deploy/ on it, and the scheduler with their arguments and account."""

    def __init__(self, test, *names, options=()):
        self.test = test
        self.up = own(test)
        self.connection = start(test, self.up, "--nodes=2", "--no-scheduler")
        self.made = "".join(self.kubectl("apply", "--validate=strict", "-f", str(ROOT / f"deploy/{name}.yaml")) for name in names)
        config = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        config["users"][0]["user"] = {"token": self.kubectl("create", "token", "berth-scheduler", "-n", "kube-system").strip()}
        account = self.up.directory / "account.kubeconfig"
        account.write_text(json.dumps(config))
        self.token = config["users"][0]["user"]["token"]
        deployment = self.connection.request("GET", "/apis/apps/v1/namespaces/kube-system/deployments/berth-scheduler").json()
        container = deployment["spec"]["template"]["spec"]["containers"][0]
        given = [o for o in container["args"][1:] if "--secure-port" not in o and "--bind-address" not in o]
        self.scheduler = Scheduler(test, *given, *options, kubeconfig=account, own_name=False)

    def kubectl(self, *arguments, stdin=None):
        environment = self.test.program.environment(self.up.kubeconfig)
        command = [self.test.program.path, f"--kubeconfig={self.up.kubeconfig}", *arguments]
        return self.test.command(command, stdin=stdin and json.dumps(stdin), environment=environment).stdout

    def end(self):
        process = self.scheduler.process
        self.test.true("forbidden" not in process.text(), f"it lacks rights: {process.text()}")
        process.signal(signal.SIGTERM)
        self.test.equal(process.wait(30), 0, "exit status")


@case("the manifests of deploy/ are valid, and their account may do what the scheduler needs", on=("embedded",), seconds=10)
def deployed(test):
    there = Deployment(test, "berth-scheduler")
    scheduler = there.scheduler
    test.equal(there.made.count("created"), 10, f"what is made: {there.made}")
    # Prometheus, by the role that deploy/servicemonitor.yaml has; the account puts its token to the API server.
    there.kubectl("create", "serviceaccount", "prometheus")
    there.kubectl("create", "clusterrole", "metrics-reader", "--verb=get", "--non-resource-url=/metrics")
    there.kubectl("create", "clusterrolebinding", "metrics-reader", "--clusterrole=metrics-reader", "--serviceaccount=default:prometheus")
    reader = there.kubectl("create", "token", "prometheus").strip()
    leads = 'leader_election_master_status{name="kube-scheduler"} 1'
    wait_until("it leads", lambda: leads in scheduler.get("/metrics", reader).body.decode())
    test.equal(scheduler.get("/metrics").status, 403, "of who shows nothing")
    test.equal(scheduler.get("/metrics", "no-token").status, 401, "of a token that is none")
    test.equal(scheduler.get("/debug/ledger", reader).status, 403, "of who has no right to it")
    # A pod that is placed, and one that is told why it waits.
    pods = "/api/v1/namespaces/default/pods"
    for pod in (objects.pod("small", cpu="100m"), objects.pod("large", cpu="9000")):
        test.equal(there.connection.request("POST", pods, pod).status, 201, "status")

    def pod(name):
        return there.connection.request("GET", f"{pods}/{name}").json()

    wait_until("it is placed", lambda: pod("small")["spec"].get("nodeName"))
    wait_until("the other is told", lambda: "0/2 nodes" in json.dumps(pod("large")["status"]))
    events = "/apis/events.k8s.io/v1/namespaces/default/events"
    wait_until("events are written", lambda: "Successfully assigned" in there.connection.request("GET", events).body.decode())
    test.match("readyz check passed", scheduler.get("/readyz?verbose").body.decode())
    scheduler.process.signal(signal.SIGUSR2)
    test.wait("it may compare", lambda: 'differences="0"' in scheduler.process.text())
    there.end()


@case("what a role lacks is told by verb and resource, and counted, and stops nothing else", on=("embedded",), seconds=20)
def lacking(test):
    there = Deployment(test, "berth-scheduler")
    scheduler = there.scheduler
    whole = json.loads(there.kubectl("get", "clusterrole", "berth-scheduler", "-o", "json"))["rules"]

    def allow(rules):
        there.kubectl("patch", "clusterrole", "berth-scheduler", "--type=merge", "-p", json.dumps({"rules": rules}))

    allow([rule for rule in whole if not {"events", "pods/status"} & set(rule["resources"])])
    pods = "/api/v1/namespaces/default/pods"
    for pod in (objects.pod("small", cpu="100m"), objects.pod("large", cpu="9000")):
        test.equal(there.connection.request("POST", pods, pod).status, 201, "status")

    def pod(name):
        return there.connection.request("GET", f"{pods}/{name}").json()

    def counted(verb, resource):
        series = f'berth_writes_failed_total{{outcome="refused",resource="{resource}",verb="{verb}"}} '
        return [line for line in scheduler.get("/metrics", there.token).body.decode().splitlines() if line.startswith(series)]

    test.wait("a pod is placed all the same", lambda: pod("small")["spec"].get("nodeName"))
    for verb, resource in (("create", "events"), ("patch", "pods/status")):
        told = rf'{verb} {resource}: refused \(403\): .*cannot {verb} resource "{resource}" in API group'
        test.wait(f"it is told: {told}", lambda: re.search(told, scheduler.process.text()))
        test.wait("it is counted", lambda: counted(verb, resource))
    allow(whole)
    test.wait("the other pod is told once the right is there", lambda: "0/2 nodes" in json.dumps(pod("large")["status"]))
    test.equal(len(re.findall(r"patch pods/status: refused", scheduler.process.text())), 1, "lines for one kind of write")
    scheduler.process.signal(signal.SIGTERM)
    test.equal(scheduler.process.wait(30), 0, "exit status")


@case("with the rights of deploy/berth-scheduler-quota.yaml it gives out quota", on=("embedded",), seconds=15)
def deployed_with_quota(test):
    there = Deployment(test, "berth-scheduler", "berth-scheduler-quota", options=["--quota"])
    there.kubectl("create", "-f", "-", stdin=named("f", "ResourceFlavor", KUEUE, spec={}))
    there.kubectl("create", "-f", "-", stdin=queue("cq", "f", "1"))
    there.kubectl("create", "-f", "-", stdin=named("lq", "LocalQueue", KUEUE, spec={"clusterQueue": "cq"}))
    for name, cpu in (("one", "100m"), ("large", "5")):
        job = queued(objects.job(name, run_for="1h"))
        job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
        there.kubectl("create", "-f", "-", stdin=job)

    def says(what):
        return there.kubectl("get", *what.split(), "-o", "jsonpath={.items[*].status}{.items[*].metadata.finalizers}")

    wait_until("one runs", lambda: '"phase":"Running"' in says("pods -l job-name=one"))
    wait_until("the other is told", lambda: "ExceedsMaxQuota" in says("workloads"))
    wait_until("the queues count them", lambda: '"admittedWorkloads":1' in says("clusterqueues") and '"admittedWorkloads":1' in says("localqueues"))
    wait_until("what is in use can't go", lambda: "resource-in-use" in says("clusterqueues") and "resource-in-use" in says("resourceflavors"))
    there.end()
