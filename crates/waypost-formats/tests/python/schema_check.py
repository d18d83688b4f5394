"""Checks JSON documents against JSON Schemas (draft 2020-12), pair by pair.

    python schema_check.py SCHEMA.json DOCUMENT.json [SCHEMA.json DOCUMENT.json ...]

Prints a line for each pair and exits with 1 when a document does not fit its schema, or a schema is none.
"""

import json
import sys

import jsonschema


def load(path: str):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def check(schema_path: str, document_path: str) -> bool:
    schema = load(schema_path)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        print(f"FAILED  {schema_path} is no schema: {error.message}")
        return False
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
    errors = sorted(validator.iter_errors(load(document_path)), key=lambda error: list(map(str, error.path)))
    for error in errors:
        place = "/".join(map(str, error.absolute_path)) or "the document"
        print(f"FAILED  {document_path}: {place}: {error.message}")
    if not errors:
        print(f"ok      {document_path} fits {schema_path}")
    return not errors


def main() -> int:
    paths = sys.argv[1:]
    if not paths or len(paths) % 2:
        print("usage: schema_check.py SCHEMA DOCUMENT [SCHEMA DOCUMENT ...]", file=sys.stderr)
        return 2
    results = [check(schema, document) for schema, document in zip(paths[::2], paths[1::2])]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
