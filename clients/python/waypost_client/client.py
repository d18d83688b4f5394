"""The client: plans, tasks and events in a few calls, each typed, over the generated functions."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Generator, Iterator, Mapping, Sequence, TypeVar
from urllib.parse import quote

import httpx

from .errors import raise_refusal
from .generated import AuthenticatedClient
from .generated.api.default import (
    act_on_plan,
    act_on_task,
    claim_next_task,
    create_plan,
    edit_plan,
    export_plan,
    get_me,
    get_plan,
    get_task,
    list_events,
    list_plans,
    list_tasks,
)
from .generated.models import (
    ActionBody,
    ActOnPlanAction,
    ActOnTaskAction,
    ClaimBody,
    CreateBody,
    Edits,
    Head,
    Me,
    Plan,
    PlanEvent,
    Problem,
    Task,
    TaskDetail,
    TaskRow,
    Written,
)
from .generated.types import UNSET, Unset
from .retries import Retries, RetryTransport
from .server_events import ServerEvent, follow

T = TypeVar("T")

#: A task of a new plan: its description, or its fields in the native format.
NewTask = str | Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A task that this caller has claimed. Reports name its attempt, so that they are refused if the task was started again since."""

    plan: str
    id: str
    attempt: int
    task: TaskDetail
    lease_seconds: int


class Waypost:
    """A server of Waypost. Closes its connections at the end of a ``with`` block."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 30.0,
        retries: Retries = Retries(),
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._retries = retries
        #: The client that every function of ``waypost_client.generated.api`` takes.
        self.api = AuthenticatedClient(
            base_url=url.rstrip("/"),
            token=token,
            # Without it, the path of the events would answer with a stream that never ends.
            headers={"accept": "application/json"},
            timeout=httpx.Timeout(timeout),
            httpx_args={
                "transport": RetryTransport(transport or httpx.HTTPTransport(), retries),
                "event_hooks": {"response": [raise_refusal]},
            },
        )

    def __enter__(self) -> Waypost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self.api.get_httpx_client().close()

    def me(self) -> Me:
        """The caller, and the server."""
        return self._call(get_me.sync)

    def create_plan(
        self, title: str, tasks: Sequence[NewTask] = (), *, goal: str | None = None, key: str | None = None
    ) -> Written:
        """Creates a plan. The same ``key`` gives the same plan, so that it can be created again when nobody knows whether it was."""
        numbered = enumerate(tasks, start=1)
        plan: dict[str, Any] = {"format": "waypost/1", "title": title, "tasks": [_new_task(n, task) for n, task in numbered]}
        if goal is not None:
            plan["goal"] = goal
        return self._create(CreateBody(plan=plan), key)

    def import_plan(self, text: str, *, format: str | None = None, key: str | None = None) -> Written:
        """Creates a plan from a text in any format that Waypost reads."""
        return self._create(CreateBody(text=text, format_=_or_unset(format)), key)

    def _create(self, body: CreateBody, key: str | None) -> Written:
        return self._call(create_plan.sync, body=body, idempotency_key=key or str(uuid.uuid4()))

    def plan(self, plan: str) -> Plan:
        found: Plan = self._call(get_plan.sync, plan=plan)
        return found

    def plans(self, **filters: Any) -> Iterator[Head]:
        """All plans that fit, page by page. Filters: ``phase``, ``owner``, ``queue``, ``text``, ``sort`` and so on."""
        after: str | None = filters.pop("after", None)
        while True:
            page = self._call(list_plans.sync, **filters, after=_or_unset(after))
            yield from page.plans
            after = page.next_ if isinstance(page.next_, str) else None
            if after is None:
                return

    def tasks(self, plan: str, **filters: Any) -> Iterator[TaskRow]:
        """All tasks of a plan that fit, page by page."""
        after: str | None = filters.pop("after", None)
        while True:
            page = self._call(list_tasks.sync, plan=plan, **filters, after=_or_unset(after))
            yield from page.tasks
            after = page.next_ if isinstance(page.next_, str) else None
            if after is None:
                return

    def task(self, plan: str, task: str) -> Task:
        return self._call(get_task.sync, plan=plan, task=task)

    def edit(self, plan: str, operations: Sequence[Mapping[str, Any]], *, version: int | None = None) -> Written:
        """Edits a plan: all operations, or none. With ``version``, only if the plan has not changed since."""
        body = Edits.from_dict({"operations": [dict(operation) for operation in operations]})
        if_match = UNSET if version is None else f'"{version}"'
        return self._call(edit_plan.sync, plan=plan, body=body, if_match=if_match)

    def start(self, plan: str) -> Written:
        """Starts a plan, or asks a person to approve it first; ``phase`` tells which."""
        return self._call(act_on_plan.sync, plan=plan, action=ActOnPlanAction.START, body=ActionBody())

    def export(self, plan: str, format: str = "native") -> str:
        return self._call(export_plan.sync, plan=plan, format_=format)

    def claim(
        self, plan: str | None = None, *, queue: str | None = None, lease_seconds: int | None = None
    ) -> Claim | None:
        """Claims the most urgent ready task, of one plan or of all; ``None`` if none is ready."""
        body = ClaimBody(plan=_or_unset(plan), queue=_or_unset(queue), lease_seconds=_or_unset(lease_seconds))
        reply = self._call(claim_next_task.sync, body=body)
        if reply.task is None:
            return None
        attempt, lease_seconds = _or(reply.task.state.attempt, 0), _or(reply.lease_seconds, 0)
        return Claim(_or(reply.plan, ""), reply.task.id, attempt, reply.task, lease_seconds)

    def progress(self, claim: Claim, progress: str) -> Written:
        """Reports progress, which also renews the lease."""
        return self._report(claim, ActOnTaskAction.PROGRESS, ActionBody(progress=progress))

    def done(self, claim: Claim, *, result: str | None = None, output: Any = UNSET) -> Written:
        return self._report(claim, ActOnTaskAction.DONE, ActionBody(result=_or_unset(result), output=output))

    def fail(self, claim: Claim, error: str) -> Written:
        return self._report(claim, ActOnTaskAction.FAIL, ActionBody(error=error))

    def release(self, claim: Claim, reason: str = "") -> Written:
        """Gives the task back unfinished."""
        return self._report(claim, ActOnTaskAction.RELEASE, ActionBody(reason=reason))

    def _report(self, claim: Claim, action: ActOnTaskAction, body: ActionBody) -> Written:
        body.attempt = claim.attempt
        return self._call(act_on_task.sync, plan=claim.plan, task=claim.id, action=action, body=body)

    def events(
        self,
        *,
        plan: str | None = None,
        kind: str | None = None,
        agent: str | None = None,
        task: str | None = None,
        after: str | None = None,
    ) -> Generator[PlanEvent, None, None]:
        """Follows the events from now on, or after a position of the log. Misses none and yields none twice, however often the
        connection is lost."""
        # A stream without a position would miss what happens before its first event arrives.
        after = after or self._call(list_events.sync, after="latest", limit=1).cursor
        given = {"plan": plan, "kind": kind, "agent": agent, "task": task, "after": after}
        for event in self._follow("/api/v1/events", given):
            # A progress report is not part of the log.
            if event.name != "progress":
                yield PlanEvent.from_dict(json.loads(event.data))

    def log(self, plan: str, task: str, *, attempt: int | None = None) -> Generator[str, None, None]:
        """Follows the log of an attempt, or of the latest one, until the attempt ends."""
        # Named, so that a new connection does not continue in a newer attempt.
        number = attempt if attempt is not None else self.task(plan, task).state.attempt
        path = f"/api/v1/plans/{quote(plan, safe='')}/tasks/{quote(task, safe='')}/log"
        for event in self._follow(path, {"follow": "true", "attempt": str(number) if number else None}):
            if event.name == "end":
                return
            if event.name == "log":
                yield json.loads(event.data)

    def _follow(self, path: str, given: Mapping[str, str | None]) -> Iterator[ServerEvent]:
        parameters = {name: value for name, value in given.items() if value is not None}
        return follow(self.api.get_httpx_client(), path, parameters, self._retries)

    def _call(self, operation: Callable[..., T | Problem | None], **arguments: Any) -> T:
        """Calls a generated function."""
        reply = operation(client=self.api, **arguments)
        # What the server refuses was raised before it was parsed.
        assert reply is not None and not isinstance(reply, Problem), reply
        return reply


def _or(value: T | Unset, default: T) -> T:
    return default if isinstance(value, Unset) else value


def _or_unset(value: T | None) -> T | Unset:
    return UNSET if value is None else value


def _new_task(number: int, task: NewTask) -> dict[str, Any]:
    fields: dict[str, Any] = {"description": task} if isinstance(task, str) else dict(task)
    return {"id": f"t{number}", **fields}
