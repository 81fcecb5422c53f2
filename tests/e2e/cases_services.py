"""The pods behind Services: EndpointSlices and Endpoints."""

import objects
from harness import RUN, case

DISCOVERY = "discovery.k8s.io/v1"


def slices(test, service):
    """Those that name the Service."""
    found = test.get(test.path("endpointslices", group=DISCOVERY))["items"]
    label = "kubernetes.io/service-name"
    return [s for s in found if s["metadata"]["labels"].get(label) == service]


def endpoints_of(test, service):
    return [e for s in slices(test, service) for e in s["endpoints"] or []]


def ready_pods(test, service):
    found = [e for e in endpoints_of(test, service) if e["conditions"]["ready"]]
    return sorted(e["targetRef"]["name"] for e in found)


def subsets(test, service):
    return test.get(test.path("endpoints", service)).get("subsets") or []


@case(
    "the pods of a service stand in its endpointslices and endpoints",
    needs=RUN,
    each_kubectl=True,
    seconds=8,
)
def service_endpoints(test):
    port = {"name": "http", "containerPort": 8080}
    made = objects.deployment("web", replicas=3, annotations={"berth.dev/ready-after": "1s"})
    made["spec"]["template"]["spec"]["containers"][0]["ports"] = [port]
    test.kubectl("create", "-f", "-", stdin=made)
    test.kubectl("expose", "deployment", "web", "--port=80", "--target-port=http")
    test.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

    def pods():
        return sorted(p["metadata"]["name"] for p in test.pods("app=web"))

    test.wait("all are ready endpoints", lambda: ready_pods(test, "web") == pods())
    (made,) = slices(test, "web")
    test.equal(made["addressType"], "IPv4", "address type")
    test.equal(made["ports"], [{"name": "", "port": 8080, "protocol": "TCP"}], "ports")
    test.equal(made["metadata"]["ownerReferences"][0]["kind"], "Service", "owner")
    endpoint = made["endpoints"][0]
    pod = test.pod(endpoint["targetRef"]["name"])
    test.equal(endpoint["addresses"], [pod["status"]["podIP"]], "address")
    test.equal(endpoint["nodeName"], pod["spec"]["nodeName"], "node")
    test.wait("endpoints say the same", lambda: len(subsets(test, "web")[0]["addresses"]) == 3)
    test.equal(subsets(test, "web")[0]["ports"], [{"port": 8080, "protocol": "TCP"}], "ports")
    test.match(r"\nweb-\w{5} +IPv4 +8080 +10\.", test.kubectl("get", "endpointslices").stdout)
    test.match(r"\nweb +10\.\S+:8080", test.kubectl("get", "endpoints").stdout)
    # Who goes is no endpoint any more, who comes is.
    gone = pods()[0]
    test.kubectl("delete", "pod", gone, "--wait=false")
    test.wait("it is replaced", lambda: gone not in ready_pods(test, "web"))
    test.wait("all are ready", lambda: len(ready_pods(test, "web")) == 3)
    test.kubectl("scale", "deployment/web", "--replicas=0")
    test.wait("nobody is left", lambda: not endpoints_of(test, "web") and not subsets(test, "web"))
    test.equal(len(slices(test, "web")), 1, "the empty slice stays")
    test.kubectl("delete", "service", "web")
    test.wait("its slices go with it", lambda: not slices(test, "web"))
    test.wait("its endpoints too", lambda: not test.exists(test.path("endpoints", "web")))


@case(
    "a headless service names its pods' hosts and publishes who is not ready",
    needs=RUN,
    each_kubectl=True,
    seconds=5,
)
def headless_service(test):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "db"},
        "spec": {
            "clusterIP": "None",
            "selector": {"app": "db"},
            "publishNotReadyAddresses": True,
        },
    }
    test.kubectl("apply", "-f", "-", stdin=service)
    made = objects.deployment("db", annotations={"berth.dev/ready-after": "1h"})
    del made["spec"]["replicas"]
    made["kind"] = "StatefulSet"
    made["spec"] |= {"serviceName": "db", "replicas": 2, "podManagementPolicy": "Parallel"}
    test.kubectl("apply", "-f", "-", stdin=made)
    test.wait("both are published", lambda: ready_pods(test, "db") == ["db-0", "db-1"])
    found = {e["hostname"]: e["conditions"]["serving"] for e in endpoints_of(test, "db")}
    test.equal(found, {"db-0": False, "db-1": False}, "host names and whether they serve")
    labels = slices(test, "db")[0]["metadata"]["labels"]
    test.equal(labels["service.kubernetes.io/headless"], "", "label")
    test.wait("endpoints name them", lambda: len(subsets(test, "db")[0]["addresses"]) == 2)


@case("endpoints of a service that selects nothing are mirrored", each_kubectl=True, needs=RUN)
def mirrored_endpoints(test):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "far"},
        "spec": {"ports": [{"port": 5432}]},
    }
    made = {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "far", "labels": {"of": "us"}},
        "subsets": [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"port": 5432}]}],
    }
    test.kubectl("apply", "-f", "-", stdin=service)
    test.kubectl("apply", "-f", "-", stdin=made)
    test.wait("a slice stands for them", lambda: len(slices(test, "far")) == 1)
    (found,) = slices(test, "far")
    manager = found["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
    test.equal(manager, "endpointslicemirroring-controller.k8s.io", "manager")
    test.equal(found["metadata"]["labels"]["of"], "us", "label")
    test.equal(found["endpoints"][0]["addresses"], ["192.0.2.7"], "addresses")
    test.merge(test.path("endpoints", "far"), {"subsets": None})
    test.wait("it goes with them", lambda: not slices(test, "far"))


# The genuine server of the rig keeps none: it listens on loopback, which it tells nobody.
@case("the service kubernetes says where the API server is, and is made again", on=("embedded",), alone=True, each_kubectl=True)
def own_service(test):
    paths = [
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/default/endpoints/kubernetes",
        f"/apis/{DISCOVERY}/namespaces/default/endpointslices/kubernetes",
    ]

    def said():
        service, endpoints, found = (test.get(path) for path in paths)
        port = service["spec"]["ports"][0]["targetPort"]
        wanted = {"name": "https", "port": port, "protocol": "TCP"}
        test.equal(endpoints["subsets"], [{"addresses": [{"ip": "127.0.0.1"}], "ports": [wanted]}], "subsets")
        test.equal(found["endpoints"], [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}], "endpoints")
        test.equal((found["addressType"], found["ports"]), ("IPv4", [wanted]), "slice")
        return port

    port = said()
    test.match(rf"kubernetes +127\.0\.0\.1:{port} ", test.kubectl("get", "endpoints", "kubernetes", namespace="default").stdout)
    test.match(rf"kubernetes +IPv4 +{port} +127\.0\.0\.1 ", test.kubectl("get", "endpointslices", "kubernetes", namespace="default").stdout)
    for path in paths:
        uid = test.get(path)["metadata"]["uid"]
        test.http("DELETE", path, status=200)
        test.wait(f"{path} is there again", lambda p=path, u=uid: test.exists(p) and test.get(p)["metadata"]["uid"] != u)
    test.merge(paths[2], {"endpoints": []})
    test.wait("it is put right", lambda: test.get(paths[2])["endpoints"])
    said()
