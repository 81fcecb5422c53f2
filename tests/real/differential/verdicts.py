"""Whether two answers to the same question are the same."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a pod: a node, or why there is none."""

    node: str | None = None
    message: str = ""

    def text(self):
        return f"on {self.node}" if self.node else f"unschedulable: {self.message}"


def features(pod, leaving):
    """What known causes go by. `leaving`: some pod is being deleted."""
    found = ["leaving"] if leaving else []
    if any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", [])):
        found.append("claims")
    return f" [{', '.join(found)}]" if found else ""


def differences(genuine, berth, scores):
    """Lines; none when berth's answer could be the genuine one. `scores`: the genuine, of nodes that can be had."""
    if bool(genuine.node) != bool(berth.node):
        return [f"placeable: genuine {genuine.text()} | berth {berth.text()}"]
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
