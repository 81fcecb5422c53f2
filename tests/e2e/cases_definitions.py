"""Users' own kinds: what definitions may say, what becomes of their names, and how they end."""

import base64
import hashlib
import json

import objects
from harness import case

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(test, plural, kind, group, schema=None, **names):
    """A definition with one version, that goes with the test."""
    schema = schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    name = f"{plural}.{group}"
    test.cleanups.append(lambda: test.http("DELETE", f"{DEFINITIONS}/{name}"))
    return {
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind} | names,
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def with_spec(**properties):
    return {"type": "object", "properties": {"spec": {"type": "object"} | properties}}


@case("rules of users' schemas that are no expressions are refused where they break off")
def rules(test):
    group = f"{test.namespace}.e2e.test"
    at = r"spec.validation.openAPIV3Schema.properties\[spec\].x-kubernetes-validations\[0\]"
    rows = [
        ({"rule": "self.a >"},
         rf"{at}.rule: Invalid value: .*: compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'"),
        ({"rule": "(self.a"}, rf"{at}.rule: Invalid value: .*: ERROR: <input>:1:8: Syntax error: missing '\)' at '<EOF>'"),
        ({"rule": "has(self)"}, rf"{at}.rule: Invalid value: .*: ERROR: <input>:1:5: invalid argument to has\(\) macro"),
        ({"rule": "true", "messageExpression": "'a' +"},
         rf"{at}.messageExpression: Invalid value: .*: messageExpression compilation failed: ERROR: <input>:1:6: Syntax"),
        ({"rule": "true", "messageExpression": " "},
         rf"{at}.messageExpression: Required value: messageExpression must be non-empty if specified"),
        ({"rule": "true", "fieldPath": ".b"}, rf'{at}.fieldPath: Invalid value: "\.b": must be a valid path'),
        ({"rule": "true", "optionalOldSelf": True},
         rf"{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"),
    ]
    for rule, words in rows:
        schema = with_spec(properties={"a": {"type": "string", "maxLength": 9}}, **{"x-kubernetes-validations": [rule]})
        answer = test.http("POST", DEFINITIONS, definition(test, "as", "A", group, schema), status=422)
        test.match(words, answer.message, rule)
    fine = {"rule": "has(self.a) ? self.a.matches(r'^\\w+$') : true", "messageExpression": "'not ' + self.a", "fieldPath": ".a"}
    schema = with_spec(properties={"a": {"type": "string", "maxLength": 9}}, **{"x-kubernetes-validations": [fine]})
    test.create(DEFINITIONS, definition(test, "as", "A", group, schema))


@case("texts of users' schemas are of their formats")
def formats(test):
    group = f"{test.namespace}.e2e.test"
    rows = {
        "uri": ("https://a.example/b?c", "a b"),
        "email": ("Jo <jo@a.example>", "jo@"),
        "hostname": ("a.example", "a_b.example"),
        "isbn10": ("0-8044-2957-X", "0804429570"),
        "isbn13": ("978-0321751041", "9780321751042"),
        "creditcard": ("4111 1111 1111 1111", "4111 1111 1111 1112"),
        "rgbcolor": ("rgb(0, 128, 255)", "rgb(0,128,256)"),
    }
    properties = {name: {"type": "string", "format": name} for name in rows}
    test.create(DEFINITIONS, definition(test, "bs", "B", group, with_spec(properties=properties)))
    path = test.path("bs", group=f"{group}/v1")
    test.wait("it is served", lambda: test.http("GET", path).status == 200)
    made = {"apiVersion": f"{group}/v1", "kind": "B", "metadata": {"name": "b"}}
    test.create(path, made | {"spec": {name: good for name, (good, _) in rows.items()}})
    for name, (_, bad) in rows.items():
        answer = test.http("POST", path, made | {"spec": {name: bad}}, status=422)
        told = f'spec.{name}: Invalid value: "{bad}": spec.{name} in body must be of type {name}: "{bad}"'
        test.equal(answer.message, f'B.{group} "b" is invalid: {told}', name)


@case("a definition has the names that nobody has, and ends after its objects", seconds=3)
def names(test):
    group = f"{test.namespace}.e2e.test"
    first, second = f"{DEFINITIONS}/cs.{group}", f"{DEFINITIONS}/ds.{group}"
    test.create(DEFINITIONS, definition(test, "cs", "C", group, singular="c", shortNames=["x"]))
    told = lambda path, kind: objects.condition(test.get(path), kind)
    test.wait("it has its names", lambda: told(first, "Established").get("status") == "True")
    test.create(DEFINITIONS, definition(test, "ds", "D", group, singular="c", shortNames=["x", "y"]))
    test.wait("it lacks some", lambda: told(second, "NamesAccepted").get("reason") == "ShortNamesConflict")
    test.equal(told(second, "NamesAccepted")["message"], '"x" is already in use', "conflict")
    test.equal(told(second, "Established")["reason"], "NotAccepted", "established")
    accepted = test.get(second)["status"]["acceptedNames"]
    test.equal(accepted, {"plural": "ds", "kind": "D", "listKind": "DList"}, "names")
    test.equal(test.get(first)["metadata"].get("finalizers"), None, "finalizers")
    path = test.path("cs", group=f"{group}/v1")
    test.wait("it is served", lambda: test.http("GET", path).status == 200)
    made = {"apiVersion": f"{group}/v1", "kind": "C", "metadata": {"name": "c", "finalizers": ["x.test/1"]}}
    test.create(path, made)
    gone = test.http("DELETE", first, status=200).json()
    test.equal(gone["metadata"]["finalizers"], ["customresourcecleanup.apiextensions.k8s.io"], "finalizers")
    test.equal(objects.condition(gone, "Terminating")["reason"], "InstanceDeletionPending", "what it waits for")
    test.wait("it is at it", lambda: told(first, "Terminating").get("reason") == "InstanceDeletionInProgress")
    made["metadata"]["name"] = "d"
    answer = test.http("POST", path, made, status=403)
    told_no = "create not allowed while custom resource definition is terminating"
    test.equal(answer.message, f'cs.{group} "d" is forbidden: {told_no}', "refusal")
    test.merge(f"{path}/c", {"metadata": {"finalizers": None}})
    test.wait("it is gone", lambda: not test.exists(first))
    test.wait("its names are free", lambda: told(second, "Established").get("status") == "True")


def served(test, made):
    """Makes a definition and waits until its kind is served; the path of its objects and what each begins with."""
    test.create(DEFINITIONS, made)
    group, names = made["spec"]["group"], made["spec"]["names"]
    path = test.path(names["plural"], group=f"{group}/v1")
    test.wait("it is served", lambda: test.http("GET", path).status == 200)
    # And discovered, and in the server's documents.
    documents = f"/openapi/v3/apis/{group}/v1"
    test.wait("it is told of", lambda: test.http("GET", documents).status == 200)
    return path, {"apiVersion": f"{group}/v1", "kind": names["kind"]}


@case("what the scale of a user's kind shows is checked where the kind keeps it", seconds=2)
def custom_scale(test):
    group = f"{test.namespace}.e2e.test"
    made = definition(test, "es", "E", group)
    scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n", "labelSelectorPath": ".status.sel"}
    made["spec"]["versions"][0]["subresources"] = {"status": {}, "scale": scale}
    path, head = served(test, made)
    accessor = "Invalid value: 0: .spec.n accessor error: "
    rows = [
        (-1, "Invalid value: -1: should be a non-negative integer"),
        (2**31, "Invalid value: 2147483648: should be less than or equal to 2147483647"),
        (1.5, accessor + "1.5 is of the type float64, expected int64"),
        ("x", accessor + "x is of the type string, expected int64"),
        (None, accessor + "<nil> is of the type <nil>, expected int64"),
    ]
    for value, words in rows:
        answer = test.http("POST", path, head | {"metadata": {"name": "e"}, "spec": {"n": value}}, status=422)
        test.equal(answer.message, f'E.{group} "e" is invalid: .spec.n: {words}', value)
    test.create(path, head | {"metadata": {"name": "e"}})
    merge = {"Content-Type": "application/merge-patch+json"}
    change = lambda part, body, status: test.http("PATCH", f"{path}/e/{part}", json.dumps(body), headers=merge, status=status)
    empty = change("scale", {"metadata": {"labels": {"a": "b"}}}, 400)
    test.equal(empty.message, 'the spec replicas field ".spec.n" cannot be empty', "no number")
    refused = change("scale", {"spec": {"replicas": -7}}, 422)
    test.equal(refused.message, f'E.{group} "e" is invalid: .spec.n: Invalid value: -7: should be a non-negative integer', "scale")
    refused = change("status", {"status": {"n": -1, "sel": 5}}, 422).message
    test.match(r"\[.status.n: Invalid value: -1: .*, .status.sel: Invalid value: \"\": .status.sel accessor error: 5 is", refused)
    change("scale", {"spec": {"replicas": 4}}, 200)
    change("status", {"status": {"n": 3, "sel": "a=b"}}, 200)
    shown = test.get(f"{path}/e/scale")
    test.equal((shown["spec"], shown["status"]), ({"replicas": 4}, {"replicas": 3, "selector": "a=b"}), "scale")


@case("the columns of a user's kind show values as they are, and say what they are", seconds=2)
def columns(test):
    group = f"{test.namespace}.e2e.test"
    made = definition(test, "fs", "F", group)
    made["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": "Text", "type": "string", "jsonPath": ".spec.a", "description": "my text"},
        {"name": "Count", "type": "integer", "jsonPath": ".spec.a"},
        {"name": "Share", "type": "number", "jsonPath": ".spec.a"},
    ]
    path, head = served(test, made)
    rows = [
        (1.5, ["1.5", 1, 1.5]),
        (None, ["<no value>", None, None]),
        ({"b": [0.5, "<"]}, ['{"b":[0.5,"\\u003c"]}', None, None]),
        (7, ["7", 7, 7]),
        ("7", ["7", None, None]),
    ]
    for i, (value, _) in enumerate(rows):
        test.create(path, head | {"metadata": {"name": f"f{i}"}, "spec": {"a": value}})
    table = test.http("GET", path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}, status=200).json()
    test.equal([row["cells"][1:] for row in table["rows"]], [cells for _, cells in rows], "cells")
    told = [column["description"] for column in table["columnDefinitions"][1:]]
    by_path = "Custom resource definition column (in JSONPath format): .spec.a"
    test.equal(told, ["my text", by_path, by_path], "descriptions")


@case("of schemas of which none fits it is told what the best one misses, at the root, too", seconds=2)
def combined(test):
    group = f"{test.namespace}.e2e.test"
    one = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "oneOf": [{"required": ["a"]}, {"required": ["b"], "properties": {"b": {"minimum": 5}}}],
    }
    root = {"type": "object", "properties": {"one": one, "two": {"type": "string"}}, "anyOf": [{"required": ["one"]}, {"required": ["two"]}]}
    path, head = served(test, definition(test, "gs", "G", group, root))
    none = '<nil>: Invalid value: "": "one" must validate one and only one schema (oneOf). Found none valid'
    rows = [
        ({}, '[<nil>: Invalid value: "": "" must validate at least one schema (anyOf), one: Required value]'),
        ({"one": {}}, f"[{none}, one.a: Required value]"),
        ({"one": {"b": 1}}, f"[{none}, one.b: Invalid value: 1: one.b in body should be greater than or equal to 5]"),
    ]
    for body, words in rows:
        answer = test.http("POST", path, head | {"metadata": {"name": "g"}} | body, status=422)
        test.equal(answer.message, f'G.{group} "g" is invalid: {words}', body)
    test.create(path, head | {"metadata": {"name": "g"}, "one": {"b": 5}})


@case("lists have schemas of their own, and a user's kind the hash of what it is stored as", seconds=2)
def list_schemas(test):
    group = f"{test.namespace}.e2e.test"
    _, head = served(test, definition(test, "hs", "H", group, listKind="ManyH"))
    backwards = ".".join(reversed(group.split(".")))
    for path, name, kind in (
        ("apis/apps/v1", "io.k8s.api.apps.v1.DeploymentList", "DeploymentList"),
        (f"apis/{group}/v1", f"{backwards}.v1.ManyH", "ManyH"),
    ):
        schema = test.get(f"/openapi/v3/{path}")["components"]["schemas"][name]
        test.equal(schema["required"], ["items"], "required")
        test.equal([each["kind"] for each in schema["x-kubernetes-group-version-kind"]], [kind], "kind")
    stored = hashlib.sha256(f"{group}/v1/H".encode()).digest()[:8]
    (told,) = test.get(f"/apis/{group}/v1")["resources"]
    test.equal(told["storageVersionHash"], base64.b64encode(stored).decode(), "hash")
