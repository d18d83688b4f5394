"""Keeps issues in a file and prints them as bd does, as far as beads' MCP server asks for in the measured workflow.

bd itself comes from GitHub alone. With this in its place the server of beads runs as it is published, so that its tools
and the form of its answers are its own.
"""

import json
import pathlib
import sys

NOW = "2026-01-01T00:00:00.000000Z"
STORE = pathlib.Path(".beads/issues.json")
OPTIONS = {"-d": "description", "--description": "description", "--title": "title", "--status": "status"}


def options(words):
    """Pairs of options and their values; flags have none."""
    found, words = {}, list(words)
    while words:
        word = words.pop(0)
        if word in ("--json", "--claim"):
            found[word] = True
        elif word.startswith("-"):
            found[word] = words.pop(0)
    return found


def linked(issues, issue, with_links):
    """An issue with what it depends on, and what depends on it."""
    before = issue["deps"]
    after = [other for other in issues.values() if issue["id"] in other["deps"]]
    shown = {key: value for key, value in issue.items() if key != "deps"}
    shown["dependency_count"], shown["dependent_count"] = len(before), len(after)
    if with_links:
        bare = lambda other: {**linked(issues, other, False), "dependency_type": "blocks"}
        shown["dependencies"] = [bare(issues[other]) for other in before]
        shown["dependents"] = [bare(other) for other in after]
    return shown


def is_ready(issues, issue):
    return issue["status"] == "open" and all(issues[other]["status"] == "closed" for other in issue["deps"])


def stats(issues):
    counts = {status: sum(issue["status"] == status for issue in issues.values()) for status in ("open", "in_progress", "closed")}
    ready = sum(is_ready(issues, issue) for issue in issues.values())
    return {
        "summary": {
            "total_issues": len(issues),
            **{f"{status}_issues": count for status, count in counts.items()},
            "blocked_issues": counts["open"] - ready,
            "ready_issues": ready,
            "average_lead_time_hours": 0.0,
        }
    }


def main():
    verb, *words = sys.argv[1:]
    if verb == "version":
        print("bd version 1.3.0")
        return
    issues = json.loads(STORE.read_text()) if STORE.exists() else {}
    asked = options(words)
    if verb == "create":
        name = f"bd-{0xA1B2 + 7919 * len(issues) % 0x10000:04x}"
        deps = [dep.split(":")[-1] for dep in asked.get("--deps", "").split(",") if dep]
        issue = {
            "id": name, "title": words[0], "description": asked.get("-d", ""), "status": "open",
            "priority": int(asked["-p"]), "issue_type": asked["-t"], "created_at": NOW, "updated_at": NOW, "deps": deps,
        }
        issues[name] = issue
        answer = linked(issues, issue, False)
    elif verb in ("update", "close", "show"):
        issue = issues[words[0]]
        if verb == "close":
            issue.update(status="closed", closed_at=NOW)
        elif "--claim" in asked:
            issue.update(status="in_progress", assignee="bench")
        issue.update({OPTIONS[key]: value for key, value in asked.items() if key in OPTIONS})
        answer = [linked(issues, issue, verb == "show")]
    elif verb == "ready":
        ready = [issue for issue in issues.values() if is_ready(issues, issue)]
        answer = [linked(issues, issue, False) for issue in ready[: int(asked["--limit"])]]
    elif verb == "stats":
        answer = stats(issues)
    else:
        sys.exit(f"the stand-in for bd does not know {verb}")
    STORE.write_text(json.dumps(issues))
    print(json.dumps(answer))


main()
