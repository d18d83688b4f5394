"""What the Python client promises, behind a proxy that loses things: scenario.py URL, with the token in WAYPOST_TOKEN."""

import os
import sys
import time

import httpx
from waypost_client import Retries, VersionConflict, Waypost, WaypostError

pauses: list[float] = []


def sleep(seconds: float) -> None:
    pauses.append(seconds)
    time.sleep(min(seconds, 0.05))


with Waypost(sys.argv[1], os.environ["WAYPOST_TOKEN"], retries=Retries(sleep=sleep)) as waypost:
    # Turned away once: the server says how long to wait.
    assert waypost.me().role == "agent"
    assert pauses == [1.0], pauses

    # The reply is lost, and the plan was created: the same key gives the same plan.
    made = waypost.create_plan("Lost replies", ["One", {"description": "Two", "depends_on": ["t1"]}])
    found = [plan.id for plan in waypost.plans(text="Lost replies")]
    assert found == [made.id], (found, made)
    assert len(pauses) == 2, pauses

    # A claim is not repeated when nobody knows whether it arrived.
    waypost.start(made.id)
    try:
        waypost.claim(made.id)
        raise AssertionError("the connection was cut")
    except httpx.TransportError:
        pass
    claim = waypost.claim(made.id, lease_seconds=60)
    assert claim and (claim.id, claim.attempt, claim.lease_seconds) == ("t1", 1, 60), claim
    assert claim.task.description == "One", claim.task
    waypost.progress(claim, "half")
    assert waypost.done(claim, result="r", output={"n": 1}).standing == "done"
    second = waypost.claim(made.id)
    assert second and second.task.received_outputs, second
    assert second.task.received_outputs["t1"] == {"n": 1}, second
    waypost.release(second, "later")

    # Refusals are typed.
    try:
        waypost.edit(made.id, [{"op": "add", "task": {"description": "Three"}}], version=made.version)
        raise AssertionError("the version is stale")
    except VersionConflict as conflict:
        assert conflict.problem["conflict"]["known"] == made.version, conflict.problem
    added = waypost.edit(made.id, [{"op": "add", "task": {"description": "Three"}}])
    assert added.added == ["t3"], added
    try:
        waypost.plan("nowhere")
        raise AssertionError("there is no such plan")
    except WaypostError as error:
        assert (error.status, error.code) == (404, "no_such_plan") and error.hint, error

    # Each connection carries one event: all arrive, each once, in the order of the log.
    stream = waypost.events(plan=made.id, after="0")
    received = [next(stream) for _ in range(8)]
    places = [(event.sequence, event.index) for event in received]
    assert places == sorted(set(places)), places
    assert received[0].kind == "plan_created" and received[0].plan == made.id, received[0]
    kinds = [event.kind for event in received]
    assert "task_done" in kinds and "task_unblocked" in kinds, kinds

    # Events of a stream without a position begin where the log ends now.
    latest = waypost.events(plan=made.id)
    assert "Lost replies" in waypost.export(made.id, "markdown")
    assert [task.id for task in waypost.tasks(made.id)] == ["t1", "t2", "t3"]
    assert waypost.task(made.id, "t1").state.result == "r"
    latest.close()
