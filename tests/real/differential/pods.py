"""Random pods: what they ask of nodes, of other pods and of volumes. Each part is drawn by itself."""

# Stands for a claim of the pod's own, that waits for its first consumer, of the class behind it.
FRESH = "fresh:"
CLASSES = {"anywhere": [], "in-za-zb": ["za", "zb"]}
EXTENDED = "example.com/gpu"
TAINTS = ("dedicated", "noisy", "example.com/kind")
APPS = ("web", "db", "cache")
IMAGES = (("small", 30), ("middle", 400), ("large", 1500), ("huge", 9000))
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def make(rng, namespaces, nodes):
    """A pod without a name."""
    labels = {"app": rng.choice(APPS)}
    if rng.random() < 0.4:
        labels["tier"] = rng.choice(("front", "back"))
    if rng.random() < 0.4:
        labels["pod-template-hash"] = rng.choice(("one", "two"))
    spec = {"containers": [container(rng, "c")], "affinity": {}, "tolerations": [], "terminationGracePeriodSeconds": 600}
    parts = [chance_part for chance_part in PARTS if rng.random() < chance_part[0]]
    namespace = rng.choice(namespaces)
    for _, part in parts:
        part(rng, spec, nodes)
    if namespace == namespaces[0] and rng.random() < 0.3:
        claims(rng, spec)
    if rng.random() < 0.06:
        source = {"claimName": FRESH + rng.choice(sorted(CLASSES))}
        spec.setdefault("volumes", []).append({"name": "fresh", "persistentVolumeClaim": source})
    return {"metadata": {"namespace": namespace, "labels": labels}, "spec": spec}


def container(rng, name):
    image, _ = rng.choice(IMAGES)
    requests = {}
    if rng.random() < 0.8:
        requests["cpu"] = rng.choice(("100m", "250m", "500m", "1", "1500m"))
    if rng.random() < 0.7:
        requests["memory"] = rng.choice(("64Mi", "200Mi", "1Gi", "3Gi"))
    if rng.random() < 0.1:
        requests["ephemeral-storage"] = rng.choice(("1Gi", "20Gi"))
    return {"name": name, "image": f"example.com/{image}:1", "resources": {"requests": requests}}


def more_containers(rng, spec, nodes):
    spec["containers"].append(container(rng, "c2"))


def first_containers(rng, spec, nodes):
    made = [container(rng, "i1")]
    if rng.random() < 0.5:
        made.insert(rng.randint(0, 1), container(rng, "side") | {"restartPolicy": "Always"})
    spec["initContainers"] = made


def pod_level(rng, spec, nodes):
    spec["resources"] = {"requests": {"cpu": rng.choice(("2", "3")), "memory": "7Gi"}}


def overhead(rng, spec, nodes):
    spec["runtimeClassName"] = "heavy"


def extended(rng, spec, nodes):
    amount = {EXTENDED: rng.choice(("1", "2"))}
    resources = spec["containers"][0]["resources"]
    resources["requests"] = resources["requests"] | amount
    resources["limits"] = amount


def selector(rng, spec, nodes):
    spec["nodeSelector"] = rng.choice(({"disk": "ssd"}, {"disk": "hdd"}, {ZONE: "za"}, {"size": "2"}))


def expression(rng):
    key, values = rng.choice((("disk", ("ssd", "hdd")), (ZONE, ("za", "zb", "zc")), ("size", ("1", "2", "3", "4"))))
    operator = rng.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in ("Gt", "Lt"):
        return {"key": "size", "operator": operator, "values": [rng.choice(("1", "2", "3"))]}
    if operator in ("Exists", "DoesNotExist"):
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": rng.sample(values, rng.randint(1, len(values)))}


def term(rng, nodes):
    made = {}
    if nodes and rng.random() < 0.2:
        operator = rng.choice(("In", "NotIn"))
        made["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [rng.choice(nodes)]}]
    if not made or rng.random() < 0.3:
        made["matchExpressions"] = [expression(rng) for _ in range(rng.randint(1, 2))]
    return made


def required_nodes(rng, spec, nodes):
    terms = [term(rng, nodes) for _ in range(rng.randint(1, 2))]
    affinity = spec["affinity"].setdefault("nodeAffinity", {})
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def preferred_nodes(rng, spec, nodes):
    terms = [{"weight": rng.randint(1, 100), "preference": term(rng, nodes)} for _ in range(rng.randint(1, 3))]
    spec["affinity"].setdefault("nodeAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = terms


def tolerations(rng, spec, nodes):
    for key in rng.sample(TAINTS, rng.randint(1, 3)):
        made = {"key": key} | rng.choice(({"operator": "Exists"}, {"value": "x"}, {"value": "y"}))
        if rng.random() < 0.6:
            made["effect"] = rng.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))
        spec["tolerations"].append(made)
    if rng.random() < 0.2:
        spec["tolerations"].append({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"})


def ports(rng, spec, nodes):
    port = rng.choice((8080, 8081))
    made = {"containerPort": port, "hostPort": port, "protocol": rng.choice(("TCP", "TCP", "UDP"))}
    if rng.random() < 0.4:
        made["hostIP"] = rng.choice(("10.0.0.1", "10.0.0.2", "0.0.0.0"))
    spec["containers"][0]["ports"] = [made]


def pod_selector(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return {"matchExpressions": [{"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}]}
    if kind == 1:
        return {"matchExpressions": [{"key": "tier", "operator": rng.choice(("Exists", "DoesNotExist"))}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def spread(rng, spec, nodes):
    made = {}
    for _ in range(rng.randint(1, 2)):
        constraint = {
            "maxSkew": rng.randint(1, 3),
            "topologyKey": rng.choice((HOSTNAME, ZONE, ZONE, "disk")),
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": pod_selector(rng),
        }
        if constraint["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.3:
            constraint["minDomains"] = rng.randint(1, 4)
        if rng.random() < 0.3:
            constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.3:
            constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
        if rng.random() < 0.2:
            constraint["matchLabelKeys"] = ["pod-template-hash"]
        made[constraint["topologyKey"], constraint["whenUnsatisfiable"]] = constraint
    spec["topologySpreadConstraints"] = list(made.values())


def pod_term(rng):
    made = {"topologyKey": rng.choice((HOSTNAME, ZONE, ZONE, "disk")), "labelSelector": pod_selector(rng)}
    kind = rng.randrange(6)
    if kind == 0:
        made["namespaces"] = rng.sample(("na", "nb", "nc"), rng.randint(1, 2))
    elif kind == 1:
        made["namespaceSelector"] = rng.choice(({}, {"matchLabels": {"team": "red"}}))
    if rng.random() < 0.15:
        made[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["pod-template-hash"]
    return made


def pod_terms(kind, preferred):
    def part(rng, spec, nodes):
        terms = [pod_term(rng) for _ in range(rng.randint(1, 2))]
        affinity = spec["affinity"].setdefault(kind, {})
        if preferred:
            weighted = [{"weight": rng.randint(1, 100), "podAffinityTerm": made} for made in terms]
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = weighted
        else:
            affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms

    return part


def priority(rng, spec, nodes):
    """None of these evicts: who is asked second is to find what the first found."""
    spec["priorityClassName"] = rng.choice(("low", "middle", "high"))


def claims(rng, spec):
    chosen = rng.sample(range(6), rng.randint(1, 2))
    spec["volumes"] = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"claim-{i}"}} for i in chosen]


def disk(rng, spec, nodes):
    source = {"pdName": rng.choice(("disk-1", "disk-2")), "readOnly": rng.random() < 0.4}
    spec.setdefault("volumes", []).append({"name": "disk", "gcePersistentDisk": source})


PARTS = (
    (0.1, more_containers),
    (0.1, first_containers),
    (0.05, pod_level),
    (0.05, overhead),
    (0.12, extended),
    (0.1, selector),
    (0.15, required_nodes),
    (0.15, preferred_nodes),
    (0.35, tolerations),
    (0.2, ports),
    (0.25, spread),
    (0.12, pod_terms("podAffinity", False)),
    (0.15, pod_terms("podAffinity", True)),
    (0.15, pod_terms("podAntiAffinity", False)),
    (0.15, pod_terms("podAntiAffinity", True)),
    (0.2, priority),
    (0.04, disk),
)


def fresh_class(pod):
    """The class of its own claim; None where it has none."""
    for volume in pod["spec"].get("volumes", []):
        name = volume.get("persistentVolumeClaim", {}).get("claimName", "")
        if name.startswith(FRESH):
            return name.removeprefix(FRESH)
    return None


def with_claim(pod, name):
    """The pod with its own claim of this name."""
    volumes = [
        volume | {"persistentVolumeClaim": {"claimName": name}} if volume["name"] == "fresh" else volume
        for volume in pod["spec"]["volumes"]
    ]
    return pod | {"spec": pod["spec"] | {"volumes": volumes}}
