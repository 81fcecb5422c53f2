"""e2e.test, the suite, and ginkgo, which deals its tests out to several processes of it."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess

import harness
import verdicts

REAL = pathlib.Path(__file__).resolve().parent.parent

SUITE_SECONDS_MAX = 3600

# One test as ginkgo reports it at its end: this line, then its name.
ENDED = re.compile(r"^• (?:\[(?P<state>[A-Z ]+)\] )?\[(?P<seconds>[0-9.]+) seconds\]$")
# Where in the hierarchy of its name a test failed; not a part of the name.
FAILED_AT = re.compile(
    r" ?\[(?:It|BeforeEach|JustBeforeEach|AfterEach|JustAfterEach|DeferCleanup \(Each\))\] ?"
)


def programs(*names):
    """Where programs of tests/real are, built when missing."""
    build = subprocess.run([REAL / "build", *names], stdout=subprocess.PIPE, text=True)
    if build.returncode == 3:
        raise harness.Unavailable("the genuine programs are not there")
    if build.returncode != 0:
        raise harness.Failure("the genuine programs can't be built")
    return dict(line.split(" ", 1) for line in build.stdout.splitlines())


def command(paths, names, processes, kubeconfig, directory):
    # What is matched is the description of the suite, a blank, the name.
    # Go takes no escaped blank.
    exactly = "|".join(re.escape(name).replace("\\ ", " ") for name in names)
    return [
        paths["ginkgo"],
        f"--procs={min(processes, len(names))}",
        f"--focus= (?:{exactly})$",
        f"--timeout={SUITE_SECONDS_MAX}s",
        "--no-color",
        "-v",
        f"--output-dir={directory}",
        "--json-report=report.json",
        paths["e2e.test"],
        "--",
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        "--kube-api-content-type=application/json",
        f"--kubectl-path={paths['kubectl']}",
        # There is no kubelet to ask for logs.
        "--dump-logs-on-failure=false",
        f"--report-dir={directory}",
    ]


class Progress:
    """What to tell of each test, from what ginkgo says."""

    def __init__(self, names):
        # Longer names first: one may begin as another does.
        self.names = sorted(names, key=len, reverse=True)
        self.total = len(names)
        self.seen = 0
        self.ended = None

    def line(self, text):
        """A line to print when `text` says that a test has ended, else None."""
        ended, self.ended = self.ended, ENDED.match(text)
        name = self.name_in(text) if ended else None
        if name is None:
            return None
        self.seen += 1
        outcome = verdicts.Outcome(not ended["state"], seconds=float(ended["seconds"]))
        return ended_line(name, outcome, self.seen, self.total)

    def name_in(self, text):
        plain = " ".join(FAILED_AT.sub(" ", text).split())
        return next((name for name in self.names if plain.startswith(name)), None)


class Run:
    """One run of the suite. end() may be called by any thread."""

    def __init__(self, words, directory):
        environment = dict(os.environ, NO_PROXY="*", HOME=str(directory))
        environment.pop("KUBECONFIG", None)
        self.directory = directory
        self.process = subprocess.Popen(
            words,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )

    def outcomes(self, on_line=lambda line: None):
        """{name: Outcome} of what came to an end, once all did."""
        try:
            with open(self.directory / "suite.log", "w") as log:
                for line in self.process.stdout:
                    log.write(line)
                    on_line(line.rstrip("\n"))
            self.process.wait()
        finally:
            self.end()
        report = self.directory / "report.json"
        if not report.exists():
            raise harness.Failure(f"the suite made no report; {self.directory}/suite.log says why")
        return verdicts.outcomes_of(json.loads(report.read_text()))

    def end(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                return
            os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)


def ended_line(name, outcome, seen, total):
    """What to tell of a test as it ends."""
    return f"{'ok' if outcome.passed else 'FAILED':<8} {seen}/{total} {name}  ({outcome.seconds:.1f} s)"
