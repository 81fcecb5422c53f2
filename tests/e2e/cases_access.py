"""Who may do what: roles and bindings, tokens of ServiceAccounts, reviews."""

import base64
import hashlib
import json
import subprocess

import objects
from harness import ROOT, case

RBAC = "rbac.authorization.k8s.io/v1"
# How a signature of PKCS #1 v1.5 by SHA-256 ends, before the digest.
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def account(test, name="s"):
    test.kubectl("create", "serviceaccount", name)
    return f"system:serviceaccount:{test.namespace}:{name}"


def grant(test, name, subject, *rule):
    """A Role of one rule, as kubectl's options, and its binding."""
    test.kubectl("create", "role", name, *rule)
    test.kubectl("create", "rolebinding", name, f"--role={name}", subject)


def token_of(test, *options):
    return test.kubectl("create", "token", "s", *options).stdout.strip()


def as_account(test, token, *arguments, status=0):
    """kubectl with that token alone: it would show the administrator's certificate beside it."""
    return test.kubectl(f"--token={token}", "--client-certificate=", "--client-key=", *arguments, status=status)


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def refusal(test, method, path, body=None, **options):
    return test.http(method, path, body, status=403, **options).message


# The genuine API server decides by what it has seen by a watch: what was granted may take a while.
def may(test, user, *question):
    return test.kubectl("auth", "can-i", *question, f"--as={user}", status=None).stdout.strip() == "yes"


@case("a ServiceAccount may do what its bindings say", each_kubectl=True)
def account_access(test):
    user = account(test)
    token = token_of(test)
    where = f'in the namespace "{test.namespace}"'
    text = as_account(test, token, "get", "pods", status=1).stderr
    test.match(f'pods is forbidden: User "{user}" cannot list resource "pods" in API group "" {where}', text)
    grant(test, "reader", f"--serviceaccount={test.namespace}:s", "--verb=get,list", "--resource=pods,pods/log,deployments.apps")
    test.wait("it may list pods", lambda: may(test, user, "list", "pods"))
    as_account(test, token, "get", "pods")
    as_account(test, token, "get", "deployments")
    text = as_account(test, token, "get", "secrets", status=1).stderr
    test.match(f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" {where}', text)
    text = as_account(test, token, "delete", "pod", "x", status=1).stderr
    test.match(f'pods "x" is forbidden: User "{user}" cannot delete resource "pods" in API group "" {where}', text)
    text = as_account(test, token, "get", "pods", "-A", status=1).stderr
    test.match('cannot list resource "pods" in API group "" at the cluster scope', text)
    for question, wanted in ((("get", "pods"), True), (("get", "pods", "--subresource=log"), True), (("get", "pods", "--subresource=status"), False),
                             (("create", "pods"), False), (("list", "pods", "-A"), False), (("get", "/api"), True), (("get", "/metrics"), False)):
        test.equal(may(test, user, *question), wanted, f"may {question}")
    listed = test.kubectl("auth", "can-i", "--list", f"--as={user}").stdout
    test.match(r"pods/log +\[\] +\[\] +\[get list\]", listed)
    test.match(r"selfsubjectreviews.authentication.k8s.io +\[\] +\[\] +\[create\]", listed)
    test.match(rf"Username +{user}\n", as_account(test, token, "auth", "whoami").stdout)
    test.kubectl("delete", "rolebinding", "reader")
    test.wait("it may no longer", lambda: not may(test, user, "list", "pods"))


@case("whom RBAC lets get /metrics is told them, and nobody else")
def metrics(test):
    user = account(test)
    name = f"metrics-{test.namespace}"
    test.cleanups.append(lambda: test.kubectl("delete", f"clusterrole/{name}", f"clusterrolebinding/{name}", "--ignore-not-found"))
    token = token_of(test)
    told = refusal(test, "GET", "/metrics", token=token)
    test.equal(told, f'forbidden: User "{user}" cannot get path "/metrics"', "message")
    test.kubectl("create", "clusterrole", name, "--verb=get", "--non-resource-url=/metrics")
    test.kubectl("create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount={test.namespace}:s")
    test.wait("it may", lambda: test.http("GET", "/metrics", token=token).status == 200)
    test.match(rb"(?m)^# TYPE [a-z_]+ (counter|gauge|histogram)$", test.http("GET", "/metrics", token=token, status=200).body)
    told = refusal(test, "POST", "/metrics", {}, token=token)
    test.equal(told, f'forbidden: User "{user}" cannot post path "/metrics"', "message")
    test.kubectl("delete", "clusterrolebinding", name)
    test.wait("it may no longer", lambda: test.http("GET", "/metrics", token=token).status == 403)
    test.http("GET", "/metrics", token=None, status=401)


@case("rules of names, of groups and of bindings to nothing decide alike on both servers")
def rules(test):
    user = account(test)
    grant(test, "named", f"--serviceaccount={test.namespace}:s", "--verb=get,list", "--resource=configmaps", "--resource-name=one")
    test.kubectl("create", "rolebinding", "lost", "--clusterrole=nosuch", f"--group=system:serviceaccounts:{test.namespace}")
    test.wait("it may get one", lambda: may(test, user, "get", "configmap/one"))
    token = token_of(test)
    path = test.path("configmaps")
    test.http("GET", path + "/one", token=token, status=404)
    test.http("GET", path + "?fieldSelector=metadata.name%3Done", token=token, status=200)
    why = f'in the namespace "{test.namespace}": RBAC: clusterrole.rbac.authorization.k8s.io "nosuch" not found'
    lost = lambda: refusal(test, "GET", path, token=token)
    test.wait("it says what is lost", lambda: lost().endswith("not found"))
    test.equal(lost(), f'configmaps is forbidden: User "{user}" cannot list resource "configmaps" in API group "" {why}', "message")
    told = refusal(test, "GET", path + "/two", token=token)
    test.equal(told, f'configmaps "two" is forbidden: User "{user}" cannot get resource "configmaps" in API group "" {why}', "message")
    told = refusal(test, "GET", "/api/v1/nosuch?watch=1", token=token)
    test.equal(told, f'nosuch is forbidden: User "{user}" cannot watch resource "nosuch" in API group "" at the cluster scope', "message")
    told = refusal(test, "POST", "/metrics", {}, token=token)
    test.equal(told, f'forbidden: User "{user}" cannot post path "/metrics"', "message")
    review = {"spec": {"user": user, "resourceAttributes": {"verb": "get", "resource": "configmaps", "name": "one", "namespace": test.namespace}}}
    status = test.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]
    subject = f'ServiceAccount "s/{test.namespace}"'
    test.equal(status, {"allowed": True, "reason": f'RBAC: allowed by RoleBinding "named/{test.namespace}" of Role "named" to {subject}'}, "status")


@case("nobody gives what he has not, but by the verbs escalate and bind")
def escalation(test):
    user = account(test)
    grant(test, "giver", f"--serviceaccount={test.namespace}:s", "--verb=create,update,patch", "--resource=roles,rolebindings")
    test.wait("it may create roles", lambda: may(test, user, "create", "roles"))
    token = token_of(test)
    path = test.path("roles", group=RBAC)
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": ["", "apps"], "resources": ["pods", "roles"], "verbs": ["list", "get"], "resourceNames": ["x"]}]}
    told = refusal(test, "POST", path, role, token=token)
    groups = f'["system:serviceaccounts" "system:serviceaccounts:{test.namespace}" "system:authenticated"]'
    start = f'roles.rbac.authorization.k8s.io "r" is forbidden: user "{user}" (groups={groups}) is attempting to grant RBAC permissions not currently held:\n'
    rest = [f'{{APIGroups:["{g}"], Resources:["{r}"], ResourceNames:["x"], Verbs:["list" "get"]}}' for g in ("", "apps") for r in ("pods", "roles")]
    test.equal(told, start + "\n".join(rest), "message")
    own = {"metadata": {"name": "own"}, "rules": [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}]}
    test.http("POST", path, own, token=token, status=201)
    binding = {"metadata": {"name": "b"}, "subjects": [], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
    bindings = test.path("rolebindings", group=RBAC)
    told = refusal(test, "POST", bindings, binding, token=token)
    test.match(r'rolebindings.rbac.authorization.k8s.io "b" is forbidden: user .*\n\{APIGroups:\["\*"\], Resources:\["\*"\], Verbs:\["\*"\]\}\n\{NonResourceURLs:\["\*"\], Verbs:\["\*"\]\}', told)
    missing = binding | {"roleRef": binding["roleRef"] | {"kind": "Role", "name": "nosuch"}}
    answer = test.http("POST", bindings, missing, token=token, status=404)
    # By the resource that was asked for.
    test.equal(answer.message, 'rolebindings.rbac.authorization.k8s.io "nosuch" not found', "message")
    test.kubectl("create", "rolebinding", "lost", "--clusterrole=nosuch", f"--serviceaccount={test.namespace}:s")
    test.wait("it says what is lost", lambda: "resolution errors" in refusal(test, "POST", path, role, token=token))
    told = refusal(test, "POST", path, role, token=token)
    test.true(told.endswith('"get"]}; resolution errors: [roles.rbac.authorization.k8s.io "nosuch" not found]'), told)
    grant(test, "bind", f"--serviceaccount={test.namespace}:s", "--verb=bind", "--resource=clusterroles.rbac.authorization.k8s.io")
    grant(test, "escalate", f"--serviceaccount={test.namespace}:s", "--verb=escalate", "--resource=roles.rbac.authorization.k8s.io")
    test.wait("it may bind", lambda: test.http("POST", bindings, binding, token=token).status in (201, 409))
    test.wait("it may escalate", lambda: test.http("POST", path, role, token=token).status in (201, 409))


@case("acting as somebody else is for who may")
def impersonation(test):
    user = account(test)
    token = token_of(test)
    told = refusal(test, "GET", "/api", token=token, headers={"Impersonate-User": "jane"})
    test.equal(told, f'forbidden: User "{user}" cannot impersonate-on:user-info:get path "/api"', "message")
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "devs", "Impersonate-Uid": "7", "Impersonate-Extra-a%2fb": "c"}
    status = test.http("POST", review, {}, headers=headers, status=201).json()["status"]
    test.equal(status, {"userInfo": {"username": "jane", "uid": "7", "groups": ["devs", "system:authenticated"], "extra": {"a/b": ["c"]}}}, "status")
    status = test.http("POST", review, {}, headers={"Impersonate-User": user}, status=201).json()["status"]
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{test.namespace}", "system:authenticated"]
    test.equal(status, {"userInfo": {"username": user, "groups": groups}}, "status")
    answer = test.http("GET", "/api", headers={"Impersonate-Group": "g"}, status=400)
    test.match("without impersonating a user name", answer.message)


@case("a fresh cluster has upstream's roles and bindings")
def fresh(test):
    made = subprocess.run([ROOT / "tools/roles/make", test.program.path, "--print"], capture_output=True, text=True,
                          env=test.program.environment(test.cluster.kubeconfig))
    test.equal(made.stderr, "", "stderr")
    test.equal(made.stdout, (ROOT / "src/apiserver/bootstrap_roles.inc").read_text(), "roles")


@case("a ClusterRole that aggregates is the sum of others", needs=frozenset({"controllers"}))
def aggregation(test):
    path, name = f"/apis/{RBAC}/clusterroles", test.namespace
    rule = lambda resource: {"apiGroups": [""], "resources": [resource], "verbs": ["get"]}
    part = lambda letter: {"metadata": {"name": f"{name}-{letter}", "labels": {name: "yes"}}, "rules": [rule(letter)]}
    whole = {"metadata": {"name": name}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {name: "yes"}}]}}
    for document in (whole, part("b"), part("a")):
        test.create(path, document)
        test.cleanups.append(lambda gone=document["metadata"]["name"]: test.http("DELETE", f"{path}/{gone}"))
    rules = lambda: test.get(f"{path}/{name}")["rules"]
    test.wait("it has both", lambda: rules() == [rule("a"), rule("b")])
    test.http("DELETE", f"{path}/{name}-a", status=200)
    test.wait("it has one", lambda: rules() == [rule("b")])
    test.true(len(test.get(f"{path}/admin")["rules"]) > 20, "admin has few rules")


@case("a token says whom it is for, anybody can verify it, and it ends with what it is bound to", each_kubectl=True)
def tokens(test):
    user = account(test)
    test.kubectl("create", "-f", "-", stdin=objects.pod("p") | {"spec": objects.pod("p")["spec"] | {"serviceAccountName": "s"}})
    pod = test.pod("p")
    token = token_of(test, "--bound-object-kind=Pod", "--bound-object-name=p", "--duration=20m")
    header, payload, signature = token.split(".")
    claims = json.loads(decoded(payload))
    uid = test.get(test.path("serviceaccounts", "s"))["metadata"]["uid"]
    told = claims["kubernetes.io"]
    told.pop("node", None)
    test.equal(told, {"namespace": test.namespace, "serviceaccount": {"name": "s", "uid": uid}, "pod": {"name": "p", "uid": pod["metadata"]["uid"]}}, "claims")
    test.equal((claims["sub"], claims["aud"], claims["iss"]), (user, ["https://kubernetes.default.svc"], "https://kubernetes.default.svc"), "claims")
    test.equal((claims["exp"] - claims["iat"], claims["nbf"] - claims["iat"]), (1200, 0), "times")
    # What others verify it by.
    configuration = test.get("/.well-known/openid-configuration")
    test.equal(configuration["issuer"], claims["iss"], "issuer")
    test.true(configuration["jwks_uri"].endswith("/openid/v1/jwks"), configuration)
    test.http("GET", "/openid/v1/jwks", headers={"Accept": "application/json"}, status=406)
    (key,) = test.http("GET", "/openid/v1/jwks", headers={"Accept": "*/*"}, status=200).json()["keys"]
    test.equal(json.loads(decoded(header)), {"alg": "RS256", "kid": key["kid"]}, "header")
    modulus, exponent = (int.from_bytes(decoded(key[part]), "big") for part in "ne")
    opened = pow(int.from_bytes(decoded(signature), "big"), exponent, modulus).to_bytes((modulus.bit_length() + 7) // 8, "big")
    test.true(opened.endswith(b"\x00" + SHA256_PREFIX + hashlib.sha256(f"{header}.{payload}".encode()).digest()), "the signature is another")
    # Who it is.
    review = lambda **more: test.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": token, **more}})["status"]
    status = review()
    test.equal((status["authenticated"], status["user"]["username"], status["user"]["uid"]), (True, user, uid), "review")
    test.equal(status["user"]["extra"]["authentication.kubernetes.io/pod-name"], ["p"], "extra")
    test.match("is invalid for the target audiences", review(audiences=["q"])["error"])
    test.http("GET", "/api", token=token, status=200)
    last = token[:-1] + ("A" if token[-1] != "A" else "Q")
    test.http("GET", "/api", token=last.replace(payload, payload[:-1]), status=401)
    test.kubectl("delete", "pod", "p", "--grace-period=0", "--force")
    test.wait("it ends with the pod", lambda: test.http("GET", "/api", token=token).status == 401)
    test.match("service account token has been invalidated", review()["error"])


@case("requests for tokens that are none are refused in upstream's words")
def bad_tokens(test):
    account(test)
    path = test.path("serviceaccounts", "s/token")
    bound = lambda **reference: {"spec": {"boundObjectRef": reference}}
    for body, status, wanted in (
        ({"spec": {"expirationSeconds": 599}}, 422, 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes'),
        ({"spec": {"expirationSeconds": 1 << 33}}, 422, 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 8589934592: may not specify a duration larger than 2^32 seconds'),
        ({"metadata": {"name": "x"}}, 422, 'TokenRequest.authentication.k8s.io "s" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified'),
        (bound(kind="Pod", apiVersion="v1", name="nosuch"), 404, 'pods "nosuch" not found'),
        (bound(kind="Lease", apiVersion="coordination.k8s.io/v1", name="x"), 400, "cannot bind token to object of type coordination.k8s.io/v1, Kind=Lease"),
    ):
        test.equal(test.http("POST", path, body, status=status).message, wanted, "message")
    test.http("GET", path, status=405)
    test.http("POST", test.path("serviceaccounts", "nosuch/token"), {}, status=404)
