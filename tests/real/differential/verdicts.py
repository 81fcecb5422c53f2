"""Whether two answers to the same question are the same."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a pod: a node, or why there is none."""

    node: str | None = None
    message: str = ""
    promised: str | None = None  # Where others are evicted for it, ...
    victims: frozenset = frozenset()  # ... and who: (namespace, name).

    def text(self):
        if self.promised:
            return f"promised {self.promised}, for which leave {sorted(self.victims)}"
        return f"on {self.node}" if self.node else f"unschedulable: {self.message}"


def feature(leaving):
    """What known causes go by. `leaving`: some pod is being deleted."""
    return " [leaving]" if leaving else ""


def differences(genuine, berth, scores):
    """Lines; none when berth's answer could be the genuine one. `scores`: the genuine, of nodes that can be had."""
    if bool(genuine.promised) != bool(berth.promised) and not (genuine.node or berth.node):
        return [f"evicts: genuine {genuine.text()} | berth {berth.text()}"]
    if bool(genuine.node) != bool(berth.node):
        return [f"placeable: genuine {genuine.text()} | berth {berth.text()}"]
    if genuine.promised:
        return []  # See of_victims.
    if not genuine.node:
        if genuine.message != berth.message:
            return [f"message: genuine {genuine.message} | berth {berth.message}"]
        return []
    if genuine.node == berth.node:
        return []
    if berth.node not in scores:
        return [f"feasible: genuine {sorted(scores) or [genuine.node]} | berth {berth.node}"]
    best = max(scores.values())
    if scores[berth.node] < best:
        return [f"score: genuine {genuine.node} {scores[genuine.node]} of at most {best} | berth {berth.node} {scores[berth.node]}"]
    return []


def cost(victims, pods):
    """By which nodes for an eviction are compared, least first: the highest priority of victims, the sum of their
    priorities, their number, and when the first of those of the highest priority began, the latest first."""
    found = [pods[victim] for victim in victims]
    priorities = [pod["spec"].get("priority", 0) for pod in found]
    starts = [pod["status"].get("startTime", "") for pod in found if pod["spec"].get("priority", 0) == max(priorities)]
    return max(priorities), sum(priority + 2**31 for priority in priorities), len(found), [-ord(c) for c in min(starts)]


def of_victims(genuine, berth, pods):
    """Lines; none when evictions are the same, or as dear."""
    if genuine.promised == berth.promised and genuine.victims == berth.victims:
        return []
    if genuine.promised == berth.promised:
        return [f"victims: genuine {genuine.text()} | berth {berth.text()}"]
    costs = cost(genuine.victims, pods), cost(berth.victims, pods)
    if costs[0] != costs[1]:
        return [f"eviction: genuine {genuine.text()} {costs[0]} | berth {berth.text()} {costs[1]}"]
    return []
