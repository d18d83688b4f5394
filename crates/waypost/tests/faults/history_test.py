"""The judge of histories by itself: one that is right passes, and each way to be wrong is found out by the promise it breaks."""

import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from history import History, Judge

SECOND = 1_000_000
ONE, TWO = "host:11:aa.1", "host:22:bb.1"


def moment(at):
    return f"1970-01-01T00:{at // 60 // SECOND:02}:{at // SECOND % 60:02}.{at % SECOND:06}Z"


def task(name, needs=(), locks=(), mode="ok", retry=None):
    spec = {"id": name, "depends_on": list(needs), "locks": list(locks), "work": {"inputs": {"mode": mode}}}
    return spec | ({"retry": {"attempts": retry}} if retry else {})


class Tale:
    """Tells a history second by second; every step is one version."""

    def __init__(self, *tasks):
        self.now = 0
        self.history = History({"p": {"tasks": list(tasks)}}, {}, [], [], [], [], {}, [])
        self.write("person:ada", {"event": "plan_created"})

    def write(self, actor, *events, plan="p"):
        self.now += SECOND
        log = self.history.log
        version = 1 + sum(entry["plan"] == plan for entry in log)
        log.append({
            "sequence": len(log) + 1, "plan": plan, "version": version, "at": moment(self.now), "actor": actor,
            "events": list(events),
        })
        return version

    def note(self, what, name, attempt, worker, **more):
        self.now += 1
        self.history.programs.append({
            "what": what, "plan": "p", "task": name, "attempt": attempt, "worker": worker, "pid": 100 + attempt,
            "at": self.now, **more,
        })

    def start(self, name, attempt=1, worker=ONE, runs=True):
        self.write(f"worker:{worker}", {"event": "task_started", "task": name, "attempt": attempt, "worker": worker})
        if runs:
            self.note("start", name, attempt, worker)

    def end(self, name, attempt=1, worker=ONE, result="done"):
        self.note("end", name, attempt, worker, result=result)

    def done(self, name, attempt=1, worker=ONE, ends=True):
        if ends:
            self.end(name, attempt, worker)
        output = {"attempt": attempt, "pid": 100 + attempt}
        self.write(f"worker:{worker}", {"event": "task_done", "task": name, "output": output})
        self.history.told.append({"event": "task_ended", "plan": "p", "task": name, "status": "done", "attempt": attempt})

    def fail(self, name, attempt=1, worker=ONE, again=True):
        self.end(name, attempt, worker, result="failed")
        self.failed(f"worker:{worker}", name, "it was to fail", again)

    def lose(self, name, attempt=1, worker=ONE, by=TWO, again=True):
        self.failed(f"worker:{by}", name, f"{worker} was lost during attempt {attempt}", again)

    def failed(self, actor, name, error, again):
        later = {"again_at": moment(self.now + SECOND)} if again else {}
        self.write(actor, {"event": "task_failed", "task": name, "error": error, **later})

    def fault(self, fault, pid):
        self.history.faults.append({"fault": fault, "pid": pid, "at": self.now})

    def ask(self, token, answered=True):
        self.history.writes.append({"what": "asked", "token": token, "plan": "notes", "at": self.now})
        version = self.write("person:ada", {"event": "tasks_added", "tasks": [{"id": token}]}, plan="notes")
        if answered:
            answer = {"what": "acknowledged", "token": token, "plan": "notes", "version": version, "at": self.now}
            self.history.writes.append(answer)

    def finish(self, **statuses):
        """The plan at the end, and two readers who got it all."""
        known = self.history.plans["p"]["tasks"]
        said = [{"id": one["id"], "state": {"status": statuses.get(one["id"], "done")}} for one in known]
        self.history.final["p"] = {"tasks": said}
        kinds = ["task_started", "task_done"]
        events = [
            {"sequence": entry["sequence"], "index": index, "event": event}
            for entry in self.history.log
            for index, event in enumerate(entry["events"])
            if event["event"] in kinds
        ]
        self.history.readers = {"whole": (None, copy.deepcopy(self.history.log)), "kinds": (kinds, events)}
        return self.history


def good():
    """Two tasks after each other with one lock; the first fails once, its second worker is lost, and notes are written."""
    tale = Tale(task("a", locks=["k"], mode="fail_once"), task("b", needs=["a"], locks=["k"]))
    tale.start("a")
    tale.fail("a")
    tale.start("a", 2)
    tale.ask("n1")
    tale.ask("n2", answered=False)
    tale.lose("a", 2)
    tale.start("a", 3, TWO)
    tale.done("a", 3, TWO)
    tale.start("b", 1, TWO)
    tale.done("b", 1, TWO)
    return tale.finish()


def entry_with(history, kind, place=0):
    return [entry for entry in history.log if entry["events"][0]["event"] == kind][place]


def renumber(history):
    """A log that was changed is numbered as if nothing had happened, so that only what was changed is wrong."""
    versions = {}
    for place, entry in enumerate(history.log, start=1):
        versions[entry["plan"]] = versions.get(entry["plan"], 0) + 1
        entry["sequence"], entry["version"] = place, versions[entry["plan"]]
    history.readers, history.writes = {}, []
    for entry in history.log:
        entry["events"] = [event for event in entry["events"] if event["event"] != "tasks_added"]


class Judging(unittest.TestCase):
    def check(self, history, *promises):
        found = Judge(history).judge()
        self.assertEqual(sorted({one["promise"] for one in found}), sorted(promises), found)

    def test_a_history_that_is_right_passes(self):
        self.check(good())

    def test_a_missing_number_of_the_log(self):
        history = good()
        for entry in history.log[4:]:
            entry["sequence"] += 1
        history.readers = {}
        self.check(history, "numbering")

    def test_a_version_that_is_there_twice(self):
        history = good()
        entry_with(history, "task_done")["version"] -= 1
        history.readers = {}
        self.check(history, "numbering")

    def test_a_plan_that_goes_back_in_time(self):
        history = good()
        entry_with(history, "task_failed")["at"] = moment(0)
        history.readers = {}
        self.assertIn("numbering", [one["promise"] for one in Judge(history).judge()])

    def test_an_event_that_nobody_knows(self):
        history = good()
        history.log[0]["events"][0]["event"] = "plan_vanished"
        history.readers = {}
        self.check(history, "known")

    def test_a_task_that_never_ended(self):
        tale = Tale(task("a"))
        tale.start("a")
        self.check(tale.finish(a="running"), "ends once")

    def test_a_task_that_ended_twice(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.done("a")
        tale.done("a", ends=False)
        self.check(tale.finish(), "ends once")

    def test_a_task_that_was_done_and_is_started_again(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.done("a")
        tale.start("a", 2)
        tale.done("a", 2)
        self.check(tale.finish(), "ends once", "acknowledged")

    def test_a_task_that_runs_and_is_started_again(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.start("a", 2, TWO)
        tale.done("a", 2, TWO)
        self.check(tale.finish(), "ends once")

    def test_a_task_that_ended_as_it_must_not(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.fail("a", again=False)
        self.check(tale.finish(a="failed"), "ends once")

    def test_a_plan_that_says_something_else_than_its_log(self):
        history = good()
        history.final["p"]["tasks"][1]["state"]["status"] = "pending"
        self.check(history, "ends once")

    def test_a_plan_whose_end_is_unknown(self):
        history = good()
        history.final = {}
        self.check(history, "ends once")

    def test_progress_of_a_task_that_does_not_run(self):
        history = good()
        history.log.append(history.log[-1] | {"events": [{"event": "task_progressed", "task": "a"}]})
        renumber(history)
        self.check(history, "ends once")

    def test_an_attempt_that_was_left_out(self):
        tale = Tale(task("a"))
        tale.start("a", 2)
        tale.done("a", 2)
        self.check(tale.finish(), "attempts")

    def test_an_attempt_before_its_time(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.fail("a")
        entry_with(tale.history, "task_failed")["events"][0]["again_at"] = moment(59 * SECOND)
        tale.start("a", 2)
        tale.done("a", 2)
        self.check(tale.finish(), "attempts")

    def test_a_second_try_where_only_one_is_allowed(self):
        tale = Tale(task("a", mode="once", retry=1))
        tale.start("a")
        tale.lose("a")
        tale.start("a", 2)
        tale.done("a", 2)
        self.check(tale.finish(), "attempts")

    def test_a_failure_for_good_although_tries_were_left(self):
        tale = Tale(task("a", mode="doomed", retry=2))
        tale.start("a")
        tale.fail("a", again=False)
        self.check(tale.finish(a="failed"), "attempts")

    def test_a_start_before_what_it_needs_is_done(self):
        tale = Tale(task("a"), task("b", needs=["a"]))
        tale.start("a")
        tale.start("b")
        tale.done("b")
        tale.done("a")
        self.check(tale.finish(), "dependencies")

    def test_a_program_that_began_before_that_of_what_it_needs_ended(self):
        history = good()
        first = [note for note in history.programs if note["task"] == "b"][0]
        last = [note for note in history.programs if note["task"] == "a"][-1]
        last["at"] = first["at"] + 1
        self.assertIn("dependencies", [one["promise"] for one in Judge(history).judge()])

    def test_a_task_that_was_started_although_what_it_needs_failed(self):
        tale = Tale(task("a", mode="doomed", retry=1), task("b", needs=["a"]), task("c", needs=["b"]))
        tale.start("a")
        tale.fail("a", again=False)
        self.check(tale.finish(a="failed", b="skipped", c="skipped"))
        tale.start("c", worker=TWO)
        self.check(tale.finish(a="failed", b="skipped", c="skipped"), "dependencies")

    def test_a_lock_that_two_have(self):
        for first, second, wrong in [("k", "k", True), ("k", SHARED, True), (SHARED, SHARED, False)]:
            tale = Tale(task("a", locks=[first]), task("b", locks=[second]))
            tale.start("a")
            tale.start("b", worker=TWO)
            tale.done("a")
            tale.done("b", worker=TWO)
            self.check(tale.finish(), *(["locks", "locks outside"] if wrong else []))

    def lingering(self, killed, ended="lost"):
        """A program goes on after another one got its lock."""
        tale = Tale(task("a", locks=["k"]), task("b", locks=["k"]))
        tale.start("a")
        if killed:
            tale.fault("kill", 11)
        if ended == "lost":
            tale.lose("a")
        else:
            tale.failed(f"worker:{ONE}", "a", "it took longer than 1 s and was stopped", True)
        tale.start("b", worker=TWO)
        return tale

    def test_a_program_goes_on_beside_its_successor_only_where_its_worker_was_out_of_reach(self):
        for killed, ended, wrong in [(False, "lost", False), (True, "lost", True), (False, "failed", True)]:
            tale = self.lingering(killed, ended)
            tale.end("a")
            tale.done("b", worker=TWO)
            tale.start("a", 2)
            tale.done("a", 2)
            self.check(tale.finish(), *(["locks outside"] if wrong else []))

    def test_a_program_begins_after_its_attempt_was_lost_only_where_its_worker_was_out_of_reach(self):
        for killed, lost, wrong in [(False, True, False), (True, True, True), (False, False, True)]:
            tale = Tale(task("a", locks=["k"]), task("b", locks=["k"]))
            tale.start("a", runs=False)
            if killed:
                tale.fault("kill", 11)
            if lost:
                tale.lose("a")
            else:
                tale.failed(f"worker:{ONE}", "a", "it took longer than 1 s and was stopped", True)
            tale.start("b", worker=TWO)
            tale.note("start", "a", 1, ONE)
            tale.note("clash", "a", 1, ONE, key="k")
            tale.done("b", worker=TWO)
            tale.end("a")
            tale.start("a", 2)
            tale.done("a", 2)
            self.check(tale.finish(), *(["locks outside"] if wrong else []))

    def test_a_lock_that_is_taken_names_who_may_have_it(self):
        for killed, ended, wrong in [(False, "lost", False), (True, "lost", True), (False, "failed", True)]:
            tale = self.lingering(killed, ended)
            tale.note("clash", "b", 1, TWO, key="k")
            tale.done("b", worker=TWO)
            tale.start("a", 2)
            tale.done("a", 2)
            self.check(tale.finish(), *(["locks outside"] if wrong else []))

    def test_a_late_report_that_was_believed(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.lose("a")
        tale.start("a", 2, TWO)
        tale.done("a", 1, ONE)
        self.assertIn("fencing", [one["promise"] for one in Judge(tale.finish()).judge()])

    def test_a_report_by_somebody_else_than_its_worker(self):
        history = good()
        entry_with(history, "task_done")["actor"] = f"worker:{ONE}"
        history.readers = {}
        self.check(history, "fencing")

    def test_the_output_of_another_attempt(self):
        history = good()
        entry_with(history, "task_done")["events"][0]["output"]["attempt"] = 2
        history.readers = {}
        self.check(history, "fencing")

    def test_a_program_without_a_start_in_the_log(self):
        history = good()
        history.programs.append(history.programs[0] | {"attempt": 9})
        self.check(history, "programs")

    def test_a_program_that_began_before_its_start_was_durable(self):
        history = good()
        history.programs[0]["at"] = 0
        self.check(history, "programs")

    def test_an_attempt_with_two_programs(self):
        history = good()
        history.programs.append(history.programs[0])
        self.check(history, "programs")

    def test_an_end_without_a_start(self):
        history = good()
        history.programs.insert(0, history.programs[1])
        self.check(history, "programs")

    def test_a_task_that_is_done_and_whose_program_never_said_so(self):
        tale = Tale(task("a"))
        tale.start("a")
        tale.done("a", ends=False)
        self.check(tale.finish(), "programs")

    def test_a_task_that_was_done_before_its_program_ended(self):
        history = good()
        history.programs[-1]["at"] += 10 * SECOND
        self.check(history, "programs")

    def test_a_program_that_is_started_after_its_task_was_done(self):
        tale = Tale(task("a"))
        tale.start("a", runs=False)
        tale.done("a", ends=False)
        tale.note("start", "a", 1, ONE)
        self.assertIn("acknowledged", [one["promise"] for one in Judge(tale.finish()).judge()])

    def test_a_completion_that_was_told_and_is_not_in_the_log(self):
        history = good()
        history.told.append({"event": "task_ended", "plan": "p", "task": "a", "status": "done", "attempt": 2})
        self.check(history, "acknowledged")

    def test_an_acknowledged_write_that_is_lost(self):
        history = good()
        history.writes.append({"what": "acknowledged", "token": "n9", "plan": "notes", "version": 3, "at": 0})
        self.check(history, "acknowledged")

    def test_an_acknowledged_write_that_stands_elsewhere(self):
        history = good()
        history.writes[1]["version"] = 2
        self.check(history, "acknowledged")

    def test_a_refused_write_that_stands(self):
        history = good()
        history.writes.append({"what": "refused", "token": "n2", "plan": "notes"})
        self.check(history, "acknowledged")

    def test_a_write_that_was_made_twice(self):
        tale = Tale()
        tale.ask("n1")
        tale.write("person:ada", {"event": "tasks_added", "tasks": [{"id": "n1"}]}, plan="notes")
        self.check(tale.finish(), "written once")

    def test_a_write_that_nobody_asked_for(self):
        history = good()
        del history.writes[2]
        self.check(history, "written once")

    def test_a_reader_that_missed_something(self):
        for name in ["whole", "kinds"]:
            history = good()
            del history.readers[name][1][2]
            self.check(history, "readers")

    def test_a_reader_that_never_came_to_the_end(self):
        for name in ["whole", "kinds"]:
            history = good()
            history.readers[name][1].pop()
            self.check(history, "readers")

    def test_a_reader_that_got_something_twice_or_out_of_order(self):
        for name in ["whole", "kinds"]:
            history = good()
            history.readers[name][1].insert(1, history.readers[name][1][0])
            self.check(history, "readers")
            history = good()
            history.readers[name][1][:2] = reversed(history.readers[name][1][:2])
            self.check(history, "readers")

    def test_a_reader_that_got_something_else(self):
        history = good()
        history.readers["whole"][1][3]["events"] = []
        self.check(history, "readers")

    def test_files_are_read_as_they_are_written_and_the_exit_code_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            history = good()
            for name, documents in [("plans", history.plans), ("final", history.final)]:
                (folder / name).mkdir()
                for key, document in documents.items():
                    (folder / name / f"{key}.json").write_text(json.dumps(document))
            files = {name: getattr(history, name) for name in ["log", "programs", "told", "writes", "faults"]}
            (folder / "readers").mkdir()
            for name, (kinds, got) in history.readers.items():
                files[f"readers/{name}"] = got
                if kinds is not None:
                    (folder / f"readers/{name}.kinds").write_text(" ".join(kinds))
            for name, lines in files.items():
                (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            script = pathlib.Path(__file__).with_name("history.py")
            judge = lambda: subprocess.run([sys.executable, script, folder], capture_output=True, text=True)
            right = judge()
            self.assertEqual((right.returncode, json.loads(right.stdout)["broken"]), (0, 0), right)
            self.assertEqual(json.loads(right.stdout)["figures"]["starts"], 4)
            (folder / "readers/whole.jsonl").write_text("")
            wrong = judge()
            self.assertEqual(wrong.returncode, 1)
            self.assertEqual(json.loads(wrong.stdout)["violations"][0]["promise"], "readers")


SHARED = {"key": "k", "mode": "shared"}

if __name__ == "__main__":
    unittest.main()
