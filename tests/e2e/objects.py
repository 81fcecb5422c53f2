"""Manifests that the cases share."""

from harness import TOLERATION

FOR_EVER = None


def on(node):
    """Spec of a pod that only goes to nodes with the label e2e=NODE, as Test.make_node makes them."""
    return {"nodeSelector": {"e2e": node}, "tolerations": [TOLERATION]}


def container(cpu=None, memory=None, image="busybox", extended=None):
    requests = {}
    if cpu is not None:
        requests["cpu"] = cpu
    if memory is not None:
        requests["memory"] = memory
    resources = {"requests": requests} if requests else {}
    if extended:
        resources = {"requests": requests | extended, "limits": extended}
    made = {"name": "c", "image": image}
    return made | ({"resources": resources} if resources else {})


def pod(name, *, labels=None, annotations=None, cpu=None, memory=None, extended=None, **spec):
    metadata = {"name": name}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container(cpu, memory, extended=extended)]} | spec,
    }


def short_pod(name, *, run_for="100ms", exit_code=0, **options):
    """A pod that ends by itself on a simulated node."""
    annotations = {"berth.dev/run-for": run_for, "berth.dev/exit-code": str(exit_code)}
    return pod(name, annotations=annotations, restartPolicy="Never", **options)


def config_map(name, data=None, labels=None):
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


def deployment(
    name, *, replicas=1, image="nginx:1", cpu=None, spec=None, pod_spec=None, annotations=None
):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}}
    if annotations:
        template["metadata"]["annotations"] = annotations
    template["spec"] = {"containers": [container(cpu, image=image)]} | (pod_spec or {})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        | (spec or {}),
    }


def replica_set(name, *, replicas=1):
    made = deployment(name, replicas=replicas)
    made["kind"] = "ReplicaSet"
    return made


def job(name, *, run_for=FOR_EVER, exit_code=0, pod_spec=None, **spec):
    annotations = {"berth.dev/exit-code": str(exit_code)}
    if run_for is not FOR_EVER:
        annotations["berth.dev/run-for"] = run_for
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [container()]} | (pod_spec or {}),
            }
        }
        | spec,
    }


def condition(item, kind):
    """A condition of an object's status; {} when there is none."""
    for found in item.get("status", {}).get("conditions", []):
        if found["type"] == kind:
            return found
    return {}


def is_true(item, kind):
    return condition(item, kind).get("status") == "True"
