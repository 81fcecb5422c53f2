"""Facts of CustomResourceDefinitions, in the form that `make` takes from OpenAPI: named structs whose fields refer to each other.

A nested object gets its path for a name; equal ones share the first's. Those that are core types under another name (KNOWN) refer to
the core type's rows. A keyword that the table has no column for ends the run: no fact is lost unsaid."""

import json
import pathlib

import yaml

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
CORE = "io.k8s.api.core.v1."
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
# Core types that definitions have written out within them.
KNOWN = [CORE + "PodSpec", META + "LabelSelector", CORE + "Taint", CORE + "Toleration"]
KUEUE = [
    "ResourceFlavor", "ClusterQueue", "Cohort", "LocalQueue", "Workload", "AdmissionCheck", "Topology", "WorkloadPriorityClass",
]
# In order of api::KindId.
KINDS = [
    ("scheduling.volcano.sh", "v1beta1", "PodGroup"), ("scheduling.volcano.sh", "v1beta1", "Queue"),
    *(("kueue.x-k8s.io", version, kind) for version in ("v1beta2", "v1beta1") for kind in KUEUE),
]
HANDLED = {
    "additionalProperties", "anyOf", "default", "description", "enum", "format", "items", "maxItems", "maxLength", "maxProperties",
    "maximum", "minItems", "minLength", "minimum", "pattern", "properties", "required", "type", "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-validations",
}
FORMATS = {"", "int32", "int64", "date-time"}


def root_name(group, version, kind):
    return ".".join(reversed(group.split("."))) + f".{version}.{kind}"


ROOTS = [root_name(*kind) for kind in KINDS]


def shape(schema):
    """The facts of a field that two types must share to be one: not its default, which the core types state otherwise."""
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity" if "pattern" in schema else "int-or-string"
    if schema.get("type") == "array":
        return ("list", shape(schema["items"]))
    if isinstance(schema.get("additionalProperties"), dict):
        return ("map", shape(schema["additionalProperties"]))
    return schema.get("type"), schema.get("format", "")


def core_shape(schema, reference):
    target = reference(schema)
    if target == QUANTITY:
        return "quantity"
    if target == INT_OR_STRING:
        return "int-or-string"
    if target == META + "Time":
        return "string", "date-time"
    if target:
        return "object", ""
    if schema.get("type") == "array":
        return ("list", core_shape(schema["items"], reference))
    if "additionalProperties" in schema:
        return ("map", core_shape(schema["additionalProperties"], reference))
    return schema.get("type"), schema.get("format", "")


def inner(schema):
    """The schema of each value of a field."""
    if schema.get("type") == "array":
        return inner(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        return inner(schema["additionalProperties"])
    return schema


class Definitions:
    """What `schemas`, of OpenAPI, gets from the definitions in a folder."""

    def __init__(self, folder, schemas, reference):
        self.schemas = schemas
        self.reference = reference
        self.named = {}
        self.columns = {}
        self.validations = {}
        found = {}
        for path in sorted(pathlib.Path(folder).rglob("*.yaml")):
            for document in yaml.safe_load_all(path.read_text()):
                if document and document.get("kind") == "CustomResourceDefinition":
                    for version in document["spec"]["versions"]:
                        key = (document["spec"]["group"], version["name"], document["spec"]["names"]["kind"])
                        found[key] = version
        for key in KINDS:
            name, version = root_name(*key), found[key]
            schema = version["schema"]["openAPIV3Schema"]
            schema["properties"]["metadata"] = {"$ref": "/" + META + "ObjectMeta"}
            self.columns[name] = version.get("additionalPrinterColumns")
            self.validations[name] = messages(schema)
            self.struct(name, schema, name)

    def is_known(self, schema, target):
        """Whether an object has the fields of a core type, all the way down."""
        properties = schema.get("properties")
        if properties is None:
            return True
        core = self.schemas[target]
        if target == META + "ObjectMeta":
            # Of an object within an object few fields are let through.
            return set(properties) <= set(core["properties"])
        if set(properties) != set(core.get("properties", {})) or set(schema.get("required", [])) != set(core.get("required", [])):
            return False
        for field, facts in properties.items():
            other = core["properties"][field]
            if shape(facts) != core_shape(other, self.reference):
                return False
            down = self.reference(core_inner(other))
            if down and "properties" in inner(facts) and not self.is_known(inner(facts), down):
                return False
        return True

    def struct(self, path, schema, name=None):
        """The name of an object's struct."""
        for target in KNOWN:
            if name is None and self.is_known(schema, target):
                return target
        properties = {field: self.field(f"{path}.{field}", facts) for field, facts in schema["properties"].items()}
        result = {"properties": properties, "required": schema.get("required", [])}
        text = json.dumps(result, sort_keys=True)
        if name is None:
            name = self.named.setdefault(text, path)
        self.schemas[name] = result
        return name

    def field(self, path, schema):
        if "$ref" in schema:
            return schema
        unknown = set(schema) - HANDLED
        if unknown or schema.get("format", "") not in FORMATS:
            raise SystemExit(f"{path}: no column for {unknown or schema['format']}")
        facts = {key: value for key, value in schema.items() if key not in ("description", "properties", "anyOf", "items")}
        facts["custom"] = True
        if schema.get("x-kubernetes-int-or-string"):
            facts["$ref"] = "/" + (QUANTITY if "pattern" in schema else INT_OR_STRING)
            facts.pop("pattern", None)
        elif schema.get("type") == "array":
            facts["items"] = self.field(path, schema["items"])
        elif isinstance(schema.get("additionalProperties"), dict):
            facts["additionalProperties"] = self.field(path, schema["additionalProperties"])
        elif "properties" in schema:
            facts.pop("required", None)
            facts["$ref"] = "/" + self.struct(path, schema)
        return facts


def core_inner(schema):
    if schema.get("type") == "array":
        return core_inner(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        return core_inner(schema["additionalProperties"])
    return schema


def messages(schema):
    """What the CEL rules of a schema say when they fail: the rules themselves are functions of the program."""
    return "\n".join(rule["message"] for rule in schema.get("x-kubernetes-validations", []))


def constraints(schema):
    """A row of api::Constraints, or None."""
    value = inner(schema)
    is_list = schema.get("type") == "array"
    is_map = isinstance(schema.get("additionalProperties"), dict)
    supported = value.get("enum", [])
    if any(" " in word for word in supported):
        raise SystemExit(f"a supported value with a blank: {supported}")
    numbers = [
        value.get("minimum"), value.get("maximum"), value.get("minLength"), value.get("maxLength"),
        schema.get("minItems") if is_list else None,
        schema.get("maxItems") if is_list else schema.get("maxProperties") if is_map else None,
    ]
    texts = [value.get("pattern", ""), " ".join(supported), messages(schema), messages(value) if value is not schema else ""]
    if not any(texts) and all(number is None for number in numbers):
        return None
    limits = ["kNoMinimum", "kNoMaximum"] * 3
    shown = [limit if number is None else str(number) for number, limit in zip(numbers, limits)]
    return "{" + ", ".join([json.dumps(texts[0]), json.dumps(texts[1])] + shown + [json.dumps(texts[2]), json.dumps(texts[3])]) + "},"
