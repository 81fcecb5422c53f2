"""What is expected of each test, and what became of it.

A list has a line per test: whether it passes in each of the form's tiers, why it does not where that
needs a cause (a key of causes.txt), whether it is quick, and its name. The command writes the
verdicts; the cause of a new failure is for who looks into it to fill in.
"""

import dataclasses
import re

# What a list says of a test in a tier: none where it was never run.
WORDS = {True: "pass", False: "fail", None: "none"}
VERDICTS = {word: verdict for verdict, word in WORDS.items()}
UNKNOWN = "?"  # A failure that nobody has looked into.
NO_CAUSE = "-"
QUICK_SECONDS_MAX = 20


@dataclasses.dataclass(frozen=True)
class Form:
    """What one list of tests says."""

    name: str
    file: str
    tiers: tuple
    # Those whose failures need a cause.
    explained: tuple
    # Where it is seen whether a test is quick.
    paced_by: str
    sample_every: int
    header: str


@dataclasses.dataclass(frozen=True)
class Outcome:
    passed: bool
    text: str = ""
    seconds: float = 0.0


MISSING = Outcome(False, "it did not run, or did not come to its end")


@dataclasses.dataclass
class Row:
    name: str
    passes: dict  # By tier.
    cause: str
    quick: bool

    def passes_on(self, tier):
        return self.passes[tier]


def outcomes_of(report):
    """{name: Outcome} of ginkgo's report; tests that were not chosen are left out."""
    outcomes = {}
    for suite in report:
        for spec in suite.get("SpecReports") or []:
            if spec.get("LeafNodeType") != "It" or spec["State"] == "skipped" and not spec["RunTime"]:
                continue
            words = [*(spec.get("ContainerHierarchyTexts") or []), spec["LeafNodeText"]]
            failure = spec.get("Failure") or {}
            text = failure.get("Message", "")
            location = failure.get("Location") or {}
            if text:
                where = re.sub(r"^.*/(test/e2e/)", r"\1", location.get("FileName", ""))
                text = f"{text}\nat {where}:{location.get('LineNumber')}"
            outcomes[" ".join(words)] = Outcome(
                spec["State"] == "passed", text or spec["State"], spec["RunTime"] / 1e9
            )
    return outcomes


def differences(tier, rows, outcomes):
    """[(row, whether it passed)] of what is not as expected."""
    came_out = [(row, outcomes.get(row.name, MISSING).passed) for row in rows]
    return [(row, passed) for row, passed in came_out if passed != row.passes_on(tier)]


def read_causes(path):
    """{key: text}, in their order; `KEY: text`, goes on in indented lines."""
    causes = {}
    key = None
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line[0] == " ":
            causes[key] += " " + line.strip()
            continue
        key, _, text = line.partition(":")
        causes[key] = text.strip()
    return causes


ORIGIN = "# of "  # `# of embedded: 0123abc, ./dev conformance --on embedded --write`


class Table:
    def __init__(self, form, rows, causes, origins=None):
        self.form = form
        self.rows = rows
        self.causes = causes
        self.origins = origins or {}  # By tier: the commit and the command of its verdicts.

    @classmethod
    def read(cls, form, folder):
        rows, origins = [], {}
        causes = read_causes(folder / "causes.txt")
        for number, line in enumerate((folder / form.file).read_text().splitlines(), 1):
            if line.startswith(ORIGIN):
                tier, _, told = line.removeprefix(ORIGIN).partition(": ")
                origins[tier] = told
            if not line or line.startswith("#"):
                continue
            words = line.split(None, len(form.tiers) + 2)
            passes, (cause, pace, name) = words[: len(form.tiers)], [*words[len(form.tiers) :], "", "", ""][:3]
            if not set(passes) <= VERDICTS.keys() or pace not in ("quick", "slow") or not name:
                raise SystemExit(f"{form.file}:{number}: '{line}' is not of the form of the others")
            if cause not in (UNKNOWN, NO_CAUSE) and cause not in causes:
                raise SystemExit(f"{form.file}:{number}: causes.txt has no '{cause}'")
            verdicts = {tier: VERDICTS[word] for tier, word in zip(form.tiers, passes)}
            rows.append(Row(name, verdicts, cause, pace == "quick"))
        return cls(form, rows, causes, origins)

    def sample(self, rows, tier):
        """Each sample_every-th of the quick ones that are expected to pass."""
        return [row for row in rows if row.quick and row.passes_on(tier)][:: self.form.sample_every]

    def take(self, tier, outcomes, names, origin):
        """Makes what came out the expected; of `names` alone, which are those that ran. Where they are all, `origin` says of
        which commit and by which command."""
        if len(names) == len(self.rows):
            self.origins[tier] = origin
        for row in self.rows:
            if row.name not in names:
                continue
            outcome = outcomes.get(row.name, MISSING)
            row.passes[tier] = outcome.passed
            if tier == self.form.paced_by:
                row.quick = outcome.seconds < QUICK_SECONDS_MAX
            # What is not aimed at may pass.
            if tier in self.form.explained and not row.cause.startswith("beyond-"):
                self.ask_for_cause(row)

    def ask_for_cause(self, row):
        if all(row.passes_on(tier) is not False for tier in self.form.explained):
            row.cause = NO_CAUSE
        elif row.cause == NO_CAUSE:
            row.cause = UNKNOWN

    def write(self, folder):
        tiers = self.form.tiers
        lines = [
            self.form.header,
            *(f"{ORIGIN}{tier}: {self.origins[tier]}\n" for tier in tiers if tier in self.origins),
        ]
        width = max(len(row.cause) for row in self.rows)
        for row in sorted(self.rows, key=lambda row: row.name):
            verdict = " ".join(WORDS[row.passes_on(tier)] for tier in tiers)
            pace = "quick" if row.quick else "slow "
            lines.append(f"{verdict} {row.cause:<{width}} {pace} {row.name}\n")
        (folder / self.form.file).write_text("".join(lines))


def file_name(name):
    """A folder's name for a test: its words, and no more than a file system takes."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-100:].lstrip("-")
