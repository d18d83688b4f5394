"""Judges what several workers did, from what was recorded of it. Knows nothing of Waypost's code, and asks no store.

    python3 history.py FOLDER

reads from FOLDER what `storm.rs` leaves there:

    plans/ID.json     the plans as they were submitted
    final/ID.json     the plans at the end, as `waypost export` gives them
    log.jsonl         the whole log at the end, as `waypost events --json` gives it
    programs.jsonl    what the programs of tasks noted themselves: starts, ends, locks that were taken already
    told.jsonl        what workers said was durable (`waypost worker --json`)
    writes.jsonl      what other writers asked for, and what was acknowledged
    readers/NAME.jsonl   what a reader got, over all its deaths (versions, or events of the kinds in readers/NAME.kinds)
    faults.jsonl      what was done to them all

A judgement is a list of violations, each with the name of the promise that was broken. It is printed as JSON, with figures,
and the exit code is 1 when there is any.
"""

import json
import pathlib
import sys
from collections import defaultdict
from datetime import datetime, timezone

# Kinds of events that say nothing about attempts.
SILENT = {
    "plan_created", "plan_activated", "plan_revised", "plan_approved", "approval_requested", "tasks_added",
}
# How tasks of each mode may end, and with how many tries that came to nothing.
ENDS = {
    "ok": {"done"}, "slow": {"done"}, "fail_once": {"done"}, "again_once": {"done"}, "hang_once": {"done"},
    "doomed": {"failed"}, "once": {"done", "failed"},
}


class History:
    """What was recorded, as plain lists and maps."""

    def __init__(self, plans, final, log, programs, told, writes, readers, faults):
        self.plans, self.final, self.log = plans, final, log
        self.programs, self.told, self.writes = programs, told, writes
        self.readers, self.faults = readers, faults

    @staticmethod
    def read(folder):
        folder = pathlib.Path(folder)

        def lines(name):
            path = folder / name
            return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

        def documents(name):
            return {path.stem: json.loads(path.read_text()) for path in sorted((folder / name).glob("*.json"))}

        readers = {}
        for path in sorted((folder / "readers").glob("*.jsonl")):
            kinds = path.with_suffix(".kinds")
            wanted = kinds.read_text().split() if kinds.exists() else None
            readers[path.stem] = (wanted, lines(f"readers/{path.name}"))
        return History(
            documents("plans"), documents("final"), lines("log.jsonl"), lines("programs.jsonl"),
            lines("told.jsonl"), lines("writes.jsonl"), readers, lines("faults.jsonl"),
        )


def micros(text):
    """A moment of the log, in microseconds since 1970, as programs note theirs."""
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def locks_of(task):
    """The keys of a task, each with whether it is shared."""
    found = {}
    for lock in task.get("locks", []):
        plain = isinstance(lock, str)
        found[lock if plain else lock["key"]] = not plain and lock.get("mode") == "shared"
    return found


def in_the_way(mine, other):
    """Keys that two tasks cannot have at the same time."""
    return sorted(key for key in mine if key in other and not (mine[key] and other[key]))


class Attempt:
    """One start, as the log tells of it."""

    def __init__(self, task, number, worker, sequence, at):
        self.task, self.number, self.worker, self.sequence, self.at = task, number, worker, sequence, at
        # How it ended: done, failed (its own worker says so), lost (somebody else does), released.
        self.end, self.end_sequence, self.end_at = None, None, None


class Task:
    """One task over the whole history."""

    def __init__(self, plan, spec):
        self.plan, self.id, self.spec = plan, spec["id"], spec
        self.locks, self.mode = locks_of(spec), spec.get("work", {}).get("inputs", {}).get("mode", "ok")
        self.retry = (spec.get("retry") or {}).get("attempts")
        self.status, self.attempts, self.tries, self.not_before = "pending", [], 0, None
        self.outcomes = []

    def __str__(self):
        return f"{self.plan}/{self.id}"


class Judge:
    """Goes through a history once, and then compares what else was recorded with it."""

    def __init__(self, history):
        self.history = history
        self.violations = []
        self.figures = defaultdict(int)
        self.tasks = {
            (plan, spec["id"]): Task(plan, spec)
            for plan, document in history.plans.items()
            for spec in document["tasks"]
        }
        self.running = {}
        self.queued = []
        self.kills = {fault["pid"]: fault["at"] for fault in history.faults if fault["fault"] == "kill"}

    def judge(self):
        self.numbering()
        for entry in self.history.log:
            self.entry(entry)
        self.ends()
        self.outside()
        self.overlaps()
        self.acknowledged()
        self.read()
        return self.violations

    def broken(self, promise, text):
        self.violations.append({"promise": promise, "what": text})

    # The log by itself.

    def numbering(self):
        """Numbers of the log and versions of each plan go up by one, and time does not go back within a plan."""
        versions, times = defaultdict(int), defaultdict(int)
        for place, entry in enumerate(self.history.log, start=1):
            plan, at = entry["plan"], micros(entry["at"])
            if entry["sequence"] != place:
                self.broken("numbering", f"line {place} of the log has number {entry['sequence']}")
            if entry["version"] != versions[plan] + 1:
                self.broken("numbering", f"{plan} goes from version {versions[plan]} to {entry['version']}")
            if at < times[plan]:
                self.broken("numbering", f"{plan} goes back in time at version {entry['version']}")
            versions[plan], times[plan] = entry["version"], at
        self.figures["versions"] = len(self.history.log)

    def entry(self, entry):
        for event in entry["events"]:
            kind = event["event"]
            if kind in SILENT:
                continue
            task = self.tasks.get((entry["plan"], event.get("task")))
            step = getattr(self, f"on_{kind}", None)
            if task is None or step is None:
                self.broken("known", f"{kind} in version {entry['version']} of {entry['plan']} cannot be judged: {event}")
                continue
            step(task, event, entry)

    def on_task_started(self, task, event, entry):
        self.figures["starts"] += 1
        reserved = self.running.get((task.plan, task.id))
        mine = reserved is not None and (reserved.number, reserved.worker) == (event["attempt"], event["worker"])
        if mine and reserved in self.queued:
            # It was reserved before its program began; now that it has begun, that is written.
            self.queued.remove(reserved)
            return
        self.reserve(task, event, entry)

    def on_task_queued(self, task, event, entry):
        self.queued.append(self.reserve(task, event, entry))

    def reserve(self, task, event, entry):
        """From now on a worker may run the program: locks, dependencies and numbers count from here."""
        attempt = Attempt(task, event["attempt"], event["worker"], entry["sequence"], micros(entry["at"]))
        if task.status != "pending":
            self.broken("ends once", f"{task} was started as {task.status}, attempt {attempt.number}")
        if attempt.number != len(task.attempts) + 1:
            self.broken("attempts", f"{task} has attempt {attempt.number} after {len(task.attempts)}")
        if task.not_before is not None and attempt.at < task.not_before:
            self.broken("attempts", f"{task} was started before its time, attempt {attempt.number}")
        if task.retry == 1 and task.attempts and task.attempts[-1].end != "released":
            self.broken("attempts", f"{task} may be tried once and was started again")
        for needed in task.spec.get("depends_on", []):
            if self.tasks[(task.plan, needed)].status != "done":
                self.broken("dependencies", f"{task} was started before {needed} was done")
        for other in self.running.values():
            for key in in_the_way(task.locks, other.task.locks):
                self.broken("locks", f"{task} was started with {key}, which {other.task} has")
        task.attempts.append(attempt)
        task.status = "running"
        self.running[(task.plan, task.id)] = attempt
        return attempt

    def stops(self, task, event, entry, end, status):
        """An attempt is over. Returns it, if it was running."""
        attempt = self.running.pop((task.plan, task.id), None)
        if attempt is None:
            self.broken("ends once", f"{task} is {event['event']} at number {entry['sequence']}, and was {task.status}")
            return None
        if end != "lost" and entry["actor"] != f"worker:{attempt.worker}":
            self.broken("fencing", f"{entry['actor']} says how attempt {attempt.number} of {task} by {attempt.worker} went")
        attempt.end, attempt.end_sequence, attempt.end_at = end, entry["sequence"], micros(entry["at"])
        task.status = status
        if status in ("done", "failed"):
            task.outcomes.append(status)
        return attempt

    def on_task_done(self, task, event, entry):
        attempt = self.stops(task, event, entry, "done", "done")
        given = (event.get("output") or {}).get("attempt")
        if attempt is not None and given != attempt.number:
            self.broken("fencing", f"{task} took the output of attempt {given} for attempt {attempt.number}")
        if attempt is not None:
            attempt.output = event.get("output")

    def on_task_failed(self, task, event, entry):
        number = len(task.attempts)
        ends = (f" was lost during attempt {number}", f" was lost when attempt {number} was queued: it may have begun")
        lost = event["error"].endswith(ends)
        again = event.get("again_at")
        self.stops(task, event, entry, "lost" if lost else "failed", "pending" if again else "failed")
        task.not_before = micros(again) if again else None
        task.tries += 1
        self.figures["lost" if lost else "failed tries"] += 1
        if not again and task.retry is not None and task.tries != task.retry:
            self.broken("attempts", f"{task} failed after {task.tries} tries, and may have {task.retry}")

    def on_task_released(self, task, event, entry):
        self.stops(task, event, entry, "released", "pending")
        self.figures["released"] += 1

    def on_task_progressed(self, task, _event, entry):
        if task.status != "running":
            self.broken("ends once", f"{task} makes progress at number {entry['sequence']}, and is {task.status}")

    def ends(self):
        """Every task has one end, the one that it must have, and the plans at the end say the same."""
        for (plan, name), task in self.tasks.items():
            if self.is_cut_off(task):
                task.status = "skipped"
            elif len(task.outcomes) != 1:
                self.broken("ends once", f"{task} has {len(task.outcomes)} ends and is {task.status}")
            elif task.outcomes[0] not in ENDS[task.mode]:
                self.broken("ends once", f"{task} ({task.mode}) is {task.outcomes[0]}")
            self.figures[task.status] += 1
        for plan, document in self.history.final.items():
            said = {task["id"]: task["state"]["status"] for task in document["tasks"]}
            for name, status in said.items():
                task = self.tasks.get((plan, name))
                if task is not None and task.status != status:
                    self.broken("ends once", f"{task} is {status} at the end, and the log says {task.status}")
        missing = set(self.history.plans) - set(self.history.final)
        if missing:
            self.broken("ends once", f"nobody knows how these plans ended: {sorted(missing)}")

    def is_cut_off(self, task):
        """Whether something that a task needs, however far behind, has failed."""
        todo, seen = list(task.spec.get("depends_on", [])), set()
        while todo:
            name = todo.pop()
            if name not in seen:
                seen.add(name)
                needed = self.tasks[(task.plan, name)]
                if "failed" in needed.outcomes:
                    return True
                todo.extend(needed.spec.get("depends_on", []))
        return False

    # What programs noted, against the log.

    def outside(self):
        """Each program ran for a start that was durable; what is done was done by its program; nothing runs after that."""
        self.spans = {}
        for note in self.history.programs:
            task = self.tasks[(note["plan"], note["task"])]
            key = (task, note["attempt"])
            if note["what"] == "start":
                self.begins(task, note, key)
            elif note["what"] == "end":
                if key not in self.spans:
                    self.broken("programs", f"attempt {note['attempt']} of {task} ended without a start")
                else:
                    self.spans[key]["end"] = note
        for task in self.tasks.values():
            attempt = task.attempts[-1] if task.attempts else None
            if attempt is None or attempt.end != "done":
                continue
            span = self.spans.get((task, attempt.number), {})
            end = span.get("end")
            if end is None or end["result"] != "done" or end["pid"] != (attempt.output or {}).get("pid"):
                self.broken("programs", f"{task} is done by attempt {attempt.number}, whose program does not say so")
            elif end["at"] > attempt.end_at:
                self.broken("programs", f"{task} was written as done before its program ended")
        for note in self.history.told:
            if note.get("event") == "task_ended" and note.get("status") == "done":
                task = self.tasks[(note["plan"], note["task"])]
                number = task.attempts[-1].number if task.status == "done" else None
                self.figures["told done"] += 1
                if number != note["attempt"]:
                    self.broken("acknowledged", f"{task} was told to be done by attempt {note['attempt']}, and is not")

    def begins(self, task, note, key):
        self.figures["programs"] += 1
        if key in self.spans:
            self.broken("programs", f"attempt {note['attempt']} of {task} was started twice")
            return
        self.spans[key] = {"start": note, "end": None}
        attempt = next((one for one in task.attempts if one.number == note["attempt"]), None)
        if attempt is None or attempt.worker != note["worker"]:
            self.broken("programs", f"a program ran for attempt {note['attempt']} of {task} by {note['worker']}, of which the log knows nothing")
            return
        if note["at"] < attempt.at:
            self.broken("programs", f"the program of attempt {note['attempt']} of {task} began before its start was written")
        done = task.attempts[-1]
        if done.end == "done" and done.end_at < note["at"] and attempt is done:
            self.broken("acknowledged", f"{task} was done, and its program was started again")
        for needed in task.spec.get("depends_on", []):
            other = self.tasks[(task.plan, needed)].attempts
            end = self.spans.get((self.tasks[(task.plan, needed)], other[-1].number if other else 0), {}).get("end")
            if end is not None and end["at"] > note["at"]:
                self.broken("dependencies", f"the program of {task} began before that of {needed} ended")

    def overlaps(self):
        """Programs with keys in each other's way run at the same time only where the earlier one's worker was out of reach.

        The log never has two holders of a key (see `on_task_started`). Outside, a program may go on although its attempt
        was declared lost: its worker was stopped, or cut off from the store, for longer than its lease. It may even begin
        then, if its worker was stopped in the moment between its last look at its lease and the start. A worker that
        was killed is no excuse: what it left behind is ended before its tasks are started again.
        """
        by_key = defaultdict(list)
        for (task, number), span in self.spans.items():
            attempt = next((one for one in task.attempts if one.number == number), None)
            if attempt is None:
                continue
            for key in task.locks:
                by_key[key].append((span["start"]["at"], attempt, span))
        for key, programs in by_key.items():
            programs.sort(key=lambda program: program[0])
            open_ones = []
            for at, attempt, span in programs:
                open_ones = [one for one in open_ones if one[1]["end"]["at"] > at]
                for earlier, _ in open_ones:
                    if not in_the_way({key: attempt.task.locks[key]}, earlier.task.locks):
                        continue
                    self.figures["overlaps"] += 1
                    if not self.may_linger(earlier, attempt) and not self.may_be_late(attempt, at):
                        self.broken("locks outside", f"{attempt.task} ran with {key} while {earlier.task} (attempt {earlier.number}) had it")
                # One that never noted its end was killed; whether it was in the way, the lock itself has told (below).
                if span["end"] is not None:
                    open_ones.append((attempt, span))
        self.clashes(by_key)

    def clashes(self, by_key):
        """A program that found its lock taken names a lingering one that had it."""
        for note in self.history.programs:
            if note["what"] != "clash":
                continue
            self.figures["clashes"] += 1
            task = self.tasks[(note["plan"], note["task"])]
            attempt = next((one for one in task.attempts if one.number == note["attempt"]), None)
            holders = [
                other for at, other, span in by_key[note["key"]]
                if other is not attempt and at <= note["at"]
                and (span["end"] is None or span["end"]["at"] >= note["at"] - self.GOING)
                and in_the_way({note["key"]: task.locks[note["key"]]}, other.task.locks)
            ]
            excused = attempt is not None and self.may_be_late(attempt, note["at"])
            if not excused and (attempt is None or not any(self.may_linger(other, attempt) for other in holders)):
                names = [f"{other.task} attempt {other.number} ({other.end})" for other in holders]
                self.broken("locks outside", f"{task} attempt {note['attempt']} found {note['key']} taken; who could have had it: {names}")

    # Microseconds between a program's note of its end and the release of its locks by the system.
    GOING = 2_000_000

    def may_linger(self, earlier, later):
        """Whether `earlier`'s program may still run when `later`'s begins."""
        if earlier.end != "lost" or earlier.end_sequence > later.sequence:
            return False
        killed = self.kills.get(pid_of(earlier.worker))
        return killed is None or killed > earlier.end_at

    def may_be_late(self, attempt, at):
        """Whether the program of `attempt` may begin at this moment although the attempt is over."""
        if attempt.end != "lost" or attempt.end_at > at:
            return False
        killed = self.kills.get(pid_of(attempt.worker))
        return killed is None or killed > attempt.end_at

    # What writers and readers were told, against the log.

    def acknowledged(self):
        """A write that was acknowledged stands where the answer said; one that was refused stands nowhere; none stands twice."""
        found = defaultdict(list)
        for entry in self.history.log:
            for event in entry["events"]:
                for token in tokens(event):
                    found[token].append((entry["plan"], entry["version"]))
        asked, answered, waits = {}, set(), []
        for write in self.history.writes:
            token = write["token"]
            if write["what"] == "asked":
                asked[token] = write["at"]
                continue
            answered.add(token)
            if write["what"] == "refused":
                if token in found:
                    self.broken("acknowledged", f"{token} was refused, and stands at {found[token]}")
                continue
            self.figures["acknowledged writes"] += 1
            waits.append(write["at"] - asked.get(token, write["at"]))
            places = found.get(token, [])
            if (write["plan"], write["version"]) not in places:
                self.broken("acknowledged", f"{token} was acknowledged as version {write['version']} of {write['plan']}, and stands at {places}")
        for token, places in found.items():
            if len(places) > 1:
                self.broken("written once", f"{token} was asked for once and written {len(places)} times: {places}")
            if token not in asked:
                self.broken("written once", f"{token} was written, and nobody asked for it")
        self.figures["unanswered writes that stand"] = len([token for token in found if token not in answered])
        self.figures["unanswered writes"] = len(set(asked) - answered)
        if waits:
            waits.sort()
            self.figures["milliseconds of a write, median"] = waits[len(waits) // 2] // 1_000
            self.figures["milliseconds of a write, longest"] = waits[-1] // 1_000

    def read(self):
        """Each reader got the log: all of it, in its order, nothing twice."""
        for name, (kinds, got) in self.history.readers.items():
            if kinds is None:
                expected = [(entry["sequence"], entry) for entry in self.history.log]
                received = [(entry["sequence"], entry) for entry in got]
            else:
                expected = [
                    ((entry["sequence"], index), event)
                    for entry in self.history.log
                    for index, event in enumerate(entry["events"])
                    if event["event"] in kinds
                ]
                received = [((event["sequence"], event["index"]), event["event"]) for event in got]
            self.figures["read"] += len(received)
            self.compare(name, expected, received)

    def compare(self, name, expected, received):
        places = [place for place, _ in received]
        for before, after in zip(places, places[1:]):
            if after <= before:
                self.broken("readers", f"{name} got {after} after {before}")
        known, got = dict(expected), dict(received)
        missed = [place for place in known if place not in got]
        if missed:
            self.broken("readers", f"{name} never got {len(missed)}, the first of them {missed[0]}")
        for place, what in got.items():
            if known.get(place) != what:
                self.broken("readers", f"{name} got something else at {place} than the log has")


def tokens(event):
    """The marks that writers put into what they write: ids of tasks, words for a plan."""
    if event["event"] == "tasks_added":
        return [task["id"] for task in event["tasks"]]
    if event["event"] == "plan_revised" and event.get("status", "").startswith("token-"):
        return [event["status"]]
    return []


def pid_of(worker):
    """The number of a worker's process, which its name holds: `host:process:began.scope`."""
    parts = worker.rsplit(":", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else None


def main(folder):
    judge = Judge(History.read(folder))
    violations = judge.judge()
    print(json.dumps({"figures": dict(sorted(judge.figures.items())), "violations": violations[:100], "broken": len(violations)}))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
