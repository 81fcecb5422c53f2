"""The two lists of tests: what each says of a test, and the document that is made of it."""

import re

import verdicts

COMPARISON = "## The same requests to both API servers"  # As tests/real/comparison/known.py has it.

# Of `scheduling`: whose scheduler, and where it runs.
SCHEDULERS = ("kube-scheduler", "berth")
PLACES = {
    "real": "the genuine parts, nodes of `berth nodes`",
    "kwok": "the genuine parts, KWOK's nodes",
    "embedded": "`berth up`",
}

CONFORMANCE = verdicts.Form(
    name="conformance",
    file="expected.txt",
    tiers=("real", "embedded"),
    explained=("embedded",),
    paced_by="embedded",
    sample_every=3,
    header="""\
# Kubernetes' Conformance tests that simulated nodes can pass: on the genuine parts, on berth, the
# cause of a failure on berth (causes.txt), quick or slow, name. Verdicts, quick and slow are
# written by `./dev conformance --on embedded|real --write`; causes by hand.
""",
)

SCHEDULING = verdicts.Form(
    name="scheduling",
    file="scheduling.txt",
    tiers=tuple(f"{scheduler}/{place}" for place in PLACES for scheduler in SCHEDULERS),
    explained=tuple(f"{scheduler}/{place}" for place in PLACES for scheduler in SCHEDULERS),
    paced_by="berth/embedded",
    sample_every=3,
    header="""\
# Kubernetes' tests of [sig-scheduling] but for the alpha ones: with kube-scheduler and with berth on
# the genuine parts with the nodes of `berth nodes`, the same with KWOK's nodes, the same on `berth up`;
# the cause of a failure in any of these (causes.txt), quick or slow, name. Verdicts, quick and slow are
# written by `./dev conformance --suite scheduling --write`; causes by hand.
""",
)

FORMS = {form.name: form for form in (CONFORMANCE, SCHEDULING)}


def write_document(table, docs):
    if table.form is SCHEDULING:
        (docs / "SCHEDULING_SUITE.md").write_text(scheduling_document(table))
        return
    path = docs / "CONFORMANCE.md"
    # What ./dev compare wrote at the end of it stays.
    kept = path.read_text().partition(COMPARISON)[1:] if path.exists() else ("", "")
    path.write_text(conformance_document(table) + ("\n" + "".join(kept) if kept[0] else ""))


def beyond(row):
    """Not aimed at: its cause says so."""
    return row.cause.startswith("beyond-")


def origin_of(table, tier, command, otherwise="before commits were noted"):
    """The commit and the command of a tier's verdicts."""
    commit, _, told = table.origins.get(tier, otherwise).partition(", ")
    return commit, f"`{told or command}`"


def verdict(row, tier):
    return {True: "passes", False: "**fails**", None: "not run"}[row.passes_on(tier)]


def cause_lines(table):
    lines = ["| cause | tests | |", "|---|---|---|"]
    for cause in [*table.causes, verdicts.UNKNOWN]:
        count = sum(row.cause == cause for row in table.rows)
        if count:
            lines.append(f"| {cause} | {count} | {table.causes.get(cause, 'not looked into')} |")
    return lines


def conformance_document(table):
    def origin_row(tier):
        commit, command = origin_of(table, tier, f"./dev conformance --on {tier} --write")
        return f"| {'the genuine parts' if tier == 'real' else '`berth up`'} | {commit} | {command} |"

    tiers = table.form.tiers
    aimed = [row for row in table.rows if not beyond(row)]
    lines = [
        "# Kubernetes' Conformance tests",
        "",
        "Written by `./dev conformance --table`; docs/design/0015-conformance.md says how they run. On the genuine parts the",
        "nodes are those of `berth nodes`.",
        "",
        "| | of commit | by |",
        "|---|---|---|",
        *(origin_row(tier) for tier in tiers),
        "",
        "| | tests | pass on the genuine parts | pass on `berth up` |",
        "|---|---|---|---|",
    ]
    for what, rows in (("all", table.rows), ("aimed at", aimed)):
        counts = " | ".join(str(sum(row.passes_on(tier) is True for row in rows)) for tier in tiers)
        lines.append(f"| {what} | {len(rows)} | {counts} |")
    lines += ["", "## Why tests fail on `berth up`", "", *cause_lines(table)]
    group = None
    for row in sorted(table.rows, key=lambda row: row.name):
        found, name = re.match(r"(\[sig-[a-z-]+\]) (.*)", row.name).groups()
        if found != group:
            group = found
            lines += ["", f"## {group.strip('[]')}", "", "| real | berth | test | cause |", "|---|---|---|---|"]
        told = " | ".join(verdict(row, tier) for tier in tiers)
        cause = "" if row.cause == verdicts.NO_CAUSE else row.cause
        name = name.removesuffix(" [Conformance]")
        lines.append(f"| {told} | {name} | {cause} |")
    return "\n".join(lines) + "\n"


def command_of(tier):
    scheduler, place = tier.split("/")
    on = {"real": "--on real", "kwok": "--on real --nodes kwok", "embedded": "--on embedded"}[place]
    return f"./dev conformance --suite scheduling {on} --scheduler {scheduler} --write"


def scheduling_document(table):
    rows = sorted(table.rows, key=lambda row: row.name)
    lines = [
        "# Kubernetes' tests of the scheduler",
        "",
        "All of [sig-scheduling] but for the two alpha tests. Written by `./dev conformance --suite scheduling --table`;",
        "docs/design/0015-conformance.md says how they run. In each place they run twice: with kube-scheduler, and with berth in",
        "its place. What kube-scheduler itself does not pass in a place is listed and not counted there.",
        "",
        "| where | kube-scheduler passes | of these pass with berth | pass with berth alone |",
        "|---|---|---|---|",
    ]
    for place, what in PLACES.items():
        genuine, berth = (f"{scheduler}/{place}" for scheduler in SCHEDULERS)
        counted = [row for row in rows if row.passes_on(genuine)]
        also = sum(row.passes_on(berth) is True for row in counted)
        alone = sum(row.passes_on(berth) is True for row in rows) - also
        lines.append(f"| {what} | {len(counted)} of {len(rows)} | {also} | {alone} |")
    lines += ["", "| where | scheduler | of commit | by |", "|---|---|---|---|"]
    for tier in table.form.tiers:
        scheduler, place = tier.split("/")
        commit, command = origin_of(table, tier, command_of(tier), otherwise="not run as a whole")
        lines.append(f"| {PLACES[place]} | {scheduler} | {commit} | {command} |")
    if any(row.cause != verdicts.NO_CAUSE for row in rows):
        lines += ["", "## Why tests fail", "", *cause_lines(table)]
    lines += [
        "",
        "## Tests",
        "",
        "k: with kube-scheduler, b: with berth; `berth nodes` and KWOK: on the genuine parts with these nodes.",
        "",
        "| `berth nodes`: k | b | KWOK: k | b | `berth up`: k | b | test | cause |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        told = " | ".join(verdict(row, tier) for tier in table.form.tiers)
        cause = "" if row.cause == verdicts.NO_CAUSE else row.cause
        lines.append(f"| {told} | {row.name.removeprefix('[sig-scheduling] ')} | {cause} |")
    return "\n".join(lines) + "\n"
