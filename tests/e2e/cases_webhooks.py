"""Admission webhooks that are really called: what they are asked, what they may do, and what becomes of those that fail."""

import itertools
import json
import threading

import objects
import webhooks
from cases_processes import own, start
from harness import TOLERATION, Connection, Failure, case
from webhooks import Webhook, allow, deny, entry, install, patch, rule

PODS = [rule(["pods"], ["CREATE"], [""], ["v1"])]


def settled(test, act):
    """A genuine API server takes a moment to hear of a configuration: `act` until it returns something."""
    return test.wait("the configuration counts", act)


def refused(test, body, resource="configmaps", query=""):
    """The message of a creation that is refused; None when it isn't, and what was made is gone again."""
    answer = test.http("POST", test.path(resource) + query, body)
    if answer.status < 400:
        test.http("DELETE", test.path(resource, answer.json()["metadata"]["name"]))
        return None
    return answer


MAPS = [rule(["configmaps"], ["CREATE"], [""], ["v1"])]
# What a case's namespace gets by itself is let be.
OURS = {"objectSelector": {"matchLabels": {"ours": "yes"}}}


def ours(name, **data):
    return objects.config_map(name, data, labels={"ours": "yes"})


@case("a webhook that validates refuses in its own words, and warns", each_kubectl=True)
def validates(test):
    def decide(request):
        if request["object"]["metadata"]["labels"].get("bad"):
            return deny(request, message="bad pods stay out", code=409, reason="Conflict")
        return allow(request, warnings=["mind the gap"])

    webhook = Webhook(test, decide)
    install(test, "Validating", entry(test, webhook, PODS))
    bad = objects.pod("bad", labels={"bad": "yes"})

    def told():
        ran = test.kubectl("create", "-f", "-", stdin=bad, status=None)
        if ran.status == 0:
            test.kubectl("delete", "pod", "bad", "--now")
        return ran.stderr if ran.status else None

    test.match('admission webhook "hook.example.com" denied the request: bad pods stay out', settled(test, told))
    answer = test.http("POST", test.path("pods"), bad, status=409)
    test.equal(answer.reason, "Conflict", "reason")
    ran = test.kubectl("create", "-f", "-", stdin=objects.pod("good", labels={"bad": ""}))
    test.match("Warning: mind the gap", ran.stderr)
    request = webhook.requests("CREATE")[-1]
    test.equal(request["kind"], {"group": "", "version": "v1", "kind": "Pod"}, "kind")
    test.equal(request["resource"], {"group": "", "version": "v1", "resource": "pods"}, "resource")
    test.equal((request["name"], request["namespace"]), ("good", test.namespace), "name")
    test.equal(request["oldObject"], None, "old object")
    test.equal(request["options"]["kind"], "CreateOptions", "options")
    test.true("system:masters" in request["userInfo"]["groups"], "groups")
    test.equal(request["object"]["spec"]["schedulerName"], "default-scheduler", "a default")
    test.true(request["object"]["metadata"]["uid"], "uid")
    test.equal(test.pod("good")["metadata"]["uid"], request["object"]["metadata"]["uid"], "uid")
    test.equal(webhook.reviews[-1]["path"], "/?timeout=10s", "path")


@case("webhooks that mutate change what is made, one after the other")
def mutates(test):
    seen = []

    def first(request):
        test.true("uid" not in request["object"]["metadata"], "no uid yet")
        return patch(
            request,
            {"op": "add", "path": "/metadata/annotations", "value": {"by": "first"}},
            {"op": "add", "path": "/spec/containers/-", "value": {"name": "side", "image": "side"}},
        )

    def second(request):
        seen.append(request["object"])
        return patch(request, {"op": "add", "path": "/metadata/annotations/and", "value": "second"})

    late = Webhook(test, second)
    install(test, "Mutating", entry(test, late, PODS, name="second.example.com"), name="b")
    early = Webhook(test, first)
    install(test, "Mutating", entry(test, early, PODS, name="first.example.com"), name="a")

    def made():
        test.kubectl("create", "-f", "-", stdin=objects.pod("changed"))
        pod = test.pod("changed")
        if len(pod["spec"]["containers"]) == 2 and pod["metadata"]["annotations"].get("and"):
            return pod
        test.kubectl("delete", "pod", "changed", "--now")
        return None

    pod = settled(test, made)
    test.equal(pod["metadata"]["annotations"], {"by": "first", "and": "second"}, "annotations")
    test.equal(pod["spec"]["containers"][1]["terminationMessagePolicy"], "File", "a default of what was added")
    test.equal(len(seen[-1]["spec"]["containers"]), 2, "what the second saw")
    managers = json.dumps(pod["metadata"].get("managedFields", []))
    test.true("side" not in managers, "nobody owns what webhooks added")


@case("managedFields are what a webhook's patch leaves of them, where they are any")
def leaves_managed(test):
    written = {
        "manager": "hook", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {}},
    }
    wrong = {
        "operation must be `Apply` or `Update`": {},
        'invalid fieldsType "FieldsV2" in managed fields entry 0': written | {"fieldsType": "FieldsV2"},
        "missing fieldsType in managed fields entry 0": written | {"fieldsType": ""},
        "apiVersion must not be empty": written | {"apiVersion": ""},
        "error decoding": written | {"fieldsV1": {"data": {}}},
    }
    lists = {"none": [], "other": [written], "unsaid": [written | {"fieldsV1": None}]} | {f"wrong-{i}": [entry] for i, entry in enumerate(wrong.values())}

    def decide(request):
        what = (request["object"].get("data") or {}).get("leave")
        if what == "nothing":
            return patch(request, {"op": "remove", "path": "/metadata/managedFields"})
        if what not in lists:
            return allow(request)
        return patch(request, {"op": "add", "path": "/metadata/managedFields", "value": lists[what]})

    webhook = Webhook(test, decide)
    install(test, "Mutating", entry(test, webhook, [rule(["configmaps"], ["CREATE", "UPDATE"], [""], ["v1"])], **OURS))

    def managers(answer):
        return [entry["manager"] for entry in answer.json()["metadata"].get("managedFields", [])]

    def counts():
        found = test.http("POST", test.path("configmaps"), ours("early", leave="none"), status=201)
        test.http("DELETE", test.path("configmaps", "early"))
        return not managers(found)

    settled(test, counts)

    def change(name, leave):
        return test.http(
            "PATCH", test.path("configmaps", name) + "?fieldManager=other", {"data": {"leave": leave}},
            headers={"Content-Type": "application/merge-patch+json"}, status=200,
        )

    # What is left, who manages it then, after another's change, and after a change that leaves it so again.
    for leave, made, changed, again in (
        ("none", [], [], []),
        ("other", ["hook"], ["hook", "other"], ["hook"]),
        ("unsaid", ["hook"], ["other"], ["hook"]),
        *((f"wrong-{i}", ["me"], ["me", "other"], ["me", "other"]) for i in range(len(wrong))),
    ):
        name = f"m-{leave}"
        answer = test.http("POST", test.path("configmaps") + "?fieldManager=me", ours(name, leave=leave), status=201)
        test.equal(managers(answer), made, leave)
        warning = " ".join(text for key, text in answer.headers.items() if key.lower() == "warning").replace('\\"', '"')
        said = list(wrong)[int(leave[6:])] if leave.startswith("wrong") else None
        test.true(said in warning and "in an invalid state" in warning if said else not warning, f"{leave}: {warning}")
        test.equal(sorted(managers(change(name, "x"))), changed, f"{leave}, changed")
        test.equal(sorted(managers(change(name, leave))), again, f"{leave}, again")
    answer = test.http("POST", test.path("configmaps") + "?fieldManager=me", ours("m-nothing", leave="nothing"), status=201)
    test.equal(managers(answer), [], "nothing")


@case("a webhook with IfNeeded sees what others changed after it, once")
def reinvoked(test):
    def count(request):
        data = request["object"].get("data") or {}
        return patch(request, {"op": "add", "path": "/data", "value": data | {"seen": ",".join(sorted(data))}})

    def add(request):
        return patch(request, {"op": "add", "path": "/data/more", "value": "yes"})

    early, late = Webhook(test, count), Webhook(test, add)
    install(
        test, "Mutating",
        entry(test, early, MAPS, name="early.example.com", reinvocationPolicy="IfNeeded", **OURS),
        entry(test, late, MAPS, name="late.example.com", **OURS),
    )

    def made():
        made = test.create(test.path("configmaps"), ours("again", a="b"))
        test.http("DELETE", test.path("configmaps", "again"))
        return made["data"] if "seen" in made["data"] else None

    test.equal(settled(test, made), {"a": "b", "more": "yes", "seen": "a,more,seen"}, "data")
    test.equal((len(early.reviews) % 2, len(early.reviews) // 2), (0, len(late.reviews)), "calls")


@case("a webhook is asked in the version that it names, of kinds that users define, too", seconds=2)
def versions(test):
    group = f"{test.unique('hooked')}.example.com"
    schema = {"type": "object", "properties": {"spec": {"type": "object", "additionalProperties": {"type": "string"}}}}
    served = [
        {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
        for name in ("v1", "v2")
    ]
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    test.create(
        definitions,
        {
            "metadata": {"name": f"things.{group}"},
            "spec": {
                "group": group, "scope": "Namespaced", "versions": served,
                "names": {"plural": "things", "kind": "Thing", "singular": "thing"},
            },
        },
    )
    test.cleanups.append(lambda: test.http("DELETE", f"{definitions}/things.{group}"))
    path = test.path("things", group=f"{group}/v1")
    test.wait("the kind is served", lambda: test.http("GET", path).status == 200)
    webhook = Webhook(test, lambda r: patch(r, {"op": "add", "path": "/spec/by", "value": r["object"]["apiVersion"]}))
    rules = [rule(["things"], ["CREATE"], groups=[group], versions=["v2"])]
    config = install(test, "Mutating", entry(test, webhook, rules))
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": "b"}}

    def made():
        spec = test.create(path, thing)["spec"]
        test.http("DELETE", f"{path}/a")
        return spec if "by" in spec else None

    test.equal(settled(test, made), {"a": "b", "by": f"{group}/v2"}, "spec")
    request = webhook.requests("CREATE")[-1]
    test.equal(request["kind"], {"group": group, "version": "v2", "kind": "Thing"}, "kind")
    test.equal(request["requestKind"], {"group": group, "version": "v1", "kind": "Thing"}, "kind of the request")
    test.equal(request["requestResource"]["version"], "v1", "resource of the request")
    exact = entry(test, webhook, rules, matchPolicy="Exact")
    test.merge(config, {"webhooks": [exact]})

    def untouched():
        spec = test.create(path, thing)["spec"]
        test.http("DELETE", f"{path}/a")
        return "by" not in spec

    settled(test, untouched)


@case("what a webhook can't be called for fails or is let be, as its policy says")
def failure_policy(test):
    webhook = Webhook(test, allow)
    webhook.end()
    config = install(test, "Validating", entry(test, webhook, MAPS, **OURS))
    answer = settled(test, lambda: refused(test, ours("a")))
    test.equal((answer.status, answer.reason), (500, "InternalError"), "failure")
    test.match(
        r'^Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
        r'Post "https://127.0.0.1:\d+/\?timeout=10s": dial tcp 127.0.0.1:\d+: connect: connection refused$',
        answer.message,
    )
    lenient = entry(test, webhook, MAPS, failurePolicy="Ignore", **OURS)
    test.merge(config, {"webhooks": [lenient]})
    settled(test, lambda: test.http("POST", test.path("configmaps"), ours("b")).status == 201)


@case("who lies, floods or hangs up is a webhook that failed", seconds=8)
def liars(test):
    answers = {}
    webhook = Webhook(test, lambda request: answers["next"](request))
    config = install(test, "Mutating", entry(test, webhook, MAPS, timeoutSeconds=3, **OURS))
    answers["next"] = deny
    settled(test, lambda: refused(test, ours("a")))
    ok = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n"

    def raw(text):
        return lambda request: ok % len(text) + text

    def other_uid(request):
        return allow(request) | {"uid": "another"}

    def flood(request):
        return ok % (1 << 30) + b" " * (8 << 20)

    def redirect(request):
        return b"HTTP/1.1 307 Away\r\nlocation: https://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"

    def not_applying(request):
        return patch(request, {"op": "remove", "path": "/spec/nothing"})

    cases = [
        (other_uid, "received invalid webhook response: expected response.uid="),
        (raw(b"garbage"), "failed to call webhook: couldn't get version/kind; json parse error: "),
        (raw(b"{}"), "received invalid webhook response: webhook response was absent"),
        (
            lambda request: raw(json.dumps({"response": allow(request)}).encode())(request),
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
        (raw(b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}'), "webhook response was absent"),
        (lambda request: patch(request) | {"patch": "!"}, "illegal base64 data"),
        (lambda request: allow(request, patch="W10="), "response.patch but not response.patchType"),
        (not_applying, "Internal error occurred: "),
        (lambda request: None, "EOF"),
        (lambda request: threading.Event(), "context deadline exceeded"),
    ]
    if test.cluster.tier == "embedded":
        cases += [
            (flood, "the answer has more than 3145728 bytes"),
            (redirect, "the server responded with the status code 307"),
        ]
    for decide, text in cases:
        answers["next"] = decide
        answer = test.http("POST", test.path("configmaps"), ours("a"), status=500)
        test.true(text in answer.message, f"{answer.message!r} has no {text!r}")
    # No operations, in JSON's other word for an empty list; and of its warnings one that no header can carry.
    answers["next"] = lambda request: patch(request) | {"patch": "bnVsbA==", "warnings": ["of two\nlines", "of one"]}
    answer = test.http("POST", test.path("configmaps"), ours("a"), status=201)
    told = [value for name, value in answer.headers.items() if name.lower() == "warning"]
    test.equal(told, ['299 - "of one"'], "warnings")
    test.http("DELETE", config, status=200)


@case("the answer to the older form of a review is of that form")
def older_form(test):
    older = {"admissionReviewVersions": ["v1beta1"]} | OURS
    said = {}

    def decide(request):
        text = json.dumps({"kind": "AdmissionReview", "response": deny(request, message="no")} | said).encode()
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(text) + text

    install(test, "Validating", entry(test, Webhook(test, decide), MAPS, **older))
    told = settled(test, lambda: refused(test, ours("a"))).message
    test.equal(told, 'admission webhook "hook.example.com" denied the request: no', "of no version")
    said["apiVersion"] = "admission.k8s.io/v1beta1"
    test.equal(refused(test, ours("a")).message, told, "of its own version")
    said["apiVersion"] = "admission.k8s.io/v1"
    answer = test.http("POST", test.path("configmaps"), ours("a"), status=500)
    test.match(r"converting \(v1.AdmissionReview\) to \(v1beta1.AdmissionReview\): unknown conversion$", answer.message)


@case("other requests don't wait for a webhook, and a client that leaves costs nothing", seconds=4)
def hangs(test):
    release = threading.Event()
    webhook = Webhook(test, lambda request: release)
    install(test, "Validating", entry(test, webhook, MAPS, timeoutSeconds=30, failurePolicy="Ignore", **OURS))
    answers = []
    asking = []

    def ask():
        connection = Connection(test.credentials)
        answers.append(connection.request("POST", test.path("configmaps"), ours("slow")))

    def asked():
        if not webhook.reviews and not (asking and asking[-1].is_alive()):
            test.http("DELETE", test.path("configmaps", "slow"))
            answers.clear()
            asking.append(threading.Thread(target=ask, daemon=True))
            asking[-1].start()
        return webhook.reviews

    settled(test, asked)
    for number in range(20):
        test.create(test.path("configmaps"), objects.config_map(f"quick-{number}"))
    test.true(not answers, "the one that waits still does")
    leaving = Connection(test.credentials)
    leaving.request("GET", "/version")
    count = len(webhook.reviews)
    body = json.dumps(ours("left")).encode()
    leaving.connection.request(
        "POST", test.path("configmaps"), body,
        {"Authorization": f"Bearer {test.credentials.token}", "Content-Type": "application/json"},
    )
    test.wait("the other is asked about, too", lambda: len(webhook.reviews) > count)
    leaving.close()
    test.stays("what nobody waits for isn't made", lambda: not test.exists(test.path("configmaps", "left")))
    release.set()
    test.wait("the one who stayed is answered", lambda: answers and answers[0].status == 201)
    test.true(not test.exists(test.path("configmaps", "left")), "what nobody waits for isn't made")


@case(
    "a webhook on bindings that hangs keeps its own namespace waiting, and no other",
    needs=("scheduler",),
    alone=True,
    seconds=8,
)
def bindings_hang(test):
    """Three times as many pods as there are calls under way: without places apart they would all be theirs."""
    release = threading.Event()
    webhook = Webhook(test, lambda request: allow(request) if release.is_set() else release)
    bindings = [rule(["pods/binding"], ["CREATE"], [""], ["v1"])]
    install(test, "Validating", entry(test, webhook, bindings, timeoutSeconds=30, failurePolicy="Fail"))
    node = test.unique("roomy")
    test.make_node(node, pods="1000", labels={"row": node})
    spec = {"nodeSelector": {"row": node}, "tolerations": [TOLERATION]}
    probes = itertools.count()

    def probed():
        if not webhook.reviews:
            test.create(test.path("pods"), objects.pod(f"probe-{next(probes)}", **spec))
        return webhook.reviews

    settled(test, probed)
    total = 300
    for number in range(total):
        test.create(test.path("pods"), objects.pod(f"sick-{number:03d}", **spec))
    # More than one kind of place is taken by then.
    test.wait("the webhook has its hands full", lambda: len(webhook.reviews) >= 64)
    other = test.unique("well")
    test.make_namespace(other)
    for number in range(20):
        test.create(test.path("pods", namespace=other), objects.pod(f"well-{number:02d}", **spec))

    def placed(namespace=None):
        return [pod for pod in test.get(test.path("pods", namespace=namespace))["items"] if pod["spec"].get("nodeName")]

    # Before the first of the webhook's calls has come to its end.
    test.wait("the others have their node", lambda: len(placed(other)) == 20, seconds=20)
    test.true(not [pod for pod in placed() if pod["metadata"]["name"].startswith("sick")], "the sick still wait")
    release.set()
    test.wait("all have their node", lambda: len([p for p in placed() if p["metadata"]["name"].startswith("sick")]) == total)


@case("changes, parts and ends are put to webhooks, too", needs=("controllers",), seconds=3)
def operations(test):
    webhook = Webhook(test, allow)
    rules = [rule(["*/*"])]
    install(test, "Validating", entry(test, webhook, rules, **{"matchPolicy": "Exact"}))

    def seen(operation, resource, part=""):
        return [
            r for r in webhook.requests(operation)
            if r["resource"]["resource"] == resource and r.get("subResource", "") == part
        ]

    settled(test, lambda: refused(test, objects.config_map("probe")) or seen("CREATE", "configmaps"))
    path = test.path("configmaps", "a")
    test.create(test.path("configmaps"), objects.config_map("a", {"k": "1"}))
    test.merge(path, {"data": {"k": "2"}})
    change = seen("UPDATE", "configmaps")[-1]
    test.equal((change["oldObject"]["data"]["k"], change["object"]["data"]["k"]), ("1", "2"), "change")
    test.http("DELETE", path, status=200)
    end = seen("DELETE", "configmaps")[-1]
    test.equal((end["object"], end["oldObject"]["data"]["k"]), (None, "2"), "deletion")
    test.equal(end["options"]["kind"], "DeleteOptions", "options")
    test.create(test.path("deployments", group="apps/v1"), objects.deployment("d", replicas=0))
    test.kubectl("scale", "deployment", "d", "--replicas=1")
    scale = seen("UPDATE", "deployments", "scale")[-1]
    test.equal(scale["kind"], {"group": "autoscaling", "version": "v1", "kind": "Scale"}, "kind of a scale")
    test.equal(scale["object"]["spec"]["replicas"], 1, "replicas")
    test.wait("the pod's making is asked about", lambda: seen("CREATE", "pods"))
    pod = test.wait("a pod", lambda: test.pods("app=d"))[0]["metadata"]["name"]
    test.http("POST", test.path("pods", pod) + "/eviction", {"metadata": {"name": pod}}, status=201)
    test.equal(seen("CREATE", "pods", "eviction")[-1]["kind"]["kind"], "Eviction", "eviction")
    test.http("DELETE", test.path("configmaps") + "?labelSelector=x=y", status=200)


@case("requests of tokens and reviews are put to webhooks, too", seconds=2)
def questions(test):
    def decide(request):
        if request["operation"] == "CREATE" and request["object"]["kind"] == "TokenRequest":
            return patch(request, {"op": "replace", "path": "/spec/expirationSeconds", "value": 1234})
        return allow(request)

    token = test.path("serviceaccounts", "default") + "/token"
    changing, checking = Webhook(test, decide), Webhook(test, allow)
    ours = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": test.namespace}}}
    rules = [rule(["serviceaccounts/token"], ["CREATE"], [""]),
             rule(["localsubjectaccessreviews"], ["CREATE"], ["authorization.k8s.io"])]
    install(test, "Mutating", entry(test, changing, rules, name="changing.example.com", **ours))
    install(test, "Validating", entry(test, checking, rules, **ours))

    def seconds():
        made = test.create(token, {"spec": {"audiences": ["a"]}})
        return made if made["spec"]["expirationSeconds"] == 1234 and checking.reviews else None

    test.true(settled(test, seconds)["status"]["token"], "a token")
    first = changing.requests("CREATE")[-1]
    test.equal((first["kind"]["kind"], first["resource"]["resource"], first["subResource"], first["name"]),
               ("TokenRequest", "serviceaccounts", "token", "default"), "what it is")
    test.equal((first["object"]["spec"]["expirationSeconds"], first["object"]["metadata"].get("uid")), (3600, None),
               "what is changed")
    last = checking.requests("CREATE")[-1]
    test.true(last["object"]["metadata"]["uid"], "the account's uid")
    test.equal(last["object"]["status"].get("token"), "", "no token yet")
    review = {
        "metadata": {"namespace": test.namespace},
        "spec": {"user": "u", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": test.namespace}},
    }
    made = test.create(test.path("localsubjectaccessreviews", group="authorization.k8s.io/v1"), review)
    test.equal(made["status"]["allowed"], False, "access")
    test.equal(checking.requests("CREATE")[-1]["object"]["kind"], "LocalSubjectAccessReview", "what is checked")
    checking.decide = deny
    answer = test.http("POST", token, {}, status=400)
    test.equal(answer.message, 'admission webhook "hook.example.com" denied the request without explanation', "refusal")


@case("a refusal keeps what is there, and a dry run asks without making", seconds=2)
def keeps(test):
    def decide(request):
        return deny(request) if request["operation"] in verbs else allow(request)

    verbs = ["CREATE"]
    webhook = Webhook(test, decide)
    install(test, "Validating", entry(test, webhook, [rule(["configmaps"])], **OURS))
    answer = settled(test, lambda: refused(test, ours("a")))
    test.equal(answer.message, 'admission webhook "hook.example.com" denied the request without explanation', "message")
    test.equal(answer.status, 400, "status")
    verbs[:] = ["UPDATE", "DELETE"]
    path = test.path("configmaps", "a")
    test.create(test.path("configmaps") + "?dryRun=All", ours("a"))
    test.true(webhook.requests("CREATE")[-1]["dryRun"], "dry run")
    test.true(not test.exists(path), "a dry run makes nothing")
    test.create(test.path("configmaps"), ours("a", k="1"))
    headers = {"Content-Type": "application/merge-patch+json"}
    test.http("PATCH", path, json.dumps({"data": {"k": "2"}}), headers=headers, status=400)
    test.http("DELETE", path, status=400)
    test.http("DELETE", test.path("configmaps") + "?labelSelector=ours=yes", status=400)
    test.equal(test.get(path)["data"], {"k": "1"}, "data")
    verbs.clear()
    test.http("DELETE", test.path("configmaps") + "?labelSelector=ours=yes", status=200)
    test.true(not test.exists(path), "it is deleted")


@case("a change during a webhook's answer is asked about again, and a stale one refused")
def conflicts(test):
    path = test.path("configmaps", "a")
    headers = {"Content-Type": "application/merge-patch+json"}
    overtaken = []

    def decide(request):
        # Whoever asks first is overtaken, by a change that nobody is asked about.
        if "mine" in request["object"]["data"] and not overtaken:
            body = json.dumps({"data": {"other": "yes"}})
            overtaken.append(Connection(test.credentials).request("PATCH", path, body, headers).status)
        return allow(request)

    webhook = Webhook(test, decide)
    asked = {"objectSelector": {"matchLabels": {"ask": "yes"}}}
    install(test, "Validating", entry(test, webhook, [rule(["configmaps"])], **asked))
    probe = objects.config_map("probe", labels={"ask": "yes"})
    settled(test, lambda: refused(test, probe) or webhook.reviews)
    made = test.create(test.path("configmaps"), objects.config_map("a", {"k": "1"}))
    test.merge(path, {"metadata": {"labels": {"ask": "yes"}}, "data": {"mine": "1"}})
    test.equal(overtaken, [200], "the other's change")
    test.equal(test.get(path)["data"], {"k": "1", "mine": "1", "other": "yes"}, "both changes")
    first, second = webhook.requests("UPDATE")[-2:]
    test.true("other" not in first["oldObject"]["data"], "what the first question was about")
    test.equal(second["oldObject"]["data"], {"k": "1", "other": "yes"}, "what the second was about")
    made["metadata"]["labels"] = {"ask": "yes"}
    test.http("PUT", path, made, status=409)


@case("configurations of webhooks are checked as upstream checks them, and never put to one")
def configurations(test):
    webhook = Webhook(test, deny)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    bad = entry(test, webhook, [rule(["*", "pods"], ["*", "CREATE"], [], [""], scope="Some")], name="short",
                failurePolicy="Maybe", sideEffects="Some", timeoutSeconds=31, admissionReviewVersions=["v2"])
    bad["clientConfig"] = {"url": "http://u@h/p?q#f"}
    message = test.http("POST", path, {"metadata": {"name": "bad"}, "webhooks": [bad, bad]}, status=422).message
    for text in (
        'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots',
        "webhooks[0].rules[0].operations: Invalid value: [\"*\",\"CREATE\"]: if '*' is present, must not specify other operations",
        "webhooks[0].rules[0].apiGroups: Required value",
        "webhooks[0].rules[0].apiVersions[0]: Required value",
        "webhooks[0].rules[0].resources: Invalid value: [\"*\",\"pods\"]: if '*' is present, must not specify other resources without subresources",
        'webhooks[0].rules[0].scope: Unsupported value: "Some": supported values: "*", "Cluster", "Namespaced"',
        'webhooks[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"',
        'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme",
        'webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
        'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
        'webhooks[1].name: Duplicate value: "short"',
    ):
        test.true(text in message, f"{message!r} has no {text!r}")
    everything = [rule(["validatingwebhookconfigurations", "configmaps"])]
    config = install(test, "Validating", entry(test, webhook, everything, **OURS))
    settled(test, lambda: refused(test, ours("a")))
    test.merge(config, {"metadata": {"labels": {"ours": "yes"}}})
    test.merge(config, {"metadata": {"labels": {"ours": "still"}}})


@case("conditions in CEL are refused, for nobody evaluates them", on=("embedded",))
def conditions(test):
    webhook = Webhook(test, allow)
    made = entry(test, webhook, MAPS, matchConditions=[{"name": "never", "expression": "false"}])
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    answer = test.http("POST", path, {"metadata": {"name": test.unique("cel")}, "webhooks": [made]}, status=422)
    test.match(r"webhooks\[0\].matchConditions: Forbidden: expressions \(CEL\) are not evaluated here", answer.message)


@case("a webhook behind a Service is reached at its endpoints, by the Service's name", on=("embedded",))
def service(test):
    name = "webhook"
    webhook = Webhook(test, deny, names=[f"{name}.{test.namespace}.svc"])
    client = {"service": {"namespace": test.namespace, "name": name, "path": "/there"}, "caBundle": webhook.ca_bundle}
    install(test, "Validating", entry(test, webhook, MAPS, clientConfig=client, **OURS))
    begin = (
        'Internal error occurred: failed calling webhook "hook.example.com": failed to call webhook: '
        f'Post "https://{name}.{test.namespace}.svc:443/there?timeout=10s": '
    )
    test.equal(refused(test, ours("a")).message, begin + f'service "{name}" not found', "no service")
    test.create(
        test.path("services"),
        {"metadata": {"name": name}, "spec": {"ports": [{"name": "tls", "port": 443, "targetPort": 8443}]}},
    )
    test.equal(refused(test, ours("a")).message, begin + f'no endpoints available for service "{name}"', "no endpoints")
    test.create(
        test.path("endpointslices", group="discovery.k8s.io/v1"),
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "endpoints": [
                {"addresses": ["192.0.2.200"], "conditions": {"ready": False}},
                {"addresses": [webhooks.own_address()]},
            ],
            "ports": [{"name": "tls", "port": webhook.port}],
        },
    )
    test.match("denied the request", refused(test, ours("a")).message)
    test.equal(webhook.reviews[-1]["path"], "/there?timeout=10s", "path")


@case("a certificate of another name or authority is not believed")
def certificates(test):
    webhook, other = Webhook(test, deny), Webhook(test, deny)
    client = {"url": webhook.url(), "caBundle": other.ca_bundle}
    config = install(test, "Validating", entry(test, webhook, MAPS, clientConfig=client, **OURS))
    answer = settled(test, lambda: refused(test, ours("a")))
    test.match("tls: failed to verify certificate: x509: certificate signed by unknown authority", answer.message)
    client = {"url": f"https://localhost:{webhook.port}/", "caBundle": webhook.ca_bundle}
    test.merge(config, {"webhooks": [entry(test, webhook, MAPS, clientConfig=client, **OURS)]})
    settled(test, lambda: "unknown authority" not in refused(test, ours("a")).message)
    test.match("tls: failed to verify certificate: x509: ", refused(test, ours("a")).message)
    test.equal(webhook.reviews, [], "nobody was asked")


@case("a crash loses only what nobody was told of", on=("embedded",), seconds=3)
def crash(test):
    up = own(test)
    server = start(test, up, "--nodes=0")
    release = threading.Event()
    webhook = Webhook(test, lambda request: release if request["name"] == "waits" else allow(request))
    everywhere = {"namespaceSelector": {}}
    made = entry(test, webhook, MAPS, **everywhere, **OURS)
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    maps = "/api/v1/namespaces/default/configmaps"
    test.equal(server.request("POST", path, {"metadata": {"name": "v"}, "webhooks": [made]}).status, 201, "configuration")
    test.equal(server.request("POST", maps, ours("told")).status, 201, "one that is told")

    def ask():
        try:
            Connection(up.credentials).request("POST", maps, ours("waits"))
        except Failure:
            pass  # The server dies.

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    test.wait("the webhook is asked", lambda: len(webhook.reviews) == 2)
    up.kill()
    asking.join(30)
    release.set()
    server = start(test, up, "--nodes=0")
    test.equal(server.request("GET", f"{maps}/told").status, 200, "what was told is there")
    test.equal(server.request("GET", f"{maps}/waits").status, 404, "what waited isn't")
    # The webhook hangs up by now, and is asked: its configuration counts from the start.
    test.equal(server.request("POST", maps, ours("waits")).status, 500, "asked again")
