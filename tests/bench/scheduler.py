"""berth's scheduler beside kube-scheduler and beside a client that decides nothing, on the genuine API server.

A row is made once: its nodes and pods are put into an etcd, which is then stopped and copied. Each contender gets a copy and an
API server of its own on it, so all find the same objects, with the same uids. The client that decides nothing sends the writes
that berth's run left in the cluster: it is what the API server and this machine allow at most.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import threading
import time

import harness
import scheduler_rows as rows

# As scheduler_perf's server: no controllers are there that these would wait for, and no limits of requests.
API_SERVER_FLAGS = [
    "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    "--enable-priority-and-fairness=false",
    "--max-requests-inflight=0",
    "--max-mutating-requests-inflight=0",
]
# Its defaults of 50 and 100 requests a second would hide everything else.
KUBE_SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: {kubeconfig}
  qps: 5000
  burst: 5000
"""
ROW_SECONDS_MAX = 900
SETUP_CONNECTIONS = 32
# As many as berth has on their way, and where its lease's calls would go.
LIMIT_CONNECTIONS = 100
PAGE = 500
CONTENDERS = ("berth", "kube-scheduler", "limit")


@dataclasses.dataclass
class Figures:
    """What one contender came to."""

    pods: int
    start_seconds: float  # From its start to the first binding.
    seconds: float  # From there to the last event.
    bound_seconds: float  # From there to the last binding.
    p50_ms: float  # From its start, when all pods are there, to a pod's binding.
    p99_ms: float
    events: int
    watches: int  # That it took to see this; each but the first begins with a look at all at once.
    cpu_seconds: float
    peak_mib: float
    server_cpu_seconds: float
    rates: tuple = ()  # Of all runs, the least first.

    @property
    def rate(self):
        return self.pods / self.seconds

    @property
    def cpu_ms(self):
        return 1000 * self.cpu_seconds / self.pods

    @property
    def cpu_ms_of_all(self):
        """With the API server's and etcd's: what a machine on which others work, too, tells of the rate."""
        return 1000 * (self.cpu_seconds + self.server_cpu_seconds) / self.pods


class Bench:
    """One run over rows. `machine` has what tests/bench/run measures processes with."""

    def __init__(self, scratch, build, machine, clusters):
        self.scratch = scratch
        self.load = build / "tests/bench/berth_scheduler_load"
        if "BERTH_SCHEDULER_LOAD" in os.environ:
            self.load = pathlib.Path(os.environ["BERTH_SCHEDULER_LOAD"])
        self.machine = machine
        self.clusters = clusters

    def send(self, cluster, requests, connections=SETUP_CONNECTIONS, http2=True):
        """Sends requests, so many at once, over HTTP/2 or by a connection each; what came of it."""
        file = self.scratch / "requests"
        file.write_text("".join(requests))
        command = [self.load, "send", f"--kubeconfig={cluster.kubeconfig}", f"--requests={file}"]
        environment = os.environ | ({} if http2 else {"DISABLE_HTTP2": "1"})
        ran = subprocess.run([*command, f"--connections={connections}"], capture_output=True, text=True, env=environment)
        if ran.returncode != 0:
            raise harness.Failure(f"requests failed: {ran.stderr[-1000:]}{ran.stdout}")
        return json.loads(ran.stdout)

    def start(self, directory):
        directory.mkdir(exist_ok=True, mode=0o700)
        cluster = self.clusters.Cluster(directory)
        try:
            cluster.start(API_SERVER_FLAGS, [])
        except self.clusters.Failure as failure:
            raise harness.Failure(f"the genuine API server does not start: {failure}") from None
        return cluster

    def prepare(self, row, nodes, scale):
        """The directory of a stopped cluster that has what the row begins with."""
        directory = self.scratch / "prepared"
        cluster = self.start(directory)
        try:
            for part in row.setup(nodes, scale):
                if part:
                    self.send(cluster, part)
        finally:
            cluster.stop()
        return directory

    @contextlib.contextmanager
    def copy(self, prepared):
        """A server of its own on a copy of what was prepared, and what measures it and its etcd."""
        directory = self.scratch / "copy"
        shutil.copytree(prepared, directory)
        try:
            cluster = self.start(directory)
            try:
                server = [self.machine.Usage(process["pid"]) for process in cluster.state()["processes"].values()]
                self.machine.wait_quiet(*server)
                yield cluster, server
            finally:
                cluster.stop()
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def run_row(self, row, nodes, options, contenders):
        """The figures of each contender, by its name: of its run of the median rate. They run in turns."""
        prepared = self.prepare(row, nodes, options.scale)
        measured = row.counts_of(nodes, options.scale)[1]
        told, writes = {name: [] for name in contenders}, []
        try:
            for turn, contender in itertools.product(range(options.runs), contenders):
                if contender == "kube-scheduler" and turn >= (options.peer_runs or options.runs):
                    continue
                with self.copy(prepared) as (cluster, server):
                    told[contender].append(self.run(row, measured, contender, (cluster, server, writes)))
                    self.machine.say(f"{row.name}: {contender}: {told[contender][-1]}")
                    if contender == "berth" and not writes:
                        writes = writes_left(cluster)
        finally:
            shutil.rmtree(prepared, ignore_errors=True)
        return {name: median(found) for name, found in told.items()}

    def run(self, row, measured, contender, on):
        cluster, server, writes = on
        started = []
        churn = Churn(row, cluster)
        try:
            watch = self.begin(started, self.watch_command(cluster, measured), cluster.dir / "watch.log")
            harness.wait_until("the watch is open", lambda: "ready" in watch.lines() or not watch.alive(), 60)
            before = sum(usage.cpu_seconds() for usage in server)
            churn.start()
            begin = time.monotonic()
            if contender == "limit":
                sent = self.send(cluster, writes, LIMIT_CONNECTIONS)
                begin, cpu, peak = sent["start"], sent["own_cpu_seconds"], 0
                watch.wait(ROW_SECONDS_MAX)
            else:
                scheduler = self.begin(started, self.command(contender, cluster), cluster.dir / "scheduler.log")
                cpu, peak = self.wait_for(watch, scheduler)
            churn.stop()
            if watch.process.returncode != 0:
                raise harness.Failure(f"{row.name}, {contender}: not all pods got a node: {watch.text()[-300:]}")
            spent = sum(usage.cpu_seconds() for usage in server) - before
            return figures(json.loads(watch.lines()[-1]), begin, (cpu, peak, spent))
        finally:
            churn.stop()
            for process in reversed(started):
                process.end()

    @staticmethod
    def begin(started, command, log):
        process = harness.Background(command, log=log)
        started.append(process)
        return process

    def watch_command(self, cluster, measured):
        command = [self.load, "watch", f"--kubeconfig={cluster.kubeconfig}", f"--namespace={rows.MEASURED}"]
        return [*command, f"--pods={measured}", f"--timeout={ROW_SECONDS_MAX}"]

    def command(self, contender, cluster):
        if contender == "berth":
            return [harness.berth_program(), "run", f"--kubeconfig={cluster.kubeconfig}", "--leader-elect=false"]
        configuration = cluster.dir / "scheduler.yaml"
        configuration.write_text(KUBE_SCHEDULER.format(kubeconfig=cluster.kubeconfig))
        program = self.clusters.find_programs(["kube-scheduler"])["kube-scheduler"]
        return [program, f"--config={configuration}", "--secure-port=0"]

    def wait_for(self, watch, scheduler):
        """Until the watch has seen it all: CPU seconds and peak memory of the scheduler then."""
        usage = self.machine.Usage(scheduler.process.pid)
        deadline = time.monotonic() + ROW_SECONDS_MAX + 60
        while watch.alive() and time.monotonic() < deadline:
            if not scheduler.alive():
                raise harness.Failure(f"the scheduler ended: {scheduler.text()[-1000:]}")
            watch.wait(1)
        return usage.cpu_seconds(), usage.peak_mib()


def median(found):
    ordered = sorted(found, key=lambda figures: figures.rate)
    middle = ordered[len(ordered) // 2]
    return dataclasses.replace(middle, rates=tuple(figures.rate for figures in ordered))


def figures(told, begin, used):
    cpu, peak, server_cpu = used
    bound = sorted(told["bound"])
    at = lambda part: 1000 * (bound[int(part * (len(bound) - 1))] - begin)
    return Figures(
        pods=len(bound),
        start_seconds=bound[0] - begin,
        seconds=max(told["last_event"], bound[-1]) - bound[0],
        bound_seconds=bound[-1] - bound[0],
        p50_ms=at(0.5),
        p99_ms=at(0.99),
        events=told["events"],
        watches=told["watches"],
        cpu_seconds=cpu,
        peak_mib=peak,
        server_cpu_seconds=server_cpu,
    )


class Churn:
    """What goes on beside, from a thread of its own."""

    def __init__(self, row, cluster):
        self.row = row
        self.connection = connect(cluster)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        if self.row.churn:
            self.thread.start()

    def run(self):
        tick = 0
        while not self.ended.wait(self.row.churn_seconds):
            for method, path, document in self.row.churn(tick):
                self.connection.request(method, path, document)
            tick += 1

    def stop(self):
        """Safe to call twice."""
        self.ended.set()
        if self.thread.is_alive():
            self.thread.join(60)
        self.connection.close()


# ------------------------------------------------------------------------------------------------
# What a run of berth left.


class Administrator:
    """What harness.Connection needs to know, from a cluster's kubeconfig."""

    def __init__(self, cluster):
        text = cluster.kubeconfig.read_text()
        self.host, port = re.search(r"server: https://([^:]+):(\d+)", text).groups()
        self.port = int(port)
        self.token = cluster.token()
        self.context = ssl.create_default_context(cafile=cluster.certificate())


def connect(cluster):
    return harness.Connection(Administrator(cluster))


def list_all(connection, path):
    items, more = [], ""
    while True:
        page = connection.request("GET", f"{path}?limit={PAGE}&continue={more}").json()
        items += page["items"]
        more = page["metadata"].get("continue", "")
        if not more:
            return items


def writes_left(cluster):
    """The requests that make what berth's run made: each binding, each mark and deletion of a victim, each condition, each event."""
    connection = connect(cluster)
    events = list_all(connection, "/apis/events.k8s.io/v1/events")
    pods = list_all(connection, rows.pods_path(rows.MEASURED))
    connection.close()
    requests, told = [], set()
    for event in sorted(events, key=lambda event: event["eventTime"] or ""):
        # Of pods that came while it ran, nothing is known before they are there. The server tells of its own Service.
        if event["regarding"].get("namespace") == rows.CHURN or event["regarding"]["kind"] != "Pod":
            continue
        requests += writes_of(event)
        if event["reason"] == "Scheduled":
            told.add(event["regarding"]["uid"])
    for pod in pods:
        if pod["metadata"]["uid"] not in told:
            requests.append(binding(pod["metadata"], pod["spec"]["nodeName"]))
    return requests


def binding(pod, node):
    metadata = {key: pod[key] for key in ("name", "namespace", "uid")}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    document = {"kind": "Binding", "apiVersion": "v1", "metadata": metadata, "target": target}
    return rows.line("POST", f"{rows.pods_path(pod['namespace'])}/{pod['name']}/binding", document)


def writes_of(event):
    pod = event["regarding"]
    path = f"{rows.pods_path(pod['namespace'])}/{pod['name']}"
    if event["reason"] == "Scheduled":
        yield binding(pod, event["note"].rpartition(" ")[2])
    if event["reason"] == "Preempted":
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": event["note"]}
        yield patch(path, pod, condition)
        yield rows.line("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": pod["uid"]}})
    if event["reason"] == "FailedScheduling":
        yield patch(path, pod, {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": event["note"]})
    kept = {key: value for key, value in event.items() if not key.startswith("deprecated") and key != "metadata"}
    kept["metadata"] = {key: event["metadata"][key] for key in ("name", "namespace")}
    yield rows.line("POST", f"/apis/events.k8s.io/v1/namespaces/{pod['namespace']}/events", kept)


def patch(path, pod, condition):
    document = {"metadata": {"uid": pod["uid"]}, "status": {"conditions": [condition]}}
    return rows.line("PATCH", f"{path}/status", document, "application/strategic-merge-patch+json")


# ------------------------------------------------------------------------------------------------
# Tables.


def cell(found):
    return (
        f"{found.rate:,.0f}/s; {found.p50_ms / 1000:.2f} and {found.p99_ms / 1000:.2f} s; "
        f"{found.cpu_ms:.2f} ms, {found.peak_mib:,.0f} MiB"
    )


def ratio(value, goal, at_most=False):
    missed = value > goal if at_most else value < goal
    return f"**{value:.2f}**" if missed else f"{value:.2f}"


def table_row(row, told):
    """The columns of one row; of contenders that did not run, none."""
    berth, kube, limit = (told.get(name) for name in CONTENDERS)
    cells = [row.name]
    cells += [cell(found) if found else "" for found in (berth, kube)]
    cells.append(f"{limit.rate:,.0f}/s" if limit else "")
    cells.append(ratio(berth.rate / limit.rate, 0.9) if berth and limit else "")
    if berth and kube:
        cells.append(f"{berth.rate / kube.rate:.1f}")
        cells.append(ratio(berth.cpu_ms / kube.cpu_ms, 0.1, at_most=True))
        cells.append(ratio(berth.peak_mib / kube.peak_mib, 0.5, at_most=True))
    else:
        cells += ["", "", ""]
    lacking = [f"{name} lacks {found.pods - found.events:,} events" for name, found in told.items() if found.events < found.pods]
    lacking += [
        f"{name} {found.rates[0]:,.0f} to {found.rates[-1]:,.0f}/s" for name, found in told.items() if len(found.rates) > 1
    ]
    lacking += [f"{name} seen by {found.watches} watches" for name, found in told.items() if found.watches > 1]
    starts = " and ".join(f"{found.start_seconds:.1f}" for found in (berth, kube) if found)
    of_all = ", ".join(f"{found.cpu_ms_of_all:.2f}" for found in (berth, kube, limit) if found)
    cells.append("; ".join([f"{berth.pods:,} pods", f"first bound after {starts} s", f"{of_all} ms", *lacking]))
    return cells


COLUMNS = (
    "row",
    "berth: pods/s; p50 and p99; CPU a pod, memory",
    "kube-scheduler: the same",
    "limit",
    "berth to limit",
    "berth to kube-scheduler",
    "CPU",
    "memory",
    "more; CPU a pod of all: berth, kube-scheduler, limit",
)
