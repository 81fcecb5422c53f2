"""Answers without what may differ: times, uids, versions, generated names."""

import json
import re

import bases

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# Addresses of Services, of which each server has a range of its own.
ADDRESS = re.compile(r"\b10\.(0\.0|96\.\d+)\.\d+\b")
AGE = re.compile(r"\d+s")
# The version that a message names.
RECORD = re.compile(r"in (record \(|object meta: )\d+\b")
PLACE = re.compile(r" \(line \d+, column \d+, offset \d+\)")
# A whole object within a message, which has all of these in it again.
OBJECT = re.compile(r'"\{\\"(addressType|apiVersion|kind|metadata)\\".*\}"')
# Of one value. What tells a known difference may stand behind much else.
SHOWN_MAX = 4000
HEADERS = ("content-type", "warning")


class Names:
    """What one server calls the things of a story, by the order in which they appear."""

    def __init__(self):
        self.uids = {}
        self.prefixes = set()

    def expect(self, body):
        """A request that has a name generated: which random end that gets is no difference."""
        metadata = body.get("metadata")
        prefix = metadata.get("generateName") if isinstance(metadata, dict) else None
        if isinstance(prefix, str) and prefix:
            self.prefixes.add(prefix[:58])

    def uid(self, found):
        return f"<uid {self.uids.setdefault(found.group(), len(self.uids) + 1)}>"

    def text(self, text):
        text = ADDRESS.sub("<address>", TIME.sub("<time>", UID.sub(self.uid, text)))
        # Of JSON that can't be read berth says where, besides.
        text = PLACE.sub("", text)
        text = RECORD.sub(r"in \1<version>", OBJECT.sub('"<object>"', text))
        for prefix in self.prefixes:
            text = re.sub(re.escape(prefix) + r"[a-z0-9]{5}\b", prefix + "<generated>", text)
        return text

    def value(self, value, key=""):
        if isinstance(value, dict):
            # Descriptions of columns are Kubernetes' own sentences.
            dropped = ("description",) if key == "columnDefinitions" else ()
            made = {k: self.value(v, k) for k, v in value.items() if k not in dropped}
            # Objects with a random end stand in a list in an order of their own.
            if str(made.get("name", "")).endswith("<generated>") and "uid" in made:
                made["uid"] = "<uid>"
            return made
        if isinstance(value, list):
            # Where a random name stands is no difference.
            value = sorted(value, key=has_uid_for_name) if key in ("items", "rows") else value
            made = [self.value(v, key) for v in value]
            # They stand by their time first, and a second may end between two writes to one server.
            return sorted(made, key=manager_of) if key == "managedFields" else made
        if not isinstance(value, str):
            return value
        if key == "resourceVersion":
            return "<version>" if value not in ("", "0") else value
        if key == "continue":
            return "<continue>" if value else value
        if key == "cells" and AGE.fullmatch(value):
            return "<age>"
        return self.text(value)


def has_uid_for_name(item):
    """Whether the server named the object, or that of a table's row, as a LimitRange without a name."""
    known = item if isinstance(item, dict) else {}
    known = known.get("object", known)
    metadata = known.get("metadata") if isinstance(known, dict) else None
    return isinstance(metadata, dict) and UID.fullmatch(str(metadata.get("name"))) is not None


def manager_of(entry):
    """What tells managed fields of one object apart."""
    known = entry if isinstance(entry, dict) else {}
    return [str(known.get(key, "")) for key in ("operation", "manager", "subresource", "apiVersion")]


def of_answer(answer, names):
    """What is compared of it: a dict."""
    headers = {k.lower(): v for k, v in answer.headers.items()}
    made = {"code": answer.status}
    for name in HEADERS:
        if name in headers:
            made[name] = names.text(headers[name])
    try:
        made["body"] = names.value(json.loads(answer.body))
    except ValueError:
        # The order of members differs, and this is what people read.
        if made.get("content-type") == "application/yaml":
            return made
        made["body"] = names.text(answer.body[:2000].decode(errors="replace"))
    return made


def shown(value):
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


ABSENT = object()


def differences(real, berth, path=""):
    """One line per place where they differ."""
    if isinstance(real, dict) and isinstance(berth, dict):
        return [
            line
            for key in sorted(real.keys() | berth.keys())
            for line in differences(real.get(key, ABSENT), berth.get(key, ABSENT), f"{path}.{key}" if path else key)
        ]
    if isinstance(real, list) and isinstance(berth, list) and len(real) == len(berth):
        return [line for i, (a, b) in enumerate(zip(real, berth)) for line in differences(a, b, f"{path}[{i}]")]
    if isinstance(real, list) and isinstance(berth, list):
        # Where the first of them differ says more than two whole lists.
        found = [line for i, (a, b) in enumerate(zip(real, berth)) for line in differences(a, b, f"{path}[{i}]")]
        return [f"{path}: genuine {len(real)} items | berth {len(berth)} items", *found[:1]]
    if real == berth and type(real) is type(berth):
        return []
    tell = lambda v: "(nothing)" if v is ABSENT else shown(v)  # noqa: E731
    return [f"{path}: genuine {tell(real)} | berth {tell(berth)}"]


def is_status(answer):
    return isinstance(answer.get("body"), dict) and answer["body"].get("kind") == "Status"


def said(answer):
    body = answer.get("body", "")
    return f"{answer['code']} {shown(body['message'] if is_status(answer) and 'message' in body else body)}"


def once(answer):
    """The answer without causes that are there before, in the same words."""
    details = answer["body"].get("details") if is_status(answer) else None
    if not isinstance(details, dict) or "causes" not in details:
        return answer
    causes = [cause for i, cause in enumerate(details["causes"]) if cause not in details["causes"][:i]]
    return answer | {"body": answer["body"] | {"details": details | {"causes": causes}}}


PROBLEMS = re.compile(r"(\w+\.%s \"\S*\" is invalid: )\[(.*)\]" % re.escape(bases.GROUP), re.DOTALL)


def in_order(answer):
    """The answer with its problems in an order: of users' kinds upstream has none."""
    found = PROBLEMS.fullmatch(answer["body"].get("message", "")) if is_status(answer) else None
    if not found:
        return answer
    message = found[1] + str(sorted(re.split(r", (?=\.?\w[\w.\[\]]*: )", found[2])))
    details = answer["body"]["details"]
    causes = sorted(details.get("causes", []), key=lambda cause: json.dumps(cause, sort_keys=True))
    return answer | {"body": answer["body"] | {"message": message, "details": details | {"causes": causes}}}


def compare(real, berth):
    """The differences of two answers. What only follows from another one is left out: the bodies of
    different codes, and the causes of different messages, which are made of them."""
    if real["code"] != berth["code"]:
        return [f"code: genuine {said(real)} | berth {said(berth)}"]
    real, berth = in_order(once(real)), in_order(once(berth))
    found = differences(real, berth)
    if is_status(real) and is_status(berth) and real["body"].get("message") != berth["body"].get("message"):
        found = [line for line in found if not line.startswith("body.details.causes")]
    return found


def in_fact(real, lines):
    """Whether answers with these differences differ in more than the words in which both refuse."""
    if real["code"] < 400:
        return True
    return any(not re.match(r"(body\.(message|details)|warning)\b", line) for line in lines)


def parts(real, berth, request_is_write):
    """Whether the two servers hold different objects from here on."""
    if not request_is_write:
        return False
    if real["code"] // 100 != berth["code"] // 100:
        return True
    return real["code"] < 300 and any(line.startswith("body") for line in differences(real, berth))
