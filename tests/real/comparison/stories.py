"""Requests that are made of a seed: valid ones, and such as somebody gets wrong.

A story is a generator in a namespace of its own, about one kind. It yields Requests; what a body is
made of may be the server's own last answer about an object, so that its uid and version are right.
"""

import copy
import dataclasses
import json
import random

import bases

JSON = "application/json"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
}
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@dataclasses.dataclass
class Request:
    method: str
    path: str
    body: object = None  # JSON, text as it is, or a function of what the server said last of it.
    content: str = JSON
    accept: str = JSON
    of: str = ""  # The path whose last object the function gets.
    watch: bool = False
    valid: bool = False  # A client that does nothing wrong.


VALUES = (
    "", "Bad_Value", "x" * 254, "-1", "5", "100m", "1.5", "a b", "é", -1, 0, 1, 70000, 1.5, 2**40, True, None, [], {}, [""], {"a": "b"}, ["a", "a"],
)


def places(value, path=()):
    """Where a value has members: (parent's path, key)."""
    found = []
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        found.append((path, key))
        found += places(value[key], (*path, key))
    return found


def at(value, path):
    for key in path:
        value = value[key]
    return value


class Story:
    def __init__(self, seed, resource=None):
        self.random = random.Random(seed)
        self.resource = resource or self.random.choice(sorted(bases.BASES))
        self.version, self.kind, self.namespaced, self.rest = bases.BASES[self.resource]
        self.namespace = f"cmp-{seed}"
        self.seed = seed
        root = f"/api/{self.version}" if "/" not in self.version else f"/apis/{self.version}"
        plural = self.resource.partition(".")[0]
        self.collection = f"{root}/namespaces/{self.namespace}/{plural}" if self.namespaced else f"{root}/{plural}"
        self.custom = self.version.startswith(bases.GROUP + "/")
        self.made = []
        self.count = 0

    # -------------------------------------------------------------------------- objects

    def object(self, name=None):
        name = name or f"cmp-{self.seed}-{self.count}"
        self.count += 1
        metadata = {"name": name, "labels": dict(bases.LABELS) | {"story": str(self.seed)}}
        if self.namespaced:
            metadata["namespace"] = self.namespace
        made = {"apiVersion": self.version, "kind": self.kind, "metadata": metadata} | copy.deepcopy(self.rest)
        variants = bases.VARIANTS.get(self.resource, ())
        if variants and self.random.random() < 0.6:
            made |= copy.deepcopy(self.random.choice(variants))
        made = {key: value for key, value in made.items() if value is not None}
        about = made.get("involvedObject", made.get("regarding"))
        if about is not None:
            about["namespace"] = self.namespace
        return made

    def spoil(self, made, times=1):
        """Something of it goes, is another value, or there is something more."""
        made = copy.deepcopy(made)
        for _ in range(times):
            inside = [(p, k) for p, k in places(made) if k not in ("apiVersion", "kind") and "name" != k or len(p) > 1]
            if not inside:
                break
            path, key = self.random.choice(inside)
            parent = at(made, path)
            what = self.random.random()
            if what < 0.2:
                del parent[key]
            elif what < 0.75:
                parent[key] = copy.deepcopy(self.random.choice(VALUES))
            elif what < 0.85 and isinstance(parent, dict):
                parent["unknown" + str(key)] = copy.deepcopy(self.random.choice(VALUES))
            elif isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            else:
                parent[key] = copy.deepcopy(self.random.choice(VALUES))
        return made

    def spoil_metadata(self, made):
        made = copy.deepcopy(made)
        metadata = made["metadata"]
        choose = self.random.choice
        bad = {
            "name": ["", "Upper", "a_b", "-a", "a.b", "x" * 254, 5, None],
            "namespace": ["other", "", 5],
            "labels": [{"a b": "c"}, {"a": "x" * 64}, {"a": 5}, {"/a": "b"}, {"a": None}, "x", {"example.com/a/b": "c"}],
            "annotations": [{"a b": "c"}, {"a": "x" * 300000}, {"a": True}, {"A/b": "c"}],
            "finalizers": [["a"], ["example.com/a"], ["foregroundDeletion"], [""], "a"],
            "ownerReferences": [
                [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u"}],
                [{"apiVersion": "v1", "kind": "Pod", "name": "a"}],
                [{"apiVersion": "", "kind": "", "name": "", "uid": ""}],
                [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": True}] * 2,
                [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}],
            ],
            "generateName": ["gen-", "Gen_", "x" * 300],
            "resourceVersion": ["1", "abc", 5],
            "uid": ["11111111-2222-3333-4444-555555555555"],
            "generation": [7, -1],
            "creationTimestamp": ["2020-01-01T00:00:00Z", "yesterday", None],
            "deletionTimestamp": ["2020-01-01T00:00:00Z"],
            "selfLink": ["/x"],
            "unknown": ["x"],
        }
        key = choose(sorted(bad))
        metadata[key] = choose(bad[key])
        if key == "generateName":
            metadata.pop("name", None)
        return made

    # -------------------------------------------------------------------------- requests

    def create(self, made, query="", **more):
        return Request("POST", self.collection + query, made, **more)

    def begin(self):
        yield Request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}, valid=True)
        yield Request(
            "POST",
            f"/api/v1/namespaces/{self.namespace}/serviceaccounts",
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}},
            valid=True,
        )

    def path_of(self, made):
        return f"{self.collection}/{made['metadata']['name']}"

    def fresh(self):
        made = self.object()
        self.made.append(self.path_of(made))
        return self.create(made, valid=True)

    def requests(self, count):
        yield from self.begin()
        yield self.fresh()
        actions = [
            (6, self.wrong_create), (3, self.metadata_create), (2, self.validated_create), (2, self.odd_create),
            (3, self.reads), (3, self.lists), (4, self.puts), (5, self.patches), (5, self.applies), (2, self.subresources), (2, self.deletes),
            (1, self.again),
        ]
        for _ in range(count):
            yield from self.random.choices([a for _, a in actions], [w for w, _ in actions])[0]()
        yield Request("GET", f"{self.collection}?labelSelector=story%3D{self.seed}", valid=True)
        yield Request(
            "GET", f"{self.collection}?watch=true&timeoutSeconds=1&labelSelector=story%3D{self.seed}&resourceVersion=", watch=True, valid=True
        )

    def again(self):
        yield self.fresh()

    def wrong_create(self):
        yield self.create(self.spoil(self.object(), self.random.choice((1, 1, 1, 2))))

    def metadata_create(self):
        yield self.create(self.spoil_metadata(self.object()))

    def validated_create(self):
        made = self.object()
        path, key = self.random.choice([(p, k) for p, k in places(made) if isinstance(at(made, p), dict)])
        text = json.dumps(made)
        if self.random.random() < 0.5:
            at(made, path)["extra"] = self.random.choice(VALUES)
            text = json.dumps(made)
        if self.random.random() < 0.6:
            member = f'"kind": "{self.kind}"'
            text = text.replace(member, member + ", " + member, 1)
        mode = self.random.choice(("Strict", "Warn", "Ignore", "Wrong", ""))
        dry = self.random.choice(("", "&dryRun=All", "&dryRun=Some", "&fieldManager=me"))
        yield self.create(text, f"?fieldValidation={mode}{dry}")

    def odd_create(self):
        made = self.object()
        choose = self.random.choice
        yield choose(
            (
                lambda: self.create("{"),
                lambda: self.create(""),
                lambda: self.create("[]"),
                lambda: self.create("null"),
                lambda: self.create('"x"'),
                lambda: self.create({}),
                lambda: self.create(made | {"kind": "Other"}),
                lambda: self.create(made | {"apiVersion": "other/v1"}),
                lambda: self.create(made | {"kind": 5}),
                lambda: self.create({k: v for k, v in made.items() if k != "kind"}),
                lambda: self.create({k: v for k, v in made.items() if k != "apiVersion"}),
                lambda: self.create({k: v for k, v in made.items() if k != "metadata"}),
                lambda: self.create(made, content="text/plain"),
                lambda: self.create(made, content="application/xml"),
                lambda: self.create(made, content=""),
                lambda: self.create(json.dumps(made), content="application/yaml"),
                lambda: self.create(made, accept="text/html"),
                lambda: self.create(made, accept=TABLE, query="?dryRun=All"),
                lambda: self.create(made, accept="*/*", query="?dryRun=All"),
                lambda: Request("PUT", self.collection, made),
                lambda: Request("PATCH", self.collection, {}, PATCHES["merge"]),
                lambda: Request("POST", self.path_of(made), made),
                lambda: Request("GET", self.collection + "/a/b/c"),
                lambda: Request("GET", self.collection + "/a/nothing"),
                lambda: Request("OPTIONS", self.collection),
                lambda: Request("HEAD", self.collection),
            )
        )()

    def some(self):
        """An object that is there, or was."""
        return self.random.choice(self.made) if self.random.random() < 0.93 else f"{self.collection}/missing"

    def reads(self):
        query = self.random.choice(("", "", "?resourceVersion=0", "?pretty=true", "?resourceVersion=abc"))
        yield Request("GET", self.some() + query, accept=self.random.choice((JSON, JSON, TABLE, PARTIAL, PARTIALS, "application/yaml", "*/*")), valid=not query)

    def lists(self):
        story = f"story%3D{self.seed}"
        query = self.random.choice(
            (
                f"labelSelector={story}",
                f"labelSelector={story}%2Capp%20in%20(a%2Cb)",
                f"labelSelector={story}%2C!tier",
                "labelSelector=a%20b%20c",
                "labelSelector=app%20in",
                "labelSelector=app%3D" + "x" * 64,
                f"labelSelector={story}&fieldSelector=metadata.name%3Dcmp-{self.seed}-0",
                f"labelSelector={story}&fieldSelector=metadata.name!%3Dcmp-{self.seed}-0",
                "fieldSelector=spec.nothing%3Dx",
                "fieldSelector=metadata.name",
                f"labelSelector={story}&limit=1",
                f"labelSelector={story}&limit=-1",
                "limit=x",
                f"labelSelector={story}&continue=abc",
                f"labelSelector={story}&resourceVersion=0",
                f"labelSelector={story}&resourceVersion=0&resourceVersionMatch=Exact",
                f"labelSelector={story}&resourceVersionMatch=Exact",
                f"labelSelector={story}&resourceVersion=1&resourceVersionMatch=Other",
                "watch=true&resourceVersion=abc",
                "watch=true&sendInitialEvents=true",
                "watch=true&timeoutSeconds=x",
                f"labelSelector={story}&timeoutSeconds=5",
            )
        )
        yield Request("GET", f"{self.collection}?{query}", accept=self.random.choice((JSON, JSON, TABLE, PARTIALS)))

    def puts(self):
        path = self.some()
        choose = self.random.random()
        seed = self.random.random()

        def change(last):
            made = copy.deepcopy(last)
            metadata = made.setdefault("metadata", {})
            if choose < 0.25:
                metadata.setdefault("labels", {})["new"] = "label"
            elif choose < 0.3:
                metadata.pop("resourceVersion", None)
                metadata.setdefault("annotations", {})["new"] = "note"
            elif choose < 0.35:
                metadata["resourceVersion"] = "1"
            elif choose < 0.4:
                metadata["uid"] = "11111111-2222-3333-4444-555555555555"
            elif choose < 0.45:
                metadata["name"] = "another"
            elif choose < 0.5:
                metadata["namespace"] = "another"
            elif choose < 0.55:
                metadata["finalizers"] = ["example.com/wait"]
            elif choose < 0.6:
                metadata.pop("finalizers", None)
            elif choose < 0.65:
                metadata["creationTimestamp"] = None
                metadata["generation"] = 77
            else:
                # The same for both servers.
                held, self.random = self.random, random.Random(seed)
                made = self.spoil(made)
                self.random = held
            return made

        query = "?dryRun=All" if self.random.random() < 0.1 else ""
        yield Request("PUT", path + query, change, of=path, valid=choose < 0.25)

    def patch_of(self, kind):
        """A patch, and whether nothing is wrong with it."""
        choose = self.random.choice
        if kind == "json":
            return choose(
                (
                    ([{"op": "add", "path": "/metadata/labels/new", "value": "x"}], True),
                    ([{"op": "remove", "path": "/metadata/labels/tier"}], False),
                    ([{"op": "test", "path": "/metadata/labels/app", "value": "b"}], False),
                    ([{"op": "replace", "path": "/metadata/nothing", "value": "b"}], False),
                    ([{"op": "wrong", "path": "/metadata/labels/app"}], False),
                    ([{"op": "copy", "from": "/metadata/labels/app", "path": "/metadata/labels/copy"}], False),
                    ([{"op": "replace", "path": "/metadata/name", "value": "b"}], False),
                    ([{"op": "add", "path": "/spec/unknown", "value": 1}], False),
                    ({"op": "add"}, False),
                    ("[", False),
                )
            )
        if choose((True, False, False)):
            return choose(
                (
                    ({"metadata": {"labels": {"new": "x"}}}, True),
                    ({"metadata": {"annotations": {"note": "x", "other": None}}}, True),
                    ({"metadata": {"labels": {"tier": None}}}, True),
                    ({"metadata": {"labels": None}}, False),
                    ({"metadata": {"resourceVersion": "1"}}, False),
                    ({"metadata": {"uid": "x"}}, False),
                    ({"metadata": {"finalizers": ["example.com/wait"]}}, True),
                    ({"metadata": {"finalizers": None}}, True),
                    ({"metadata": {"$patch": "replace", "name": "x"}}, False),
                    ({"kind": "Other"}, False),
                    ([], False),
                    ("{", False),
                    ("", False),
                    ({}, True),
                )
            )
        spoiled = self.spoil(copy.deepcopy(self.rest) or {"metadata": {}}) if self.rest else {"spec": {"x": 1}}
        return spoiled, False

    def patches(self):
        kind = self.random.choice(sorted(PATCHES))
        body, valid = self.patch_of(kind)
        content = PATCHES[kind] if self.random.random() < 0.95 else self.random.choice((JSON, "text/plain", ""))
        query = self.random.choice(("", "", "", "?fieldValidation=Strict", "?dryRun=All", "?fieldManager=" + "x" * 200, "?force=true"))
        yield Request("PATCH", self.some() + query, body, content, valid=valid and not query and not (self.custom and kind == "strategic"))

    def applied(self, path):
        """What somebody applies, and whether nothing is wrong with it."""
        made = self.object(path.rpartition("/")[2])
        what = self.random.random()
        if what < 0.25:
            return made, True
        if what < 0.45:
            return {k: made[k] for k in ("apiVersion", "kind")} | {"metadata": {"name": made["metadata"]["name"], "labels": {"applied": self.random.choice("ab")}}}, True
        if what < 0.6:
            made["metadata"]["labels"] = {"applied": self.random.choice("abc")}
            made["metadata"]["annotations"] = {"applied": self.random.choice("abc")}
            return made, True
        if what < 0.7:
            return self.spoil_metadata(made), False
        return self.spoil(made, self.random.choice((1, 1, 2))), False

    def applies(self):
        path = self.some() if self.random.random() < 0.8 else f"{self.collection}/cmp-{self.seed}-applied"
        body, valid = self.applied(path)
        manager = self.random.choice(("one", "one", "two", "kubectl"))
        query = self.random.choice(("", "", "&force=true", "&force=true", "&dryRun=All", "&fieldValidation=Strict", "&force=x"))
        yield Request("PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY, valid=valid and query != "&force=x")

    def subresources(self):
        path = self.some()
        choose = self.random.choice
        options = []
        if self.resource in bases.HAVE_STATUS:
            options += [
                lambda: Request("GET", path + "/status", valid=True),
                lambda: Request("PATCH", path + "/status", {"metadata": {"labels": {"by": "status"}}}, PATCHES["merge"], valid=True),
                lambda: Request("PATCH", path + "/status", {"status": choose(VALUES)}, PATCHES["merge"]),
                lambda: Request("PATCH", path + "/status", {"spec": {"replicas": 9}, "status": {"replicas": choose((1, -1, "x"))}}, PATCHES["merge"]),
                lambda: Request(
                    "PATCH",
                    path + "/status",
                    {"status": {"conditions": [{"type": "Ready", "status": choose(("True", "Maybe", "")), "reason": "R", "message": "m"}]}},
                    PATCHES["strategic"],
                ),
                lambda: Request("PUT", path + "/status", lambda last: last | {"status": {}}, of=path),
                lambda: Request("PATCH", path + "/status?fieldManager=one", self.object(path.rpartition("/")[2]) | {"status": {}}, APPLY),
            ]
        if self.resource in bases.HAVE_SCALE:
            options += [
                lambda: Request("GET", path + "/scale", valid=True),
                lambda: Request("PATCH", path + "/scale", {"spec": {"replicas": choose((0, 5, -1, "x"))}}, PATCHES["merge"]),
                lambda: Request("PUT", path + "/scale", {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": path.rpartition("/")[2], "namespace": self.namespace}, "spec": {"replicas": choose((0, 5, 2000))}}),
            ]
        if self.resource in bases.HAVE_SCALE and not self.custom:
            # That of a user's object can't be applied there, or leaves managedFields of nobody.
            options += [
                lambda: Request(
                    "PATCH",
                    path + "/scale?fieldManager=one&force=" + choose(("true", "false")),
                    {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": path.rpartition("/")[2]}, "spec": {"replicas": choose((0, 1, 5))}},
                    APPLY,
                ),
            ]
        if self.resource == "pods":
            target = {"apiVersion": "v1", "kind": "Node", "name": choose(("n", "", "N_"))}
            options += [
                lambda: Request("POST", path + "/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": path.rpartition("/")[2]}, "target": target}),
                lambda: self.debugs(path),
                lambda: self.resizes(path),
                lambda: Request("POST", path + "/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": path.rpartition("/")[2]}}, valid=True),
            ]
        options.append(lambda: Request("GET", path + "/wrong"))
        yield choose(options)()

    def debugs(self, path):
        """What `kubectl debug` sends, or nearly."""
        choose = self.random.choice
        made = {"name": choose(("debugger", "other", "c", "D_")), "image": "busybox", "stdin": True, "targetContainerName": choose(("c", "c", "none"))}
        what = choose(("", "", "name", "ports", "resources", "restartPolicy", "livenessProbe", "volumeMounts", "unknown"))
        if what == "name":
            del made["name"]
        elif what:
            wrong = {
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "1"}},
                "restartPolicy": "Always",
                "livenessProbe": {"exec": {"command": ["true"]}},
                "volumeMounts": [{"name": choose(("scratch", "none")), "mountPath": "/a", "subPath": "b"}],
                "unknown": 1,
            }
            made[what] = wrong[what]
        body = {"metadata": {"labels": {"ignored": "too"}}, "spec": {"ephemeralContainers": [made]}}
        content = PATCHES[choose(("strategic", "strategic", "strategic", "merge"))]
        return Request("PATCH", path + "/ephemeralcontainers", body, content)

    def resizes(self, path):
        choose = self.random.choice
        amounts = {choose(("cpu", "memory", "cpu", "ephemeral-storage")): choose(("200m", "96Mi", "2", None, "-1"))}
        made = {"name": choose(("c", "c", "c", "d")), "resources": {choose(("requests", "requests", "limits")): amounts}}
        what = choose(("", "", "image", "policy"))
        if what == "image":
            made["image"] = "other"
        if what == "policy":
            made["resizePolicy"] = [{"resourceName": choose(("cpu", "gpu")), "restartPolicy": choose(("NotRequired", "Wrong"))}]
        spec = {"containers": [made]} if self.random.random() < 0.8 else {"resources": {"requests": amounts}}
        return Request("PATCH", path + "/resize", {"spec": spec}, PATCHES[choose(("strategic", "strategic", "merge"))])

    def deletes(self):
        path = self.some()
        options = self.random.choice(
            (
                None,
                {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"},
                {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Wrong"},
                {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"},
                {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan", "orphanDependents": True},
                {"preconditions": {"uid": "x"}},
                {"preconditions": {"resourceVersion": "1"}},
                {"dryRun": ["All"]},
                {"dryRun": ["Some"]},
                {"gracePeriodSeconds": 0},
                {"gracePeriodSeconds": -5},
                {"gracePeriodSeconds": "x"},
                {"kind": "Pod"},
                "{",
            )
        )
        yield Request("DELETE", path, options, valid=options is None)
        yield Request("GET", path, valid=True)
