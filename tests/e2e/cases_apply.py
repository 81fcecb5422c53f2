"""Server-side apply: who manages which field, with kubectl and with plain requests."""

import json

import objects
from harness import case

APPLY = {"Content-Type": "application/apply-patch+yaml"}


def deployment(replicas=0, **container):
    document = objects.deployment("web", replicas=replicas)
    document["spec"]["template"]["spec"]["containers"][0] |= container
    return document


def applied(test, document, *options, **more):
    return test.kubectl("apply", "--server-side", *options, "-f", "-", stdin=document, **more)


def managers(document):
    """Manager, operation and subresource of each entry."""
    entries = document["metadata"].get("managedFields", [])
    return [(e["manager"], e["operation"], e.get("subresource", "")) for e in entries]


def fields(document, manager):
    """What the entries of this manager say."""
    entries = document["metadata"].get("managedFields", [])
    return [e["fieldsV1"] for e in entries if e["manager"] == manager]


@case("apply --server-side creates, changes nothing, changes, and removes what is applied no more", each_kubectl=True)
def apply(test):
    path = test.path("configmaps", "a")
    document = objects.config_map("a", {"x": "1", "y": "1"})
    test.equal(applied(test, document).stdout, "configmap/a serverside-applied\n", "output")
    first = test.get(path)
    test.equal(managers(first), [("kubectl", "Apply", "")], "managers")
    test.equal(fields(first, "kubectl"), [{"f:data": {"f:x": {}, "f:y": {}}}], "fields")
    applied(test, document)
    version = test.get(path)["metadata"]["resourceVersion"]
    test.equal(version, first["metadata"]["resourceVersion"], "version after the same again")
    dry = applied(test, objects.config_map("a", {"x": "7"}), "--dry-run=server", "-o", "json")
    test.equal(json.loads(dry.stdout)["data"], {"x": "7"}, "data of the dry run")
    test.equal(test.get(path)["data"], {"x": "1", "y": "1"}, "data after the dry run")
    applied(test, objects.config_map("a", {"x": "2"}))
    test.equal(test.get(path)["data"], {"x": "2"}, "data")


@case("what another manages is a conflict, and --force-conflicts takes it", each_kubectl=True)
def conflicts(test):
    path = test.path("deployments", "web", "apps/v1")
    applied(test, deployment())
    test.kubectl("scale", "deployment/web", "--replicas=1")
    text = test.refused("apply", "--server-side", "-f", "-", stdin=deployment())
    test.match(r'conflict with "kubectl[^"]*" with subresource "scale" using apps/v1: \.spec\.replicas', text)
    answer = test.http(
        "PATCH", path + "?fieldManager=other", json.dumps(deployment(1, image="other:1")), headers=APPLY, status=409
    )
    test.match(r'conflict with "kubectl": \.spec\.template\.spec\.containers\[name=".*"\]\.image', answer.message)
    ran = applied(test, deployment(), "--force-conflicts")
    test.equal(ran.stdout, "deployment.apps/web serverside-applied\n", "output")
    test.equal(test.get(path)["spec"]["replicas"], 0, "replicas")
    test.kubectl("scale", "deployment/web", "--replicas=1")
    unscaled = deployment()
    del unscaled["spec"]["replicas"]
    applied(test, unscaled)
    test.equal(test.get(path)["spec"]["replicas"], 1, "replicas that somebody else keeps")


@case("items of lists merge by their keys, and go with the one who applied them", each_kubectl=True)
def items(test):
    path = test.path("deployments", "web", "apps/v1")
    mine = deployment(env=[{"name": "A", "value": "1"}])
    applied(test, mine)
    theirs = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    name = mine["spec"]["template"]["spec"]["containers"][0]["name"]
    container = {"name": name, "env": [{"name": "B", "value": "2"}]}
    theirs["spec"] = {"template": {"spec": {"containers": [container]}}}
    applied(test, theirs, "--field-manager=other")
    environment = lambda: {
        e["name"]: e["value"] for e in test.get(path)["spec"]["template"]["spec"]["containers"][0].get("env", [])
    }
    test.equal(environment(), {"A": "1", "B": "2"}, "environment of both")
    applied(test, deployment())
    test.equal(environment(), {"B": "2"}, "environment of the other one")
    container["env"] = []
    applied(test, theirs, "--field-manager=other")
    test.equal(environment(), {}, "environment of none")


@case("who applied on its own side goes on on the server's without conflicts", each_kubectl=True)
def migrate(test):
    path = test.path("configmaps", "a")
    test.kubectl("apply", "-f", "-", stdin=objects.config_map("a", {"x": "1", "y": "1"}))
    test.equal(managers(test.get(path)), [("kubectl-client-side-apply", "Update", "")], "managers")
    applied(test, objects.config_map("a", {"x": "2"}))
    moved = test.get(path)
    test.equal(moved["data"], {"x": "2"}, "data")
    test.true(("kubectl", "Apply", "") in managers(moved), f"managers {managers(moved)}")
    last = moved["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    test.equal(json.loads(last)["data"], {"x": "2"}, "the annotation")
    test.kubectl("apply", "-f", "-", stdin=objects.config_map("a", {"x": "3"}))
    test.equal(test.get(path)["data"], {"x": "3"}, "data, applied on its own side again")


@case("managedFields: of create, patch and status, begun anew, asked to be shown", each_kubectl=True)
def entries(test):
    path = test.path("pods", "p")
    test.kubectl("create", "-f", "-", stdin=objects.pod("p", schedulerName="nobody"))
    test.kubectl("label", "pod/p", "a=b")
    status = json.dumps({"status": {"message": "m"}})
    headers = {"Content-Type": "application/merge-patch+json"}
    test.http("PATCH", path + "/status?fieldManager=status-writer", status, headers=headers)
    test.equal(
        sorted(managers(test.get(path))),
        [
            ("kubectl-create", "Update", ""),
            ("kubectl-label", "Update", ""),
            ("status-writer", "Update", "status"),
        ],
        "managers",
    )
    shown = test.kubectl("get", "pod/p", "-o", "yaml")
    test.true("managedFields" not in shown.stdout, "managedFields that nobody asked for")
    shown = test.kubectl("get", "pod/p", "-o", "yaml", "--show-managed-fields")
    test.match(r"f:message: \{\}", shown.stdout)
    anew = json.dumps({"metadata": {"managedFields": [{}]}})
    test.http("PATCH", path, anew, headers=headers)
    test.equal(managers(test.get(path)), [], "managers that began anew")
    label = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "c"}}}
    text = test.refused("apply", "--server-side", "-f", "-", stdin=label)
    test.match('conflict with "before-first-apply" using v1: .metadata.labels.a', text)


@case("what can't be applied: no manager, unknown fields, another kind")
def refused(test):
    path = test.path("configmaps", "a")
    body = json.dumps(objects.config_map("a", {"x": "1"}))
    answer = test.http("PATCH", path, body, headers=APPLY, status=422)
    test.match("fieldManager: Required value: is required for apply patch", answer.message)
    unknown = json.dumps(objects.config_map("a") | {"nope": 1})
    answer = test.http("PATCH", path + "?fieldManager=m", unknown, headers=APPLY, status=500)
    test.match(r"failed to create typed patch object .*: \.nope: field not declared in schema", answer.message)
    other = json.dumps(objects.pod("a"))
    answer = test.http("PATCH", path + "?fieldManager=m", other, headers=APPLY, status=400)
    test.match("invalid object type: /v1, Kind=Pod", answer.message)
    test.true(not test.exists(path), "something was created")


@case("controllers write as who they are")
def controllers(test):
    test.kubectl("create", "-f", "-", stdin=deployment())
    path = test.path("deployments", "web", "apps/v1")
    test.wait(
        "the controller manages the status",
        lambda: ("berth-controllers", "Update", "status") in managers(test.get(path)),
    )
