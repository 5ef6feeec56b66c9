"""Checks a value against a JSON schema, as far as docs/report-schema.json uses the language; refuses other keywords."""

import re

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
}
NOTES = {"$schema", "$defs", "title", "description"}
KNOWN = NOTES | {"$ref", "anyOf", "type", "const", "pattern", "minimum", "items", "required", "properties",
                 "additionalProperties"}


def problems(value, schema, root=None, path="report"):
    """One line for each place where the value is not what the schema says."""
    root = root or schema
    assert not (unknown := set(schema) - KNOWN), f"the schema uses {unknown}"
    found = []
    if "$ref" in schema:
        found += problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "anyOf" in schema:
        tried = [problems(value, option, root, path) for option in schema["anyOf"]]
        found += [] if [] in tried else min(tried, key=len)
    if "type" in schema and not TYPES[schema["type"]](value):
        return found + [f"{path}: {value!r} is no {schema['type']}"]
    if "const" in schema and value != schema["const"]:
        found.append(f"{path}: {value!r} is not {schema['const']!r}")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{path}: {value!r} does not match {schema['pattern']}")
    if "minimum" in schema and value < schema["minimum"]:
        found.append(f"{path}: {value!r} is below {schema['minimum']}")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += problems(item, schema["items"], root, f"{path}[{i}]")
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{path}: no {key!r}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in known:
                found += problems(item, known[key], root, f"{path}.{key}")
            elif others is False:
                found.append(f"{path}: {key!r} is not in the schema")
            elif isinstance(others, dict):
                found += problems(item, others, root, f"{path}.{key}")
    return found
