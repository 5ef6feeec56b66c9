"""Checks a value against a JSON schema."""

import jsonschema


def problems(value, schema):
    """One line for each place where the value is not what the schema says."""
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    return [f"{error.json_path}: {error.message}" for error in validator(schema).iter_errors(value)]
