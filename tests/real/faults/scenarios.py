"""What breaks. Each scenario is given a stage (rig, load, observer, seeded chance) and returns what it did."""

import collections
import os
import signal
import time

import harness
import proxy
import rig as rigs

ALONE = "--leader-elect=false"


def killed(stage, short):
    """kill -9 of berth at random moments, and a start right after"""
    berth = stage.berth(ALONE)
    times = 8 if short else 100
    for _ in range(times):
        time.sleep(stage.moment(0.05, 1.5))
        berth.kill()
        berth.start()
    return f"{times} kills"


def api_server(stage, short):
    """kill -9 of the API server, and a start right after"""
    stage.berth(ALONE)
    times = 1 if short else 5
    for _ in range(times):
        time.sleep(stage.moment(1, 5))
        stage.rig.restart_api_server()
    time.sleep(2)
    return f"{times} kills of kube-apiserver"


def etcd(stage, short):
    """etcd stopped (SIGSTOP) and continued"""
    stage.berth(ALONE)
    pause = 5 if short else 30
    pid = stage.rig.process("etcd")
    for _ in range(1 if short else 2):
        time.sleep(stage.moment(1, 3))
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(pause)
        finally:
            os.kill(pid, signal.SIGCONT)
    time.sleep(2)
    return f"{1 if short else 2} times {pause} s"


def watches(stage, short):
    """all watches cut every second"""
    stage.berth(ALONE)
    times = 5 if short else 60
    for _ in range(times):
        time.sleep(1)
        stage.rig.proxy.cut_watches()
    return f"{times} cuts"


def errors(stage, short):
    """requests refused with 409, 429 and 500, lost on the way, done without an answer, or done late"""

    stage.berth(ALONE)
    break_requests(stage, 0.04, 0 if short else 0.01)
    seconds = 6 if short else 60
    time.sleep(seconds)
    mend_requests(stage)
    return f"{seconds} s"


def break_requests(stage, chance, hold_chance):
    """From now on the proxy does each wrong with this chance, to all but events."""
    chances = [(chance, fault) for fault in (409, 429, 500, "lose-request", "lose-answer")]

    def decide(method, path):
        if "/events" in path:
            return None
        drawn = stage.proxy_chance.random()
        for share, fault in [(hold_chance if path.endswith("/binding") else 0, "hold"), *chances]:
            if drawn < share:
                return fault
            drawn -= share
        return None

    stage.rig.proxy.decide = decide


def mend_requests(stage):
    stage.rig.proxy.decide = lambda method, path: None
    harness.wait_until("what was held has been done", lambda: stage.rig.proxy.holding == 0, 2 * proxy.HOLD_SECONDS)


def leader(stage, short):
    """of two replicas the leader stopped (SIGSTOP) past its lease, and continued"""
    replicas = [stage.berth(*rigs.LEASE_TIMES), stage.berth(*rigs.LEASE_TIMES)]
    times = 1 if short else 10

    def leading(besides=None):
        return next((r for r in replicas if r is not besides and r.leads()), None)

    for _ in range(times):
        first = harness.wait_until("one leads", leading)
        time.sleep(stage.moment(0.5, 3))
        pid = first.process.process.pid
        os.kill(pid, signal.SIGSTOP)
        try:
            harness.wait_until("the other leads", lambda: leading(first), 60)
            time.sleep(stage.moment(0, 1))
        finally:
            os.kill(pid, signal.SIGCONT)
    time.sleep(2)
    return f"{times} leaders stopped"


def together(stage, short):
    """two replicas; one is killed or stopped, all watches are cut, or the API server is killed, while requests fail"""
    replicas = [stage.berth(*rigs.LEASE_TIMES), stage.berth(*rigs.LEASE_TIMES)]
    break_requests(stage, 0.01, 0)
    times = 5 if short else 60
    did = collections.Counter()
    for _ in range(times):
        time.sleep(stage.moment(0.2, 3))
        what = stage.chance.choices(("kill", "stop", "cut", "API server"), (4, 3, 4, 1))[0]
        did[what] += 1
        replica = stage.chance.choice(replicas)
        if what == "kill":
            replica.kill()
            replica.start()
        elif what == "stop":
            pid = replica.process.process.pid
            os.kill(pid, signal.SIGSTOP)
            time.sleep(stage.moment(0.5, 8))
            os.kill(pid, signal.SIGCONT)
        elif what == "cut":
            stage.rig.proxy.cut_watches()
        else:
            stage.rig.restart_api_server()
    mend_requests(stage)
    return ", ".join(f"{count} {what}" for what, count in sorted(did.items()))


SCENARIOS = {"killed": killed, "api-server": api_server, "etcd": etcd, "watches": watches, "errors": errors, "leader": leader,
             "together": together}
# Of these a write can arrive after whoever sent it went on without it.
LATE_WRITES = {"errors": "hold of a binding"}
