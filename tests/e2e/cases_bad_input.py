"""What is wrong is refused as Kubernetes words it, and harms nobody else."""

import json
import random
import socket
import ssl
import urllib.parse

import objects
from harness import Failure, case

JSON = {"Content-Type": "application/json"}
FOREIGN_UID = "00000000-0000-4000-8000-000000000000"


def alive(test):
    test.equal(test.http("GET", "/readyz").status, 200, "health after it")


def refused(test, document, status, reason, *patterns, path=None):
    """Posts the document, which must be refused so; returns the Status."""
    answer = test.http("POST", path or test.path("pods"), document, headers=JSON)
    test.equal(answer.status, status, f"status of {json.dumps(document)[:300]}: {answer.message}")
    test.equal(answer.reason, reason, "reason")
    for pattern in patterns:
        test.match(pattern, answer.message, "message")
    return answer.json()


@case("malformed JSON is a bad request", each_kubectl=True)
def malformed(test):
    path = test.path("configmaps")
    for body in (
        '{"apiVersion": "v1", "kind": ',
        '{"metadata": {"name": "x"}} trailing',
        '{"metadata": {"name": "x"}}{}',
        "[]",
        '"text"',
        "7",
        "",
        "{'metadata': {}}",
        '{"metadata": {"name": "x"}, "data": {"a": "\\q"}}',
        '{"metadata": {"name": "x",}}',
        '{"metadata": {"name": nan}}',
    ):
        answer = test.http("POST", path, body, headers=JSON, status=400)
        test.equal(answer.reason, "BadRequest", f"reason of {body!r}")
    text = test.refused("create", "-f", "-", stdin="a: [1, 2\nb: }")
    test.match("error (parsing|converting|unmarshaling)|error: ", text)
    alive(test)


@case("malformed YAML is a bad request")
def malformed_yaml(test):
    headers = {"Content-Type": "application/yaml"}
    good = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: good}\ndata: {a: b}\n"
    test.http("POST", test.path("configmaps"), good, headers=headers, status=201)
    for body in ("a: [1", "a: b: c", "\tx: 1", "{"):
        test.http("POST", test.path("configmaps"), body, headers=headers, status=400)
    bombs = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    answer = test.http("POST", test.path("configmaps"), bombs, headers=headers)
    test.true(400 <= answer.status < 500, f"aliases of aliases: {answer.status}")
    alive(test)


@case("a value of a wrong type is a bad request that names the field")
def wrong_types(test):
    for change, field in (
        ({"nodeName": 7}, "spec.nodeName"),
        ({"terminationGracePeriodSeconds": "soon"}, "spec.terminationGracePeriodSeconds"),
        ({"containers": "c"}, "spec.containers"),
        ({"tolerations": {"key": "a"}}, "spec.tolerations"),
        ({"nodeSelector": ["a"]}, "spec.nodeSelector"),
        ({"priority": 3000000000}, "spec.priority"),
    ):
        document = objects.pod("p")
        document["spec"] |= change
        refused(test, document, 400, "BadRequest", field.split(".")[-1])
    document = objects.pod("p")
    document["metadata"]["labels"] = {"a": 1}
    refused(test, document, 400, "BadRequest", "labels")


@case("bodies over 3 MiB get 413")
def too_large(test):
    body = json.dumps(objects.config_map("big", {"a": "x" * 3_200_000}))
    answer = test.http("POST", test.path("configmaps"), body, headers=JSON, status=413)
    test.equal(answer.reason, "RequestEntityTooLarge", "reason")
    test.match("limit is 3145728", answer.message)
    test.true(not test.exists(test.path("configmaps", "big")), "it exists")
    almost = objects.config_map("almost", {"a": "x" * 1_000_000})
    test.create(test.path("configmaps"), almost)
    over = objects.config_map("over", {"a": "x" * 1_048_577})
    refused(
        test,
        over,
        422,
        "Invalid",
        "Too long: may not be more than 1048576 bytes",
        path=test.path("configmaps"),
    )


@case("JSON nested too deeply is a bad request")
def too_deep(test):
    body = '{"metadata":{"name":"deep"},"data":{"a":' + '{"a":' * 20_000 + "1" + "}" * 20_000 + "}}"
    answer = test.http("POST", test.path("configmaps"), body, headers=JSON, status=400)
    test.match("depth|deep|nest", answer.message)
    lists = '{"metadata":{"name":"deep"},"data":' + "[" * 100_000 + "]" * 100_000 + "}"
    test.http("POST", test.path("configmaps"), lists, headers=JSON, status=400)
    patch = '{"data":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}"
    test.create(test.path("configmaps"), objects.config_map("shallow"))
    headers = {"Content-Type": "application/merge-patch+json"}
    answer = test.http("PATCH", test.path("configmaps", "shallow"), patch, headers=headers)
    test.true(answer.status in (400, 413, 422), f"deep patch: {answer.status} {answer.message}")
    alive(test)


@case("unknown content and answer types get 415 and 406")
def media_types(test):
    path = test.path("configmaps")
    body = json.dumps(objects.config_map("x"))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/nosuch"):
        answer = test.http("POST", path, body, headers={"Content-Type": kind}, status=415)
        test.equal(answer.reason, "UnsupportedMediaType", "reason")
    # The genuine server reads protobuf, and finds that this is none.
    protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf"}
    answer = test.http("POST", path, b"k8s\x00\xff\xff", headers=protobuf)
    test.true(answer.status in (400, 415), f"protobuf: {answer.status}")
    answer = test.http("GET", path, headers={"Accept": "text/html"}, status=406)
    test.equal(answer.reason, "NotAcceptable", "reason")
    answer = test.http(
        "PATCH", test.path("configmaps", "x"), "{}", headers={"Content-Type": "application/json"}
    )
    test.equal(answer.status, 415, "patch without a patch's type")
    both = {"Accept": "application/vnd.kubernetes.protobuf,application/json"}
    test.true(
        test.http("GET", path, headers=both).status == 200, "JSON as second choice is refused"
    )


@case("who names no user or a wrong token gets 401, but may ask for health and version")
def unauthorized(test):
    for path in ("/api/v1/pods", "/apis", "/openapi/v3", "/nosuch", test.path("configmaps")):
        answer = test.http("GET", path, token=None, status=401)
        test.equal((answer.reason, answer.message), ("Unauthorized", "Unauthorized"), path)
        test.http("GET", path, token="wrong", status=401)
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        test.http("GET", path, token=None, status=200)
    test.http("POST", test.path("configmaps"), objects.config_map("x"), token="wrong", status=401)
    test.http("GET", "/api", headers={"Authorization": "Basic YTpi"}, token=None, status=401)
    test.http("GET", "/api", headers={"Authorization": "Bearer "}, token=None, status=401)
    test.true(not test.exists(test.path("configmaps", "x")), "it exists")
    text = test.kubectl("--token=wrong", "get", "pods", status=1).stderr
    test.match("(?i)unauthorized|must be logged in|provide credentials", text)


@case("the scheduler's reasons and ledger are told to operators alone", on=("embedded",))
def debug_is_closed(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("secret", cpu="100m"))
    asked = f"/debug/why?pod={test.namespace}/secret"
    others = ("/debug/why?podgroup=a/b", "/debug/why?workload=a/b", "/debug/ledger", "/debug/queues", "/metrics")
    for path in (asked, *others):
        for token in (None, "wrong"):
            answer = test.http("GET", path, token=token, status=401)
            test.equal((answer.reason, answer.message), ("Unauthorized", "Unauthorized"), path)
            test.true(b"secret" not in answer.body and b"node" not in answer.body, f"{path}: {answer.body}")
    test.kubectl("create", "serviceaccount", "s")
    token = test.kubectl("create", "token", "s").stdout.strip()
    for path in (asked, *others):
        test.match("cannot get path", test.http("GET", path, token=token, status=403).message, path)
    test.wait("an operator is told", lambda: test.http("GET", asked).status == 200)
    test.true("nodes" in test.http("GET", "/debug/ledger", status=200).json(), "nodes of the ledger")
    test.http("GET", "/debug/why?podgroup=a/b", status=404)
    test.http("POST", "/debug/ledger", {}, status=405)
    test.match("berth_nodes [0-9]+\n", test.kubectl("get", "--raw", "/metrics").stdout)


@case("invalid quantities and negative requests are refused")
def bad_quantities(test):
    for text in ("x", "1.5.5", "1Q", "", "1 Gi", "--1", "0x10"):
        document = objects.pod("p", memory=text)
        answer = test.http("POST", test.path("pods"), document)
        test.true(answer.status in (400, 422), f"memory {text!r}: {answer.status}")
    status = refused(
        test,
        objects.pod("p", cpu="-1"),
        422,
        "Invalid",
        r'Pod "p" is invalid: spec.containers\[0\].resources.requests\[cpu\]: Invalid value: "-1"',
        "must be greater than or equal to 0",
    )
    cause = status["details"]["causes"][0]
    test.equal(cause["field"], "spec.containers[0].resources.requests[cpu]", "field of the cause")
    refused(
        test,
        objects.pod("p", extended={"e2e.test/gpu": "500m"}),
        422,
        "Invalid",
        "must be an integer",
    )
    more = objects.pod("p", cpu="2")
    more["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1"}
    refused(test, more, 422, "Invalid", "must be less than or equal to cpu limit")


@case("invalid names and labels are refused", each_kubectl=True)
def bad_names(test):
    for name in ("A", "a_b", "-a", "a-", "a..b", "x" * 254):
        text = test.http(
            "POST", test.path("configmaps"), objects.config_map(name), status=422
        ).message
        test.match("metadata.name: Invalid value", text)
    for labels in ({"a b": "c"}, {"a": "b c"}, {"a": "x" * 64}, {"-a": "b"}, {"a/b/c": "d"}):
        text = test.http(
            "POST", test.path("configmaps"), objects.config_map("a", labels=labels), status=422
        ).message
        test.match("metadata.labels: Invalid value", text)
    test.http("POST", test.path("configmaps"), {"metadata": {}}, status=422)
    text = test.refused("create", "-f", "-", stdin=objects.config_map("A_b"))
    test.match(
        r'The ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123',
        text,
    )
    # A path with an odd name is only not found.
    test.http("GET", test.path("configmaps") + "/" + urllib.parse.quote("a b"), status=404)
    answer = test.http("GET", test.path("configmaps") + "/" + urllib.parse.quote("a%", safe=""))
    test.true(answer.status in (400, 404), f"name with a percent sign: {answer.status}")


@case("a pod that breaks rules is told every cause")
def causes(test):
    document = objects.pod("p", restartPolicy="Sometimes", activeDeadlineSeconds=-1)
    document["spec"]["containers"] = [{"name": "", "image": ""}]
    status = refused(test, document, 422, "Invalid", r'Pod "p" is invalid: \[')
    fields = {cause["field"] for cause in status["details"]["causes"]}
    for field in (
        "spec.containers[0].name",
        "spec.containers[0].image",
        "spec.restartPolicy",
        "spec.activeDeadlineSeconds",
    ):
        test.true(field in fields, f"no cause {field} in {sorted(fields)}")
    test.equal((status["details"]["name"], status["details"]["kind"]), ("p", "Pod"), "details")
    refused(
        test,
        {"metadata": {"name": "p"}, "spec": {}},
        422,
        "Invalid",
        "spec.containers: Required value",
    )
    refused(
        test,
        objects.pod("p", priorityClassName="nosuch"),
        403,
        "Forbidden",
        "no PriorityClass with name nosuch was found",
    )
    bad = objects.deployment("web")
    bad["spec"]["selector"]["matchLabels"] = {"app": "other"}
    refused(
        test,
        bad,
        422,
        "Invalid",
        "`selector` does not match template `labels`",
        path=test.path("deployments", group="apps/v1"),
    )


@case("what may not change does not")
def immutable(test):
    test.create(test.path("pods"), objects.pod("p", schedulerName="nobody"))
    patch = {"spec": {"containers": [{"name": "other", "image": "x"}]}}
    test.merge(test.path("pods", "p"), {"spec": {"nodeName": "n"}}, status=422)
    test.merge(test.path("pods", "p"), patch, status=422)
    fixed = objects.config_map("fixed", {"a": "1"}) | {"immutable": True}
    test.create(test.path("configmaps"), fixed)
    text = test.merge(test.path("configmaps", "fixed"), {"data": {"a": "2"}}, status=422)["message"]
    test.match("field is immutable when `immutable` is set", text)
    test.create(test.path("deployments", group="apps/v1"), objects.deployment("web", replicas=0))
    change = {"spec": {"selector": {"matchLabels": {"app": "web", "x": "y"}}}}
    test.merge(test.path("deployments", "web", "apps/v1"), change, status=422)
    test.merge(test.path("configmaps", "fixed"), {"metadata": {"name": "other"}}, status=400)


@case("what does not exist is not found, what can't be done is not allowed")
def not_found(test):
    for path in (
        "/api/v1/nosuch",
        "/apis/nosuch/v1/things",
        "/apis/apps/v9/deployments",
        "/nosuch",
        test.path("pods", "nosuch"),
        test.path("pods", "nosuch/nosuch"),
        "/api/v1/namespaces/nosuch",
    ):
        test.http("GET", path, status=404)
    test.http("POST", "/api/v1/namespaces/nosuch/configmaps", objects.config_map("a"), status=404)
    test.equal(
        test.get("/api/v1/namespaces/nosuch/pods")["items"],
        [],
        "list of a namespace that is not there",
    )
    test.http(
        "PATCH",
        test.path("configmaps", "nosuch"),
        "{}",
        headers={"Content-Type": "application/merge-patch+json"},
        status=404,
    )
    test.http("DELETE", test.path("configmaps", "nosuch"), status=404)
    test.http("POST", test.path("configmaps", "a"), objects.config_map("a"), status=405)
    test.http("PUT", test.path("configmaps"), objects.config_map("a"), status=405)
    test.http("GET", test.path("pods", "x/binding"), status=405)
    mismatch = objects.config_map("a")
    mismatch["metadata"]["namespace"] = "default"
    test.http("POST", test.path("configmaps"), mismatch, status=400)
    refused(test, objects.pod("p"), 400, "BadRequest", path=test.path("configmaps"))


@case("bad selectors, versions and parameters are refused")
def bad_parameters(test):
    pods = test.path("pods")
    for query in (
        "labelSelector=a%3D%3D%3Db",
        "labelSelector=a+in+b",
        "labelSelector=-x%3Da",
        "labelSelector=a+in+(b",
        "labelSelector=,",
        "fieldSelector=spec.foo%3D1",
        "fieldSelector=abc",
        "limit=abc",
        "resourceVersion=abc",
        "resourceVersion=-5",
        "timeoutSeconds=abc",
        "continue=nonsense",
    ):
        answer = test.http("GET", f"{pods}?{query}", status=400)
        test.equal(answer.reason, "BadRequest", query)
    for query in (
        "resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Nearby",
        "sendInitialEvents=true",
    ):
        test.http("GET", f"{pods}?{query}", status=422)
    test.http("POST", test.path("configmaps") + "?dryRun=Some", objects.config_map("a"), status=422)
    test.http(
        "POST",
        test.path("configmaps") + "?fieldValidation=Loud",
        objects.config_map("a"),
        status=422,
    )
    test.true(not test.exists(test.path("configmaps", "a")), "a refused object exists")


@case("a binding of a bound, a gated, a deleted or another pod is refused")
def bindings(test):
    def bind(pod, node, uid=None):
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod} | ({"uid": uid} if uid else {}),
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        return test.http("POST", test.path("pods", f"{pod}/binding"), body)

    def conflict(answer, pattern):
        test.equal((answer.status, answer.reason), (409, "Conflict"), f"answer ({answer.message})")
        test.match(pattern, answer.message)

    made = test.create(test.path("pods"), objects.pod("p", schedulerName="nobody"))
    conflict(bind("p", "n", FOREIGN_UID), "UID")
    test.true(test.node_of("p") is None, "bound in spite of its uid")
    test.equal(bind("p", "n", made["metadata"]["uid"]).status, 201, "status")
    test.equal(test.node_of("p"), "n", "node")
    test.true(objects.is_true(test.pod("p"), "PodScheduled"), "PodScheduled is not True")
    conflict(bind("p", "m"), 'pod p is already assigned to node "n"')
    conflict(bind("p", "n"), 'pod p is already assigned to node "n"')
    test.equal(test.node_of("p"), "n", "node")
    test.http("DELETE", test.path("pods", "p"), status=200)
    test.create(
        test.path("pods"),
        objects.pod("g", schedulerName="nobody", schedulingGates=[{"name": "e2e.test/a"}]),
    )
    conflict(bind("g", "n"), "non-empty .spec.schedulingGates")
    test.equal(bind("nosuch", "n").status, 404, "missing pod")
    held = objects.pod("d", schedulerName="nobody")
    held["metadata"]["finalizers"] = ["e2e.test/hold"]
    test.create(test.path("pods"), held)
    test.http("DELETE", test.path("pods", "d"), status=200)
    conflict(bind("d", "n"), "is being deleted")
    test.merge(test.path("pods", "d"), {"metadata": {"finalizers": None}})


@case("a watch that can't be begun is refused; one from the future waits")
def watches(test):
    path = test.path("configmaps")
    answer = test.http("GET", f"{path}?watch=true&resourceVersion=abc&timeoutSeconds=1")
    test.true(answer.status in (400, 500), f"unparsable version: {answer.status}")
    test.http("GET", f"{path}?watch=true&sendInitialEvents=true&timeoutSeconds=1", status=422)
    answer = test.http("GET", f"{path}?watch=true&resourceVersion=999999999&timeoutSeconds=1")
    test.equal((answer.status, answer.body), (200, b""), "from the future")


@case("a watch that wants nothing of what there is gets only what comes")
def watch_from_now(test):
    path = test.path("configmaps")
    test.create(path, objects.config_map("a"))
    seen = test.watch(f"{path}?watch=true")
    test.wait("the addition is told", lambda: "a" in [event["object"]["metadata"]["name"] for event in seen.events()])
    query = "?watch=true&fieldSelector=metadata.name%3Da&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    streams = [test.watch(path + query + version) for version in ("", "&resourceVersion=0")]
    test.merge(test.path("configmaps", "a"), {"data": {"k": "1"}})
    for stream in streams:
        test.wait("the change is told", stream.events)
        test.equal(stream.types(), ["MODIFIED"], "types")


@case("watches tell additions, changes and ends, of just what is selected, in order")
def watch_order(test):
    made = test.create(test.path("configmaps"), objects.config_map("a", labels={"see": "yes"}))
    version = made["metadata"]["resourceVersion"]
    query = f"?watch=true&labelSelector=see%3Dyes&resourceVersion={version}"
    stream = test.watch(test.path("configmaps") + query)
    test.create(test.path("configmaps"), objects.config_map("hidden"))
    test.merge(test.path("configmaps", "a"), {"data": {"k": "1"}})
    test.merge(test.path("configmaps", "a"), {"metadata": {"labels": {"see": "no"}}})
    test.merge(test.path("configmaps", "a"), {"metadata": {"labels": {"see": "yes"}}})
    test.http("DELETE", test.path("configmaps", "a"), status=200)
    test.wait("all are told", lambda: len(stream.events()) >= 4)
    test.equal(stream.types(), ["MODIFIED", "DELETED", "ADDED", "DELETED"], "types")
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in stream.events()]
    test.equal(versions, sorted(set(versions)), "versions, in order")


@case("random bytes on the port end that connection and no other", seconds=3)
def random_bytes(test):
    watching = test.watch(test.path("configmaps") + "?watch=true&resourceVersion=0")
    source = random.Random(7)
    place = (test.credentials.host, test.credentials.port)
    for size in (1, 7, 100, 5000, 100_000):
        with socket.create_connection(place, timeout=20) as raw:
            try:
                raw.sendall(source.randbytes(size))
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
            except OSError:
                pass  # Closed on us, as it should be.
    for text in (
        b"GET / HTTP/1.1\r\n\r\n",  # Plain HTTP where TLS is spoken.
        b"\x16\x03\x01\xff\xff" + bytes(600),  # Something like a TLS hello.
    ):
        with socket.create_connection(place, timeout=20) as raw:
            try:
                raw.sendall(text)
                raw.shutdown(socket.SHUT_WR)
                while raw.recv(65536):
                    pass
            except OSError:
                pass
    for data in (
        source.randbytes(3000),
        b"GET\r\n\r\n",
        b"GET /api HTTP/9.9\r\n\r\n",
        b"POST /api HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /api HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /api HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET " + b"/" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n",
    ):
        speak(test, data)
    test.create(test.path("configmaps"), objects.config_map("after"))
    test.wait(
        "the watch goes on",
        lambda: any(e["object"]["metadata"]["name"] == "after" for e in watching.events()),
    )
    alive(test)


def speak(test, data):
    """Sends bytes inside TLS; whatever is answered is fine if it is an end or a refusal."""
    context = test.credentials.context
    place = (test.credentials.host, test.credentials.port)
    with socket.create_connection(place, timeout=20) as raw:
        try:
            with context.wrap_socket(raw, server_hostname=test.credentials.host) as tls:
                tls.settimeout(20)
                tls.sendall(data)
                answer = tls.recv(65536)
                if answer and not answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 5")):
                    raise Failure(f"{data[:60]!r} was answered with {answer[:200]!r}")
        except (OSError, ssl.SSLError):
            pass


@case("headers over the limit get 431 or 400, and a slow or silent client does not hold others up")
def headers_too_large(test):
    try:
        answer = test.http("GET", "/version", headers={"X-Long": "x" * 2_000_000})
        test.true(answer.status in (400, 431), f"status {answer.status}")
    except Failure as failure:
        # Closed while we were still sending: also a refusal.
        test.match("(?i)reset|broken|closed|Disconnected|SSL|EOF", str(failure))
    place = (test.credentials.host, test.credentials.port)
    silent = [socket.create_connection(place, timeout=20) for _ in range(50)]
    test.cleanups.append(lambda: [s.close() for s in silent])
    slow = socket.create_connection(place, timeout=20)
    tls = test.credentials.context.wrap_socket(slow, server_hostname=test.credentials.host)
    test.cleanups.append(tls.close)
    tls.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    alive(test)
    test.get(test.path("pods"))


@case("deletions of namespaces that the cluster needs are refused")
def needed_namespaces(test):
    for name in ("default", "kube-system", "kube-public"):
        answer = test.http("DELETE", f"/api/v1/namespaces/{name}", status=403)
        test.match("this namespace may not be deleted", answer.message)


@case("a kind that the server does not know does not keep the others back", each_kubectl=True)
def unknown_kind(test):
    document = "apiVersion: example.com/v1\nkind: Nosuch\nmetadata: {name: x}\nspec: {a: b}\n---\n"
    document += "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: known}\n"
    wanted = 'no matches for kind "Nosuch" in version "example.com/v1"'
    for verb in (("apply",), ("create",), ("apply", "--validate=warn")):
        text = test.refused(*verb, "-f", "-", stdin=document)
        test.match(wanted, text, f"kubectl {' '.join(verb)}")
        test.kubectl("get", "configmap", "known")
        test.kubectl("delete", "configmap", "known")
    test.match('doesn.t have a resource type "nosuches"', test.refused("get", "nosuches"), "get")


@case("what needs containers says that there are none", on=("embedded",), each_kubectl=True)
def no_containers(test):
    test.kubectl("create", "-f", "-", stdin=objects.pod("p"))
    test.kubectl("wait", "pod/p", "--for=condition=Ready", "--timeout=30s")
    none = "simulated nodes run no containers"
    test.match(none, test.refused("logs", "p"))
    # kubectl 1.36 would ask again after a failure.
    test.match(none, test.kubectl("logs", "-f", "p").stdout, "what is followed ends")
    test.match(none, test.refused("exec", "p", "--", "ls"))
    test.match(none, test.refused("attach", "p"))
    test.match(none, test.refused("port-forward", "p", "8080:80"))
