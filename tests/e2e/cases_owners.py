"""Owners and dependents of kinds that users define: what is collected with them, and what is left alone."""

import objects
from harness import RUN, case

CONTROLLERS = ("controllers",)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Custom:
    """A definition of the case's own, and its objects."""

    def __init__(self, test, scope="Namespaced", subresources=None):
        self.test = test
        self.namespaced = scope == "Namespaced"
        self.group = f"{test.unique('owners')}.{scope.lower()}.example.com"
        self.version = f"{self.group}/v1"
        self.definition = f"{DEFINITIONS}/apps.{self.group}"
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        versions = [
            {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v1beta1")
        ]
        if subresources:
            versions = [version | {"subresources": subresources} for version in versions]
        names = {"plural": "apps", "singular": "app", "kind": "App"}
        spec = {"group": self.group, "scope": scope, "names": names, "versions": versions}
        test.create(DEFINITIONS, {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                                  "metadata": {"name": f"apps.{self.group}"}, "spec": spec})
        test.wait("it is served", lambda: test.exists(self.path()))
        self.settle()

    def settle(self):
        """On the genuine server a definition says that it is established before it is served everywhere."""
        probe = {"apiVersion": self.version, "kind": "App", "metadata": {"name": "probe"}}
        self.test.wait("objects are taken", lambda: self.test.http("POST", self.path(), probe).status == 201)
        self.test.http("DELETE", self.path("probe"), status=200)

    def path(self, name="", namespace=None):
        place = f"/namespaces/{namespace or self.test.namespace}" if self.namespaced else ""
        return f"/apis/{self.version}{place}/apps" + (f"/{name}" if name else "")

    def create(self, name, owners=(), namespace=None, finalizers=()):
        metadata = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
        document = {"apiVersion": self.version, "kind": "App", "metadata": metadata}
        return self.test.create(self.path(name="", namespace=namespace), document)

    def drop(self):
        self.test.http("DELETE", self.definition)


def reference(owner, block=False, controller=False, version=None):
    made = {"apiVersion": version or owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"]}
    return made | ({"blockOwnerDeletion": True} if block else {}) | ({"controller": True} if controller else {})


def owned_map(test, name, *owners, finalizers=(), namespace=None):
    made = objects.config_map(name)
    made["metadata"] |= {"ownerReferences": list(owners), "finalizers": list(finalizers)}
    return test.create(test.path("configmaps", namespace=namespace), made)


def there(test, name):
    return test.exists(test.path("configmaps", name))


@case("a custom object takes its deployment, pods and config maps along", needs=RUN, seconds=4)
def background(test):
    custom = Custom(test)
    try:
        owner = custom.create("web")
        deployment = objects.deployment("web", replicas=2)
        deployment["metadata"]["ownerReferences"] = [reference(owner, controller=True, block=True)]
        test.kubectl("create", "-f", "-", stdin=deployment)
        owned_map(test, "settings", reference(owner))
        owned_map(test, "older", reference(owner, version=f"{custom.group}/v1beta1"))
        test.kubectl("rollout", "status", "deploy/web", "--timeout=60s")
        test.stays("all of it is kept", lambda: len(test.pods()) == 2 and there(test, "settings") and there(test, "older"))
        test.http("DELETE", custom.path("web"), status=200)
        test.wait("all of it is gone", lambda: not test.pods() and not there(test, "settings") and not there(test, "older"))
    finally:
        custom.drop()


@case("a custom object deleted in the foreground goes after those that block it", needs=CONTROLLERS, seconds=2)
def foreground(test):
    custom = Custom(test)
    try:
        owner = custom.create("web")
        owned_map(test, "blocks", reference(owner, block=True), finalizers=["e2e.test/hold"])
        owned_map(test, "goes", reference(owner, block=True))
        answer = test.http("DELETE", custom.path("web"), {"propagationPolicy": "Foreground"}, status=200).json()
        test.equal(answer["metadata"]["finalizers"], ["foregroundDeletion"], "finalizers")
        test.wait("the one without a finalizer is gone", lambda: not there(test, "goes"))
        test.stays("the owner waits", lambda: test.exists(custom.path("web")) and there(test, "blocks"))
        test.merge(test.path("configmaps", "blocks"), {"metadata": {"finalizers": None}})
        test.wait("it goes", lambda: not test.exists(custom.path("web")))
        test.true(not there(test, "blocks"), "its dependent outlived it")
    finally:
        custom.drop()


@case("a custom object deleted with its dependents orphaned leaves them", needs=CONTROLLERS, seconds=2)
def orphan(test):
    custom = Custom(test)
    try:
        owner = custom.create("web")
        owned_map(test, "left", reference(owner, block=True))
        custom.create("left", [reference(owner)])
        test.http("DELETE", custom.path("web"), {"propagationPolicy": "Orphan"}, status=200)
        test.wait("it goes", lambda: not test.exists(custom.path("web")))
        for path in (test.path("configmaps", "left"), custom.path("left")):
            test.true("ownerReferences" not in test.get(path)["metadata"], f"{path} has its owner")
        test.stays("they stay", lambda: there(test, "left") and test.exists(custom.path("left")))
    finally:
        custom.drop()


@case("custom objects go with native and custom owners, in chains", needs=CONTROLLERS, seconds=2)
def dependents(test):
    custom = Custom(test)
    try:
        native = owned_map(test, "root")
        middle = custom.create("middle", [reference(native)])
        custom.create("leaf", [reference(middle)])
        owned_map(test, "leaf", reference(middle))
        kept = custom.create("kept")
        custom.create("shared", [reference(middle), reference(kept)])
        test.http("DELETE", test.path("configmaps", "root"), status=200)
        test.wait("the chain goes", lambda: not test.exists(custom.path("middle")) and not test.exists(custom.path("leaf"))
                  and not there(test, "leaf"))
        owners = test.wait("who has another owner loses the one that went", lambda: kept_owners(test, custom))
        test.equal(owners, ["kept"], "owners")
    finally:
        custom.drop()


def kept_owners(test, custom):
    owners = [owner["name"] for owner in test.get(custom.path("shared"))["metadata"]["ownerReferences"]]
    return owners if len(owners) == 1 else None


@case("with a definition go its objects and what they own", needs=CONTROLLERS, seconds=3)
def definition_goes(test):
    custom = Custom(test)
    owner = custom.create("web", finalizers=["e2e.test/hold"])
    owned_map(test, "held", reference(owner))
    other = custom.create("other")
    owned_map(test, "owned", reference(other))
    test.stays("what they own is kept", lambda: there(test, "held") and there(test, "owned"))
    custom.drop()
    test.wait("the one goes", lambda: not test.exists(custom.path("other")) and not there(test, "owned"))
    test.stays("the held one stays, and what it owns", lambda: test.exists(custom.path("web")) and there(test, "held"))
    test.merge(custom.path("web"), {"metadata": {"finalizers": None}})
    test.wait("the definition goes", lambda: not test.exists(custom.definition))
    test.wait("what it owned goes", lambda: not there(test, "held"))


@case("what names an owner of a kind that is not served is left alone, until it is", needs=CONTROLLERS, seconds=3)
def not_served(test):
    group = f"{test.unique('nobody')}.example.com"
    made = {"apiVersion": f"{group}/v1", "kind": "Nothing", "name": "n", "uid": "11111111-2222-3333-4444-555555555555"}
    owned_map(test, "kept", made)
    # An owner that is known to be gone changes nothing while nobody can say what became of the other.
    gone = {"apiVersion": "v1", "kind": "Secret", "name": "s", "uid": "11111111-2222-3333-4444-666666666666"}
    owned_map(test, "both", made, gone)
    test.stays("both are left alone", lambda: there(test, "kept") and owners_count(test, "both") == 2, times=10)
    custom = Custom(test)
    try:
        # A version that is none of its.
        owner = custom.create("web")
        owned_map(test, "odd", reference(owner, version=f"{custom.group}/v7") | {"uid": made["uid"]})
        owned_map(test, "lost", reference(owner) | {"uid": made["uid"]})
        test.wait("who names another uid goes", lambda: not there(test, "lost"))
        test.stays("an unknown version is left alone", lambda: there(test, "odd"))
        # Not even when the uid is right, and what has it goes.
        native = owned_map(test, "native")
        for name, owned in (("custom-version", reference(owner, version=f"{custom.group}/v7")),
                            ("native-version", reference(native, version="v7"))):
            owned_map(test, name, owned, made | {"apiVersion": "v1", "kind": "Secret"})
        test.http("DELETE", custom.path("web"), status=200)
        test.http("DELETE", test.path("configmaps", "native"), status=200)
        test.stays("they are left alone", lambda: all(owners_count(test, name) == 2 for name in ("custom-version", "native-version")), times=10)
    finally:
        custom.drop()


def owners_count(test, name):
    return len(test.get(test.path("configmaps", name))["metadata"]["ownerReferences"])


@case("owners of another namespace are none; what lives in no namespace is left alone", needs=CONTROLLERS, seconds=3)
def namespaces(test):
    custom = Custom(test)
    wide = Custom(test, scope="Cluster")
    elsewhere = test.unique("elsewhere")
    test.make_namespace(elsewhere)
    try:
        far = custom.create("far", namespace=elsewhere)
        owned_map(test, "near", reference(far))
        test.wait("an owner elsewhere is none", lambda: not there(test, "near"))
        test.true(test.exists(custom.path("far", namespace=elsewhere)), "the owner is gone")
        # A cluster-wide object names one that lives in a namespace: nobody can say which.
        wide.create("top", [reference(far)])
        setting = owned_map(test, "setting")
        wide.create("native", [reference(setting)])
        both = [reference(far), reference(setting) | {"uid": "11111111-2222-3333-4444-777777777777"}]
        wide.create("both", both)
        test.stays("it is left alone", lambda: all(test.exists(wide.path(n)) for n in ("top", "native", "both")), times=10)
        # The other way round is how it should be.
        root = wide.create("root")
        owned_map(test, "low", reference(root))
        custom.create("low", [reference(root)], namespace=elsewhere)
        test.stays("a cluster-wide owner counts", lambda: there(test, "low") and test.exists(custom.path("low", namespace=elsewhere)))
        test.http("DELETE", wide.path("root"), status=200)
        test.wait("its own go", lambda: not there(test, "low") and not test.exists(custom.path("low", namespace=elsewhere)))
    finally:
        custom.drop()
        wide.drop()


@case("a definition that is served no more goes with its objects, and others are collected as before", needs=CONTROLLERS, seconds=3)
def served_no_more(test):
    custom = Custom(test)
    owner = owned_map(test, "owner")
    custom.create("web", [reference(owner | {"apiVersion": "v1", "kind": "ConfigMap"})])
    owned_map(test, "owned", reference(owner | {"apiVersion": "v1", "kind": "ConfigMap"}))
    versions = [version | {"served": False} for version in test.get(custom.definition)["spec"]["versions"]]
    test.merge(custom.definition, {"spec": {"versions": versions}})
    test.wait("it is served no more", lambda: not test.exists(custom.path()))
    custom.drop()
    test.wait("the definition goes", lambda: not test.exists(custom.definition))
    test.http("DELETE", test.path("configmaps", "owner"), status=200)
    test.wait("what the owner owned goes", lambda: not there(test, "owned"))


@case("once another version of a kind is served, what names an owner of it that is not there is collected", needs=CONTROLLERS, seconds=3)
def served_later(test):
    custom = Custom(test)
    gone = {"apiVersion": f"{custom.group}/v9", "kind": "App", "metadata": {"name": "gone", "uid": "00000000-0000-4000-8000-000000000000"}}
    owned_map(test, "left", reference(gone))
    test.stays("its owner can't be found", lambda: there(test, "left"))
    versions = test.get(custom.definition)["spec"]["versions"]
    test.merge(custom.definition, {"spec": {"versions": [*versions, versions[0] | {"name": "v9", "storage": False}]}})
    test.wait("it is collected", lambda: not there(test, "left"))


@case("a uid of an object of another kind, name or namespace is no owner, and the last is told of", needs=CONTROLLERS, seconds=5)
def no_owners(test):
    owner = owned_map(test, "owner")
    kept = reference(owner)
    owned_map(test, "kept", kept)
    owned_map(test, "name", kept | {"name": "other"})
    owned_map(test, "kind", kept | {"kind": "Secret"})
    owned_map(test, "group", kept | {"apiVersion": "apps/v1", "kind": "Deployment"})
    elsewhere = test.unique("elsewhere")
    test.make_namespace(elsewhere)
    owned_map(test, "far", kept, namespace=elsewhere)
    far = test.path("configmaps", "far", namespace=elsewhere)
    test.wait("no owner keeps them", lambda: not any(there(test, name) for name in ("name", "kind", "group")) and not test.exists(far))
    test.true(there(test, "kept"), "what its owner keeps is gone")

    def told():
        events = test.get(test.path("events", namespace=elsewhere))["items"]
        return [event["message"] for event in events if event["reason"] == "OwnerRefInvalidNamespace"]

    test.wait("it is told of", told)
    uid = owner["metadata"]["uid"]
    test.equal(told()[0], f"ownerRef [v1/ConfigMap, namespace: {elsewhere}, name: owner, uid: {uid}] does not exist in namespace \"{elsewhere}\"", "message")
