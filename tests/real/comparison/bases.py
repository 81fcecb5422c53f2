"""A valid object of each kind that requests are made of. Small changes of them are in stories.py."""

LABELS = {"app": "a", "tier": "web"}


def container(name="c"):
    return {
        "name": name,
        "image": "registry.k8s.io/pause:3.10",
        "command": ["/pause"],
        "args": ["--quiet"],
        "ports": [{"name": "http", "containerPort": 8080}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "128Mi"},
        },
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        "livenessProbe": {"exec": {"command": ["true"]}, "failureThreshold": 2},
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False},
    }


def pod_spec(**more):
    return {
        "automountServiceAccountToken": False,
        "containers": [container()],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 60}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
                    ]
                }
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 10,
                        "podAffinityTerm": {
                            "labelSelector": {"matchLabels": {"app": "a"}},
                            "topologyKey": "kubernetes.io/hostname",
                        },
                    }
                ]
            },
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ],
    } | more


def template(**more):
    return {"metadata": {"labels": dict(LABELS)}, "spec": pod_spec(**more)}


SELECTOR = {"matchLabels": {"app": "a"}}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "slow",
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIM_OF_A_POD = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "storageClassName": "slow"}

# Where the namespace of a story goes.
NAMESPACE = "NAMESPACE"

# What stands behind a dot tells two of the same resource apart.
# By resource: group and version, kind, whether it is of a namespace, and the rest of the object.
BASES = {
    "pods": ("v1", "Pod", True, {"spec": pod_spec()}),
    "services": (
        "v1", "Service", True,
        {"spec": {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], "clusterIP": "None"}},
    ),
    "configmaps": ("v1", "ConfigMap", True, {"data": {"a": "1", "b.conf": "x = 2\n"}, "binaryData": {"c": "AAEC"}}),
    "secrets": ("v1", "Secret", True, {"type": "Opaque", "data": {"a": "c2VjcmV0"}, "stringData": {"b": "plain"}}),
    "serviceaccounts": ("v1", "ServiceAccount", True, {"automountServiceAccountToken": False}),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim", True, {"spec": CLAIM}),
    "podtemplates": ("v1", "PodTemplate", True, {"template": template()}),
    "replicationcontrollers": (
        "v1", "ReplicationController", True,
        {"spec": {"replicas": 2, "selector": {"app": "a"}, "template": template()}},
    ),
    "resourcequotas": ("v1", "ResourceQuota", True, {"spec": {"hard": {"pods": "1k", "requests.cpu": "1k", "limits.memory": "1Ti"}}}),
    "limitranges": (
        "v1", "LimitRange", True,
        {"spec": {"limits": [{"type": "Container", "max": {"cpu": "4"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}]}},
    ),
    "endpoints": (
        "v1", "Endpoints", True,
        {"subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"name": "http", "port": 80}]}]},
    ),
    "deployments": (
        "apps/v1", "Deployment", True,
        {
            "spec": {
                "replicas": 3,
                "selector": SELECTOR,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "minReadySeconds": 1,
                "revisionHistoryLimit": 3,
                "template": template(),
            }
        },
    ),
    "replicasets": ("apps/v1", "ReplicaSet", True, {"spec": {"replicas": 2, "selector": SELECTOR, "template": template()}}),
    "statefulsets": (
        "apps/v1", "StatefulSet", True,
        {
            "spec": {
                "replicas": 2,
                "serviceName": "db",
                "selector": SELECTOR,
                "template": template(),
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
            }
        },
    ),
    "daemonsets": (
        "apps/v1", "DaemonSet", True,
        {"spec": {"selector": SELECTOR, "template": template(), "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}}},
    ),
    "controllerrevisions": ("apps/v1", "ControllerRevision", True, {"revision": 1, "data": {"spec": {"a": 1}}}),
    "jobs": (
        "batch/v1", "Job", True,
        {
            "spec": {
                "parallelism": 2,
                "completions": 4,
                "completionMode": "Indexed",
                "backoffLimit": 3,
                "ttlSecondsAfterFinished": 100,
                "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod_spec(restartPolicy="Never")},
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onExitCodes": {"containerName": "c", "operator": "In", "values": [1, 2]}}]
                },
            }
        },
    ),
    "cronjobs": (
        "batch/v1", "CronJob", True,
        {
            "spec": {
                "schedule": "*/5 * * * *",
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 2,
                "jobTemplate": {"spec": {"template": {"spec": pod_spec(restartPolicy="OnFailure")}}},
            }
        },
    ),
    "poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget", True, {"spec": {"minAvailable": "50%", "selector": SELECTOR}}),
    "leases": (
        "coordination.k8s.io/v1", "Lease", True,
        {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000000Z"}},
    ),
    "endpointslices": (
        "discovery.k8s.io/v1", "EndpointSlice", True,
        {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": True}}],
            "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
        },
    ),
    "roles": ("rbac.authorization.k8s.io/v1", "Role", True, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}),
    "rolebindings": (
        "rbac.authorization.k8s.io/v1", "RoleBinding", True,
        {
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        },
    ),
    "networkpolicies": (
        "networking.k8s.io/v1", "NetworkPolicy", True,
        {"spec": {"podSelector": SELECTOR, "policyTypes": ["Ingress"], "ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}},
    ),
    "ingresses": (
        "networking.k8s.io/v1", "Ingress", True,
        {
            "spec": {
                "rules": [
                    {
                        "host": "a.example.com",
                        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "a", "port": {"number": 80}}}}]},
                    }
                ]
            }
        },
    ),
    "namespaces": ("v1", "Namespace", False, {}),
    "nodes": (
        "v1", "Node", False,
        {"spec": {"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}], "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}},
    ),
    "persistentvolumes": (
        "v1", "PersistentVolume", False,
        {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "slow",
                "hostPath": {"path": "/tmp/x"},
            }
        },
    ),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass", False, {"value": 1000, "description": "some", "preemptionPolicy": "Never"}),
    "storageclasses": (
        "storage.k8s.io/v1", "StorageClass", False,
        {"provisioner": "example.com/disk", "parameters": {"type": "ssd"}, "volumeBindingMode": "WaitForFirstConsumer"},
    ),
    "csinodes": ("storage.k8s.io/v1", "CSINode", False, {"spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["zone"], "allocatable": {"count": 3}}]}}),
    "csidrivers": ("storage.k8s.io/v1", "CSIDriver", False, {"spec": {"attachRequired": False, "podInfoOnMount": True}}),
    "runtimeclasses": ("node.k8s.io/v1", "RuntimeClass", False, {"handler": "h", "overhead": {"podFixed": {"cpu": "10m"}}}),
    "clusterroles": ("rbac.authorization.k8s.io/v1", "ClusterRole", False, {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
    "events": (
        "v1", "Event", True,
        {
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": NAMESPACE, "fieldPath": "spec.containers{c}"},
            "reason": "Started",
            "message": "a container started",
            "type": "Normal",
            "source": {"component": "kubelet", "host": "n"},
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:06Z",
            "count": 2,
        },
    ),
    "events.events.k8s.io": (
        "events.k8s.io/v1", "Event", True,
        {
            "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": NAMESPACE},
            "reason": "Started",
            "note": "a container started",
            "type": "Normal",
            "action": "Start",
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "reportingController": "example.com/starter",
            "reportingInstance": "starter-0",
        },
    ),
    "widgets": (
        "cmp.example.com/v1", "Widget", True,
        {
            "spec": {
                "size": 2,
                "text": "abc",
                "color": "red",
                "at": "2026-01-02T03:04:05Z",
                "port": "http",
                "days": ["mon", "tue"],
                "hours": [1, 2],
                "ports": [{"number": 80, "name": "web"}, {"number": 53, "protocol": "UDP"}],
                "tags": {"a": "b"},
                "selector": {"a": "b"},
                "any": {"deep": {"er": 1}, "list": [1]},
                "ratio": 0.5,
                "nothing": None,
                "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "labels": {"a": "b"}}, "data": {"a": "b"}},
            }
        },
    ),
    "widgets.v1beta1": ("cmp.example.com/v1beta1", "Widget", True, {"spec": {"size": 2, "text": "abc", "days": ["mon"], "more": {"a": 1}}}),
    "gadgets": ("cmp.example.com/v1", "Gadget", False, {"size": 2, "open": {"a": [1, {"b": "c"}]}, "status": {"ready": True}}),
}

# Other valid objects of some kinds: what stands in them in place of the same in the base, None for
# nothing. Members that not many objects have are asked about with them.
VARIANTS = {
    "pods": [
        {
            "spec": pod_spec(
                volumes=[
                    {"name": "scratch", "hostPath": {"path": "/tmp/a", "type": "Directory"}},
                    {"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p/q", "mode": 256}]}},
                    {"name": "b", "configMap": {"name": "m", "defaultMode": 420, "optional": True}},
                    {"name": "c", "nfs": {"server": "s", "path": "/p"}},
                    {"name": "d", "csi": {"driver": "d.example.com", "nodePublishSecretRef": {"name": "s"}}},
                    {"name": "e", "iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 1}},
                    {"name": "f", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
                    {"name": "g", "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM_OF_A_POD}}},
                    {"name": "h", "image": {"reference": "registry.k8s.io/pause:3.10", "pullPolicy": "Always"}},
                ]
            )
        },
        {
            "spec": pod_spec(
                volumes=[
                    {
                        "name": "scratch",
                        "projected": {
                            "sources": [
                                {"secret": {"name": "s", "items": [{"key": "k", "path": "s/k"}]}},
                                {"configMap": {"name": "m"}},
                                {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                            ]
                        },
                    },
                    {
                        "name": "info",
                        "downwardAPI": {
                            "items": [{"path": "cpu", "resourceFieldRef": {"containerName": "c", "resource": "limits.cpu", "divisor": "1m"}}]
                        },
                    },
                ],
                containers=[
                    container()
                    | {
                        "env": [
                            {"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
                            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}},
                        ],
                        "envFrom": [{"prefix": "P_", "configMapRef": {"name": "m"}}],
                        "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
                        "lifecycle": {"preStop": {"sleep": {"seconds": 3}}},
                    }
                ],
                securityContext={
                    "sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}],
                    "seccompProfile": {"type": "Localhost", "localhostProfile": "a/b"},
                    "appArmorProfile": {"type": "RuntimeDefault"},
                    "fsGroupChangePolicy": "OnRootMismatch",
                    "supplementalGroups": [1, 2],
                },
                dnsPolicy="None",
                dnsConfig={"nameservers": ["1.1.1.1"], "searches": ["a.b"], "options": [{"name": "ndots", "value": "2"}]},
                hostAliases=[{"ip": "1.2.3.4", "hostnames": ["a.b"]}],
                readinessGates=[{"conditionType": "example.com/ready"}],
            )
        },
    ],
    "services": [
        {"spec": {"ports": [{"port": 80}], "externalIPs": ["1.2.3.4"]}},
        {
            "spec": {
                "selector": {"app": "a"},
                "ports": [{"name": "a", "port": 80, "appProtocol": "kubernetes.io/h2c"}, {"name": "b", "port": 81, "protocol": "UDP"}],
                "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 100}},
                "trafficDistribution": "PreferSameZone",
                "internalTrafficPolicy": "Local",
            }
        },
        {"spec": {"type": "ExternalName", "externalName": "a.example.com"}},
    ],
    "secrets": [
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "e30="}, "stringData": None},
        {"type": "kubernetes.io/basic-auth", "data": {"username": "YQ=="}, "stringData": {"password": "b"}},
        {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": "YQ=="}, "stringData": None},
    ],
    "persistentvolumes": [
        {"spec": VOLUME | {"nfs": {"server": "s", "path": "/p"}, "mountOptions": ["hard"]}},
        {"spec": VOLUME | {"csi": {"driver": "d.example.com", "volumeHandle": "h", "nodePublishSecretRef": {"name": "s", "namespace": "n"}}}},
        {
            "spec": VOLUME
            | {
                "local": {"path": "/p"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
                },
            }
        },
    ],
    "events": [
        {
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": NAMESPACE},
            "eventTime": "2026-01-02T03:04:05.000006Z",
            "series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:07.000000Z"},
            "action": "Start",
            "reportingComponent": "example.com/starter",
            "reportingInstance": "starter-0",
            "source": None,
            "firstTimestamp": None,
            "lastTimestamp": None,
            "count": None,
        },
        {"involvedObject": {"namespace": NAMESPACE}, "type": None, "message": None},
    ],
    "events.events.k8s.io": [
        {
            "related": {"apiVersion": "v1", "kind": "Node", "name": "n"},
            "series": {"count": 3, "lastObservedTime": "2026-01-02T03:04:07.000000Z"},
            "type": "Warning",
        },
    ],
    "widgets": [{"spec": {"text": "abc", "port": 80, "count": 3, "template": None}}, {"spec": {}, "status": {"replicas": 1}}],
    "networkpolicies": [
        {
            "spec": {
                "podSelector": {},
                "ingress": [
                    {"from": [{"ipBlock": {"cidr": "11.0.0.0/8", "except": ["11.1.0.0/16"]}}, {"namespaceSelector": {}, "podSelector": SELECTOR}]}
                ],
                "egress": [{"to": [{"podSelector": {}}], "ports": [{"port": 80, "endPort": 90}, {"port": "http", "protocol": "UDP"}]}],
                "policyTypes": ["Ingress", "Egress"],
            }
        }
    ],
    "storageclasses": [
        {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}], "mountOptions": ["hard"], "reclaimPolicy": "Retain"}
    ],
    "csidrivers": [
        {"spec": {"tokenRequests": [{"audience": "a", "expirationSeconds": 3600}], "fsGroupPolicy": "File", "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}
    ],
}

HAVE_SCALE = ("deployments", "replicasets", "statefulsets", "replicationcontrollers", "widgets", "widgets.v1beta1")
HAVE_STATUS = (
    "pods", "services", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas", "deployments", "replicasets",
    "statefulsets", "daemonsets", "jobs", "cronjobs", "poddisruptionbudgets", "ingresses", "namespaces", "nodes", "persistentvolumes",
    "widgets", "widgets.v1beta1",
)
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}

# Of widgets and gadgets, what a schema may say of a value: each of it once.
SPEC = {
    "type": "object",
    "properties": {
        "size": WHOLE | {"minimum": 0, "maximum": 1000, "default": 1},
        "count": WHOLE | {"format": "int32", "multipleOf": 3},
        "text": TEXT | {"minLength": 1, "maxLength": 10, "pattern": "^[a-z]+$"},
        "color": TEXT | {"enum": ["red", "green"], "default": "green"},
        "at": TEXT | {"format": "date-time"},
        "on": {"type": "boolean", "default": True},
        "port": {"x-kubernetes-int-or-string": True},
        "days": {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT, "maxItems": 3},
        "hours": {"type": "array", "items": WHOLE, "minItems": 1},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["number", "protocol"],
            "items": {
                "type": "object",
                "required": ["number"],
                "properties": {"number": WHOLE, "protocol": TEXT | {"default": "TCP"}, "name": TEXT},
            },
        },
        "tags": {"type": "object", "additionalProperties": TEXT, "maxProperties": 2},
        "selector": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "ratio": {"type": "number", "exclusiveMaximum": True, "maximum": 1},
        "nothing": TEXT | {"nullable": True},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "either": {
            "type": "object",
            "properties": {"a": TEXT, "b": TEXT},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
    },
}
STATUS = {
    "type": "object",
    "properties": {
        "replicas": WHOLE | {"minimum": 0},
        "phase": TEXT,
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type", "status"], "properties": {"type": TEXT, "status": TEXT | {"enum": ["True", "False"]}, "reason": TEXT, "message": TEXT}},
        },
    },
}
SUBRESOURCES = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.replicas"}}


GROUP = "cmp.example.com"


def definition(plural, kind, scope, versions):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": versions},
    }


# They are there before any story begins.
DEFINITIONS = [
    definition(
        "widgets", "Widget", "Namespaced",
        [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}},
                "subresources": SUBRESOURCES,
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    {"name": "Text", "type": "string", "jsonPath": ".spec.text"},
                    {"name": "At", "type": "date", "jsonPath": ".spec.at"},
                ],
                "selectableFields": [{"jsonPath": ".spec.color"}],
            },
            {
                "name": "v1beta1",
                "served": True,
                "storage": False,
                "deprecated": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"size": WHOLE, "text": TEXT, "days": {"type": "array", "items": TEXT}}}, "status": STATUS},
                    }
                },
                "subresources": SUBRESOURCES,
            },
        ],
    ),
    definition(
        "gadgets", "Gadget", "Cluster",
        [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"size": WHOLE | {"maximum": 9}, "kept": {"type": "object", "properties": {"a": TEXT | {"default": "x"}}}}}},
            }
        ],
    ),
]
