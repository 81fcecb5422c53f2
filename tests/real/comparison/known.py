"""What known.txt says of the differences that stay, and what docs/CONFORMANCE.md says of a run."""

import collections
import re

HEADING = "## The same requests to both API servers"


class Known:
    """A line `cause: why`, then, indented, the expressions that find its differences."""

    def __init__(self, text):
        self.causes = {}
        self.found = []
        self.counts = collections.Counter()
        cause = None
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            if not line.startswith(" "):
                cause, separator, why = line.partition(": ")
                if not separator or cause in self.causes:
                    raise SystemExit(f"known.txt:{number}: '{line}' is no cause with its why, or there twice")
                self.causes[cause] = why
            elif cause is None:
                raise SystemExit(f"known.txt:{number}: an expression before any cause")
            else:
                self.found.append((re.compile(line[2:], re.DOTALL), cause))

    def cause_of(self, line):
        for expression, cause in self.found:
            if expression.search(line):
                return cause
        return None

    def count(self, lines):
        """Counts each cause of a request's lines once. Returns the lines that have none."""
        causes = [self.cause_of(line) for line in lines]
        self.counts.update(set(causes) - {None})
        return [line for line, cause in zip(lines, causes) if cause is None]


class Counts:
    def __init__(self):
        self.requests = self.valid = self.different = self.valid_different = self.valid_in_fact = self.unknown = 0

    def add(self, requests, valid):
        self.requests += requests
        self.valid += valid

    def differ(self, valid, unknown, in_fact):
        """`in_fact`: not in the words of a refusal alone."""
        self.different += 1
        self.valid_different += valid
        self.valid_in_fact += valid and in_fact
        self.unknown += unknown

    def text(self):
        return (
            f"{self.requests} requests, {self.valid} of them valid: {self.different} differ "
            f"({100 * self.different / max(self.requests, 1):.1f} %), {self.valid_different} of the valid ones, "
            f"{self.valid_in_fact} of these in more than a refusal's words; {self.unknown} of unknown cause"
        )


# What no request of a story shows.
ELSEWHERE = """\
Discovery tells what is served as upstream does, in its order. attach, exec, log, portforward and proxy of pods are answered
without being told; proxy of nodes and Services is not served.

The order of the rules in a SelfSubjectRulesReview is that of the
bindings' names; upstream has none. A POST of a pod whose `overhead` is `{}` is refused as upstream refuses it; of a patch
or an apply that makes one it is not seen.

Parts of what is served that do less than upstream's, so that valid requests are answered otherwise:

| what | here |
|---|---|
| `x-kubernetes-validations` of definitions (CEL) | parsed, and refused where they are no CEL; not evaluated, of which a Warning names each rule (docs/design/0017-custom-resources.md) |
| managedFields of Events of berth's own programs | none: they are written by thousands, and nobody changes them (docs/design/0016-server-side-apply.md) |
| conversion webhooks of definitions | a definition that names one and serves several versions is refused (docs/design/0017-custom-resources.md) |
| matchConditions of webhook configurations (CEL) | refused with 422 (docs/design/0022-webhooks.md) |
| labels of PodSecurity on namespaces | stored, and no pod is refused by them |
| tokens of ServiceAccounts in pods | no volume is added for one: containers don't run. TokenRequest gives them |
| `kubernetes.io/enforce-mountable-secrets` of ServiceAccounts | holds for new pods, not for what pods/ephemeralcontainers adds |
| answers of webhooks | up to 3 MiB (docs/design/0022-webhooks.md) |
| keys in YAML that differ by their type alone (`1` and `"1"`) | one key, of which it is said that it stands twice |
| internalTrafficPolicy of a Service that is an ExternalName | none; upstream keeps one that it tells nobody, which is there again when the type changes back, and whose managers a write of it may change otherwise |
| a pod with several claims of a class whose volumes nobody makes | it waits where their volumes say where they are in different words (docs/design/0021-endpoints-and-volumes.md) |
| a claim that waited for its pod and got a volume that was there already | it keeps the annotation with the node that was chosen |""".splitlines()


def unserved_table(kinds):
    """Of (group version, kind, resource) that the genuine server tells of and berth doesn't."""
    lines = ["## Kinds that are not served", "", "They answer 404, and discovery doesn't tell them.", "", "| kind | version | resource |", "|---|---|---|"]
    return lines + [f"| {kind} | {version} | {resource} |" for version, kind, resource in sorted(kinds)]


def section(counts, known, what, commit, unserved):
    """The section of docs/CONFORMANCE.md: `what` are the options of the command, of `commit`."""
    lines = [
        HEADING,
        "",
        f"Of commit {commit}, by `./dev compare {what} --write`; docs/design/0018-comparison.md says how.",
        "A request counts once for each cause that it shows. In fact: in code, reason, object or events, and not in the words alone",
        "of what both refuse, as where an apply is of a pod's fields that may not change.",
        "",
        "| requests | of them valid | differ | of the valid ones | of these in fact | of unknown cause |",
        "|---|---|---|---|---|---|",
        f"| {counts.requests} | {counts.valid} | {counts.different} | {counts.valid_different} | {counts.valid_in_fact} | {counts.unknown} |",
        "",
        "| cause | requests | |",
        "|---|---|---|",
    ]
    for cause, count in sorted(known.counts.items(), key=lambda item: (-item[1], item[0])):
        lines.append(f"| {cause} | {count} | {known.causes[cause]} |")
    lines += [
        "",
        "pods/ephemeralcontainers and pods/resize are served and compared as all else. What differs is behind them: simulated",
        "nodes start no container for debugging, and say of no container what is in use, so that a pod that runs on one can't be",
        "resized (422: `Pod running on node without support for resize`).",
        "",
        *ELSEWHERE,
        "",
        *unserved_table(unserved),
    ]
    return "\n".join(lines) + "\n"


def with_section(document, text):
    """The document with its section replaced, which stays the last."""
    before = document.partition(HEADING)[0].rstrip("\n")
    return f"{before}\n\n{text}" if before else text
