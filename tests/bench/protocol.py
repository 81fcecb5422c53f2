"""What the genuine API server gives by how it is asked: by how many connections writes go, in what order, and how one begins to watch."""

import http.client
import re
import shutil
import time

import scheduler
import scheduler_rows as rows

CALLS = (8, 24, 48, scheduler.LIMIT_CONNECTIONS)
PODS = "/api/v1/pods"
JSON = "application/json"
PROTOBUF = "application/vnd.kubernetes.protobuf"
WATCH_LIST = f"{PODS}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion="
LIST_END = b"k8s.io/initial-events-end"


def synthetic_writes(connection):
    """A binding and an event for each pod that waits, apart: as berth writes them."""
    bindings, events = [], []
    for index, pod in enumerate(scheduler.list_all(connection, rows.pods_path(rows.MEASURED))):
        metadata, node = pod["metadata"], rows.node_name(index)
        bindings.append(scheduler.binding(metadata, node))
        events.append(event(metadata, node))
    return bindings, events


def event(pod, node):
    regarding = {"apiVersion": "v1", "kind": "Pod"} | {key: pod[key] for key in ("name", "namespace", "uid", "resourceVersion")}
    document = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": f"{pod['name']}.0123456789abcdef", "namespace": pod["namespace"]},
        "action": "Binding",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "note": f"Successfully assigned {pod['namespace']}/{pod['name']} to {node}",
        "reason": "Scheduled",
        "regarding": regarding,
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-berth",
        "type": "Normal",
    }
    return rows.line("POST", f"/apis/events.k8s.io/v1/namespaces/{pod['namespace']}/events", document)


def by_turns(bindings, events):
    return [line for pair in zip(bindings, events) for line in pair]


class Measured:
    """Seconds, and the CPU seconds of the server and of etcd, of what is done within."""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.before = self.cpu()
        self.begin = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.begin
        self.cpu_seconds = self.cpu() - self.before

    def cpu(self):
        return sum(usage.cpu_seconds() for usage in self.server)


def write_rows(bench, prepared, pods):
    """Each on a copy of its own."""
    pairs = "a binding and an event a pod by turns"
    orders = [(f"{pairs}, {count} calls at once", by_turns, count, True) for count in CALLS]
    orders += [(f"{pairs}, HTTP/1.1, {count} connections", by_turns, count, False) for count in CALLS]
    most = scheduler.LIMIT_CONNECTIONS
    orders.append((f"bindings alone, {most} calls at once", lambda bindings, events: bindings, most, True))
    orders.append((f"bindings, then events, {most} calls at once", lambda bindings, events: bindings + events, most, True))
    for what, order, calls, http2 in orders:
        with bench.copy(prepared) as (cluster, server):
            connection = scheduler.connect(cluster)
            requests = order(*synthetic_writes(connection))
            connection.close()
            with Measured(server) as measured:
                sent = bench.send(cluster, requests, calls, http2)
            seconds = sent["end"] - sent["start"]
            yield what, f"{pods / seconds:,.0f} pods/s", f"{1000 * measured.cpu_seconds / pods:.2f} ms a pod", ""


def read_all(connection, administrator, path, accept):
    """The bytes of one answer, of a watch up to where its list ends."""
    connection.request("GET", path, headers={"Accept": accept, "Authorization": f"Bearer {administrator.token}"})
    answer = connection.getresponse()
    if answer.status != 200:
        raise scheduler.harness.Failure(f"{path}: {answer.status}: {answer.read()[:300]!r}")
    if "watch=1" not in path:
        return answer.read()
    parts, tail = [], b""
    while LIST_END not in tail:
        parts.append(answer.read1(1 << 16))
        tail = tail[-len(LIST_END) :] + parts[-1]
    return b"".join(parts)


def start_rows(bench, prepared):
    """What it takes to know all pods, on one server, each way for the second time."""
    ways = (
        ("list in pages of 500, JSON", f"{PODS}?limit=500", JSON),
        ("list whole, JSON", PODS, JSON),
        ("list whole of the server's cache (resourceVersion=0), JSON", f"{PODS}?resourceVersion=0", JSON),
        ("list whole, protobuf", PODS, PROTOBUF),
        ("watch-list, JSON", WATCH_LIST, JSON),
        ("watch-list, protobuf", WATCH_LIST, f"{PROTOBUF};stream=watch"),
    )
    with bench.copy(prepared) as (cluster, server):
        administrator = scheduler.Administrator(cluster)
        for what, path, accept in ways:
            for _ in range(2):
                with Measured(server) as measured:
                    size = know_all(administrator, path, accept)
            yield what, f"{measured.seconds:.2f} s", f"{measured.cpu_seconds:.2f} s", f"{size / 2**20:.1f} MiB"


def know_all(administrator, path, accept):
    connection = http.client.HTTPSConnection(administrator.host, administrator.port, timeout=60, context=administrator.context)
    size, more = 0, ""
    while True:
        body = read_all(connection, administrator, path + (f"&continue={more}" if more else ""), accept)
        size += len(body)
        found = re.search(rb'"continue":"([^"]+)"', body[:1000]) if "limit=" in path else None
        if not found:
            connection.close()
            return size
        more = found.group(1).decode()


def measure(bench, nodes, scale):
    row = next(row for row in rows.ROWS if row.name == "basic")
    placed, pods = row.counts_of(nodes, scale)
    prepared = bench.prepare(row, nodes, scale)
    try:
        lines = [(f"{placed + pods:,} pods: {what}", *rest) for what, *rest in start_rows(bench, prepared)]
        lines += [(f"{pods:,} pods: {what}", *rest) for what, *rest in write_rows(bench, prepared, pods)]
    finally:
        shutil.rmtree(prepared, ignore_errors=True)
    return lines


COLUMNS = ("what", "took", "CPU of kube-apiserver and etcd", "size")
