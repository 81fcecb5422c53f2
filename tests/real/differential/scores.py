"""What kube-scheduler says of its scores, in the log that --vmodule=schedule_one=10 has it write."""

import collections
import re

FINAL = re.compile(r'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)')
PLUGIN = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)')


class Scores:
    """Reads the log as it grows. {pod: {node: score}}, and by plugin."""

    def __init__(self, path):
        self.path = path
        self.offset = 0
        self.rest = ""
        self.final = collections.defaultdict(dict)
        self.plugins = collections.defaultdict(dict)

    def read(self):
        with open(self.path, errors="replace") as file:
            file.seek(self.offset)
            self.feed(file.read())
            self.offset = file.tell()

    def feed(self, text):
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            if found := FINAL.search(line):
                pod, node, score = found.groups()
                self.final[pod][node] = int(score)
            elif found := PLUGIN.search(line):
                pod, plugin, node, score = found.groups()
                self.plugins[pod][node, plugin] = int(score)

    def forget(self, pod):
        self.final.pop(pod, None)
        self.plugins.pop(pod, None)

    def tell(self, pod, nodes):
        """Per node its score, and of which plugins it is the sum."""
        made = []
        for node in nodes:
            parts = {p: s for (n, p), s in sorted(self.plugins[pod].items()) if n == node}
            made.append(f"{node}: {self.final[pod].get(node)} {parts}")
        return made
