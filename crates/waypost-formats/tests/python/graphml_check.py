"""Reads a GraphML file with NetworkX and prints, as JSON, what it found.

    python graphml_check.py plan.graphml [plan.json]

With the same plan in the native format as a second file, compares the two: the same nodes, the same edges, the same
attributes. Exits with 1 when they differ, or when the file is no directed graph of tasks.
"""

import json
import sys

import networkx


def flat(plan: dict) -> dict:
    """A plan or a task of the native format with what came of it beside what its author says."""
    fields = {key: value for key, value in plan.items() if key not in ("state", "tasks")}
    fields.update(plan.get("state", {}))
    return fields


def same(attribute, value) -> bool:
    """Texts, numbers and flags are themselves; everything else is a JSON text."""
    if isinstance(value, (dict, list)):
        return json.loads(attribute) == value
    return type(attribute) is type(value) and attribute == value


def differences(found: dict, plan: dict) -> list[str]:
    lines = []

    def compare(place: str, attributes: dict, fields: dict) -> None:
        for name in sorted(attributes.keys() | fields.keys()):
            if name not in attributes or name not in fields or not same(attributes[name], fields[name]):
                lines.append(f"{place}: {name} is {attributes.get(name)!r}, expected {fields.get(name)!r}")

    # What a file leaves out because it is usual is there in the graph.
    defaults = {"title": "", "phase": "draft"}
    compare("plan", found["plan"], defaults | flat(plan))
    ids = {task["id"] for task in plan["tasks"]}
    if ids != set(found["tasks"]):
        lines.append(f"tasks are {sorted(found['tasks'])}, expected {sorted(ids)}")
        return lines
    edges = set()
    for task in plan["tasks"]:
        fields = {"description": "", "status": "pending"} | flat(task)
        depends_on = fields.get("depends_on", [])
        edges.update((on, fields["id"]) for on in depends_on if isinstance(on, str) and on in ids)
        if all(isinstance(on, str) and on in ids for on in depends_on):
            fields.pop("depends_on", None)
        compare(f"task {fields['id']}", found["tasks"][fields.pop("id")], fields)
    if edges != {tuple(edge) for edge in found["edges"]}:
        lines.append(f"edges are {sorted(map(tuple, found['edges']))}, expected {sorted(edges)}")
    return lines


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print("usage: graphml_check.py FILE.graphml [PLAN.json]", file=sys.stderr)
        return 2
    graph = networkx.read_graphml(sys.argv[1])
    if not graph.is_directed():
        print("the graph is not directed", file=sys.stderr)
        return 1
    if graph.is_multigraph():
        print("the graph has an edge twice", file=sys.stderr)
        return 1
    own = ("node_default", "edge_default")
    found = {
        "plan": {name: value for name, value in graph.graph.items() if name not in own},
        "tasks": {node: dict(fields) for node, fields in graph.nodes(data=True)},
        "edges": [list(edge) for edge in graph.edges()],
        "acyclic": networkx.is_directed_acyclic_graph(graph),
    }
    if not all("status" in fields for fields in found["tasks"].values()):
        print("a node is no task: it has no status", file=sys.stderr)
        return 1
    if len(sys.argv) == 2:
        json.dump(found, sys.stdout, indent=2, ensure_ascii=False, sort_keys=True)
        print()
        return 0
    with open(sys.argv[2], encoding="utf-8") as file:
        lines = differences(found, json.load(file))
    for line in lines:
        print(f"FAILED  {sys.argv[1]}: {line}")
    if not lines:
        print(f"ok      {sys.argv[1]}: {len(found['tasks'])} tasks, {len(found['edges'])} edges, as in {sys.argv[2]}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
