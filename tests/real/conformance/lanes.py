"""Tests that each want a whole cluster, one after the other on some clusters of their own."""

import queue
import threading

import environments
import suite
import verdicts


class Deal:
    """What is left to do and what came out, for all lanes."""

    def __init__(self, rows, tell):
        self.tell = tell
        self.waiting = queue.SimpleQueue()
        # Slow ones first, so that none is begun last.
        for row in sorted(rows, key=lambda row: (row.quick, row.name)):
            self.waiting.put(row.name)
        self.total = len(rows)
        self.outcomes = {}
        self.problems = []
        self.lock = threading.Lock()

    def next(self):
        try:
            return self.waiting.get_nowait()
        except queue.Empty:
            return None

    def take(self, name, outcome):
        with self.lock:
            self.outcomes[name] = outcome
            self.tell(suite.ended_line(name, outcome, len(self.outcomes), self.total))

    def drop(self):
        """Nothing more is begun."""
        while self.next() is not None:
            pass


class Lane(threading.Thread):
    """One cluster, and the tests that it gets."""

    def __init__(self, deal, place, paths, directory):
        super().__init__()
        self.deal = deal
        self.place = place
        self.paths = paths
        self.directory = directory
        self.cluster = place.cluster(directory / "cluster", paths)
        self.running = None
        self.error = None

    def run(self):
        try:
            kubeconfig = self.cluster.start()
            self.prepare(kubeconfig)
            while (name := self.deal.next()) is not None:
                self.deal.take(name, self.outcome_of(name, kubeconfig))
        except BaseException as error:  # noqa: BLE001  run() raises it in the main thread.
            self.error = error
        finally:
            self.deal.problems += self.cluster.stop()

    def prepare(self, kubeconfig):
        environments.prepare(self.place, self.paths["kubectl"], kubeconfig)

    def outcome_of(self, name, kubeconfig):
        environments.wait_until_tidy(self.paths["kubectl"], kubeconfig)
        directory = self.directory / verdicts.file_name(name)
        directory.mkdir()
        self.running = suite.Run(suite.command(self.paths, [name], 1, kubeconfig, directory), directory)
        return self.running.outcomes().get(name, verdicts.MISSING)

    def end(self):
        self.deal.drop()
        if self.running is not None:
            self.running.end()
        self.join()


def tell_user(line):
    print(line, flush=True)


def run(place, rows, paths, clusters_count, directory, *, lane=Lane, tell=tell_user):
    """({name: Outcome}, problems) of the tests, dealt to so many clusters."""
    deal = Deal(rows, tell)
    lanes = []
    for index in range(min(clusters_count, len(rows))):
        home = directory / f"cluster-{index}"
        home.mkdir(exist_ok=True)
        lanes.append(lane(deal, place, paths, home))
    try:
        for each in lanes:
            each.start()
        for each in lanes:
            each.join()
    finally:
        for each in lanes:
            if each.ident is not None:
                each.end()
    for each in lanes:
        if each.error is not None:
            raise each.error
    return deal.outcomes, deal.problems
