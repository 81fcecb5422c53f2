"""ResourceQuotas and LimitRanges, who may do what, and what a namespace that ends waits for."""

import threading

import objects
from harness import RUN, Connection, case


def requesting(name, cpu, memory="1Mi"):
    amounts = {"cpu": cpu, "memory": memory}
    made = objects.pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return made


def used(test, quota="q"):
    return test.get(test.path("resourcequotas", quota))["status"].get("used", {})


# On the genuine API server a controller counts, which is not among the genuine parts of the tests.
@case("a quota is filled, refuses what exceeds it, and has room again", on=("embedded",), each_kubectl=True)
def quota(test):
    hard = "pods=2,requests.cpu=1,count/configmaps=9,services=1"
    test.kubectl("create", "quota", "q", f"--hard={hard}")
    test.match(r"\nq .*pods: 0/2, requests.cpu: 0/1, services: 0/1", test.kubectl("get", "quota").stdout)
    text = test.refused("create", "-f", "-", stdin=objects.pod("bare"))
    test.match('pods "bare" is forbidden: failed quota: q: must specify requests.cpu for: c', text)
    test.kubectl("create", "-f", "-", stdin=requesting("a", "700m"))
    text = test.refused("create", "-f", "-", stdin=requesting("b", "400m"))
    wanted = "exceeded quota: q, requested: requests.cpu=400m, used: requests.cpu=700m, limited: requests.cpu=1"
    test.match(f'pods "b" is forbidden: {wanted}', text)
    test.kubectl("create", "-f", "-", stdin=requesting("b", "300m"))
    test.match(r"pods +2 +2\n *requests.cpu +1 +1\n", test.kubectl("describe", "quota", "q").stdout)
    test.kubectl("delete", "pod", "a", "--grace-period=0", "--force")
    test.wait("there is room again", lambda: used(test)["requests.cpu"] == "300m")
    test.kubectl("create", "-f", "-", stdin=requesting("c", "700m"))


@case("creations at once never exceed a quota", on=("embedded",))
def racing(test):
    test.kubectl("create", "quota", "q", "--hard=count/configmaps=5")
    room = 5 - int(used(test)["count/configmaps"])
    path, statuses = test.path("configmaps"), []

    def create(i):
        answer = Connection(test.credentials).request("POST", path, objects.config_map(f"m{i}"))
        statuses.append(answer.status)

    threads = [threading.Thread(target=create, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    test.equal((statuses.count(201), statuses.count(403)), (room, 20 - room), "statuses")
    test.equal(used(test)["count/configmaps"], "5", "used")


@case("a quota keeps a deployment small, which says so and grows with it", on=("embedded",), needs=RUN, seconds=5)
def deployment(test):
    test.kubectl("create", "quota", "q", "--hard=pods=1")
    test.kubectl("create", "-f", "-", stdin=objects.deployment("web", replicas=2))
    found = lambda: test.get(test.path("deployments", "web", "apps/v1"))
    failure = lambda: objects.condition(found(), "ReplicaFailure")
    test.wait("it says why", lambda: "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1" in failure().get("message", ""))
    test.equal(len(test.pods()), 1, "pods")
    test.merge(test.path("resourcequotas", "q"), {"spec": {"hard": {"pods": "2"}}})
    test.wait("it has both", lambda: found()["status"].get("readyReplicas") == 2)


@case("a limit range gives defaults and refuses what is beyond it", each_kubectl=True)
def limit_range(test):
    limits = [
        {"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "500m"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
    ]
    made = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": limits}}
    test.kubectl("create", "-f", "-", stdin=made)
    # The genuine API server looks at what it has seen by a watch.
    def defaulted():
        test.kubectl("delete", "pod", "a", "--ignore-not-found", "--grace-period=0", "--force")
        test.kubectl("create", "-f", "-", stdin=objects.pod("a"))
        return "kubernetes.io/limit-ranger" in test.pod("a")["metadata"].get("annotations", {})
    test.wait("it counts", defaulted)
    container = test.pod("a")["spec"]["containers"][0]
    test.equal(container["resources"], {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}, "resources")
    note = "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    test.equal(test.pod("a")["metadata"]["annotations"]["kubernetes.io/limit-ranger"], note, "annotation")
    text = test.refused("create", "-f", "-", stdin=requesting("b", "1"))
    test.match('pods "b" is forbidden: .*maximum cpu usage per Container is 500m, but limit is 1', text)


@case("kubectl auth can-i is told what the server does", each_kubectl=True)
def can_i(test):
    test.equal(test.kubectl("auth", "can-i", "create", "pods").stdout.strip(), "yes", "answer")
    test.match(r"\*\.\* +\[\] +\[\] +\[\*\]", test.kubectl("auth", "can-i", "--list").stdout)
    # kubectl ends with 1 when the answer is no.
    test.equal(test.kubectl("auth", "can-i", "create", "pods", "--as=jane", status=1).stdout.split()[0], "no", "answer")


@case("a namespace that ends says what it waits for, and its pods go first", on=("embedded",), needs=("controllers",))
def ending_namespace(test):
    name = test.unique("ends")
    test.make_namespace(name)
    held = objects.pod("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    test.kubectl("create", "-f", "-", stdin=held, namespace=name)
    test.kubectl("create", "-f", "-", stdin=objects.config_map("later"), namespace=name)
    test.kubectl("delete", "namespace", name, "--wait=false", namespace=False)
    told = lambda kind: objects.condition(test.get(f"/api/v1/namespaces/{name}"), kind)
    test.wait("it says what is left", lambda: told("NamespaceFinalizersRemaining").get("status") == "True")
    message = "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    test.equal(told("NamespaceFinalizersRemaining")["message"], message, "message")
    test.equal(told("NamespaceContentRemaining")["message"], "Some resources are remaining: pods. has 1 resource instances", "message")
    test.equal(told("NamespaceDeletionContentFailure")["status"], "False", "failure")
    test.true(test.exists(f"/api/v1/namespaces/{name}/configmaps/later"), "the ConfigMap went before the pod")
    test.merge(f"/api/v1/namespaces/{name}/pods/held", {"metadata": {"finalizers": None}})
    test.wait("it is gone", lambda: not test.exists(f"/api/v1/namespaces/{name}"))
