"""What is expected of each test, and what became of it.

expected.txt has a line per test: whether it passes on the genuine parts, whether it passes on
berth, why it does not (a key of causes.txt), whether it is quick, and its name. The command
writes the verdicts; the cause of a new failure is for who looks into it to fill in.
"""

import dataclasses
import re

TIERS = ("real", "embedded")
UNKNOWN = "?"  # A failure that nobody has looked into.
NO_CAUSE = "-"
QUICK_SECONDS_MAX = 20
COMPARISON = "## The same requests to both API servers"  # As tests/real/comparison/known.py has it.
SAMPLE_EVERY = 3

HEADER = """\
# Kubernetes' Conformance tests that simulated nodes can pass: on the genuine parts, on berth, the
# cause of a failure on berth (causes.txt), quick or slow, name. Verdicts, quick and slow are
# written by `./dev conformance --on embedded|real --write`; causes by hand.
"""


@dataclasses.dataclass(frozen=True)
class Outcome:
    passed: bool
    text: str = ""
    seconds: float = 0.0


MISSING = Outcome(False, "it did not run, or did not come to its end")


@dataclasses.dataclass
class Row:
    name: str
    real: bool
    embedded: bool
    cause: str
    quick: bool

    def passes_on(self, tier):
        return getattr(self, tier)


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
    def __init__(self, rows, causes, origins=None):
        self.rows = rows
        self.causes = causes
        self.origins = origins or {}  # By tier: the commit and the command of its verdicts.

    @classmethod
    def read(cls, folder):
        rows, origins = [], {}
        causes = read_causes(folder / "causes.txt")
        for number, line in enumerate((folder / "expected.txt").read_text().splitlines(), 1):
            if line.startswith(ORIGIN):
                tier, _, origins_text = line.removeprefix(ORIGIN).partition(": ")
                origins[tier] = origins_text
            if not line or line.startswith("#"):
                continue
            real, embedded, cause, pace, name = [*line.split(None, 4), "", "", "", ""][:5]
            verdicts_known = {real, embedded} <= {"pass", "fail"}
            if not verdicts_known or pace not in ("quick", "slow") or not name:
                raise SystemExit(f"expected.txt:{number}: '{line}' is not of the form of the others")
            if cause not in (UNKNOWN, NO_CAUSE) and cause not in causes:
                raise SystemExit(f"expected.txt:{number}: causes.txt has no '{cause}'")
            rows.append(Row(name, real == "pass", embedded == "pass", cause, pace == "quick"))
        return cls(rows, causes, origins)

    def sample(self, rows, tier):
        """Each SAMPLE_EVERYth of the quick ones that are expected to pass."""
        return [row for row in rows if row.quick and row.passes_on(tier)][::SAMPLE_EVERY]

    def take(self, tier, outcomes, names, origin):
        """Makes what came out the expected; of `names` alone, which are those that ran. Where they are all, `origin` says of
        which commit and by which command."""
        if len(names) == len(self.rows):
            self.origins[tier] = origin
        for row in self.rows:
            if row.name not in names:
                continue
            outcome = outcomes.get(row.name, MISSING)
            setattr(row, tier, outcome.passed)
            if tier != "embedded":
                continue
            row.quick = outcome.seconds < QUICK_SECONDS_MAX
            if self.beyond(row):
                continue
            if outcome.passed:
                row.cause = NO_CAUSE
            elif row.cause == NO_CAUSE:
                row.cause = UNKNOWN

    def write(self, folder):
        lines = [HEADER, *(f"{ORIGIN}{tier}: {self.origins[tier]}\n" for tier in TIERS if tier in self.origins)]
        width = max(len(row.cause) for row in self.rows)
        for row in sorted(self.rows, key=lambda row: row.name):
            verdict = " ".join("pass" if row.passes_on(tier) else "fail" for tier in TIERS)
            pace = "quick" if row.quick else "slow "
            lines.append(f"{verdict} {row.cause:<{width}} {pace} {row.name}\n")
        (folder / "expected.txt").write_text("".join(lines))

    def beyond(self, row):
        """Not aimed at: its cause says so."""
        return row.cause.startswith("beyond-")

    def write_document(self, path):
        """What ./dev compare wrote at the end of it stays."""
        kept = path.read_text().partition(COMPARISON)[1:] if path.exists() else ("", "")
        path.write_text(self.document() + ("\n" + "".join(kept) if kept[0] else ""))

    def origin_row(self, tier):
        commit, _, command = self.origins.get(tier, "before commits were noted").partition(", ")
        command = command or f"./dev conformance --on {tier} --write"
        return f"| {'the genuine parts' if tier == 'real' else '`berth up`'} | {commit} | `{command}` |"

    def document(self):
        aimed = [row for row in self.rows if not self.beyond(row)]
        lines = [
            "# Kubernetes' Conformance tests",
            "",
            "Written by `./dev conformance --table`; docs/design/0015-conformance.md says how they run. On the genuine parts the",
            "nodes are those of `berth nodes`.",
            "",
            "| | of commit | by |",
            "|---|---|---|",
            *(self.origin_row(tier) for tier in TIERS),
            "",
            "| | tests | pass on the genuine parts | pass on `berth up` |",
            "|---|---|---|---|",
        ]
        for what, rows in (("all", self.rows), ("aimed at", aimed)):
            counts = " | ".join(str(sum(row.passes_on(tier) for row in rows)) for tier in TIERS)
            lines.append(f"| {what} | {len(rows)} | {counts} |")
        lines += ["", "## Why tests fail on `berth up`", "", "| cause | tests | |", "|---|---|---|"]
        for cause in [*self.causes, UNKNOWN]:
            count = sum(row.cause == cause for row in self.rows)
            if count:
                text = self.causes.get(cause, "not looked into")
                lines.append(f"| {cause} | {count} | {text} |")
        group = None
        for row in sorted(self.rows, key=lambda row: row.name):
            found, name = re.match(r"(\[sig-[a-z-]+\]) (.*)", row.name).groups()
            if found != group:
                group = found
                lines += ["", f"## {group.strip('[]')}", "", "| real | berth | test | cause |", "|---|---|---|---|"]
            verdict = " | ".join("passes" if row.passes_on(tier) else "**fails**" for tier in TIERS)
            cause = "" if row.cause == NO_CAUSE else row.cause
            name = name.removesuffix(" [Conformance]")
            lines.append(f"| {verdict} | {name} | {cause} |")
        return "\n".join(lines) + "\n"
