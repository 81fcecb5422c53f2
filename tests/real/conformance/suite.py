"""e2e.test, the suite, and ginkgo, which deals its tests out to several processes of it."""

import json
import os
import pathlib
import re
import signal
import subprocess

import harness
import verdicts

REAL = pathlib.Path(__file__).resolve().parent.parent

# Most of a test is waiting for what the cluster does: many at once cost little more than one.
PROCESSES = 8
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


def command(paths, names, options, kubeconfig, directory):
    # What is matched is the description of the suite, a blank, the name.
    # Go takes no escaped blank.
    exactly = "|".join(re.escape(name).replace("\\ ", " ") for name in names)
    return [
        paths["ginkgo"],
        f"--procs={min(options.procs, len(names))}",
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
        outcome = "FAILED" if ended["state"] else "ok"
        seconds = float(ended["seconds"])
        return f"{outcome:<8} {self.seen}/{self.total} {name}  ({seconds:.1f} s)"

    def name_in(self, text):
        plain = " ".join(FAILED_AT.sub(" ", text).split())
        return next((name for name in self.names if plain.startswith(name)), None)


def run(words, names, directory):
    """Runs it and returns {name: Outcome} of what came to an end."""
    environment = dict(os.environ, NO_PROXY="*", HOME=str(directory))
    environment.pop("KUBECONFIG", None)
    progress = Progress(names)
    with open(directory / "suite.log", "w") as log:
        suite = subprocess.Popen(
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
        try:
            for line in suite.stdout:
                log.write(line)
                told = progress.line(line.rstrip("\n"))
                if told:
                    print(told, flush=True)
            suite.wait()
        finally:
            if suite.poll() is None:
                os.killpg(suite.pid, signal.SIGTERM)
                try:
                    suite.wait(30)
                except subprocess.TimeoutExpired:
                    os.killpg(suite.pid, signal.SIGKILL)
                    suite.wait()
    report = directory / "report.json"
    if not report.exists():
        raise harness.Failure(f"the suite made no report; {directory}/suite.log says why")
    return verdicts.outcomes_of(json.loads(report.read_text()))
