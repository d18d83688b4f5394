"""Agents that use the Python SDK: a parent and its subagent, and one agent that works through a plan of fifty tasks.

    agents.py stdio WAYPOST WORKSPACE
    agents.py http WAYPOST WORKSPACE URL TOKEN TOKEN

The tokens are those of the agents "parent" and "implementer". Each scenario runs in both eras of the protocol. The clients
declare that they ask a person, and are never asked: the account names none of them. The person decides at a terminal.
"""

import asyncio
import contextlib
import json
import pathlib
import shlex
import subprocess
import sys
import time
import warnings

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ElicitResult, Implementation, ResourceUpdatedNotification

PATIENCE_SECONDS = 20
REASON = "as a person says"
ERAS = ("legacy", "auto")
# The SDK says so of everything that only the earlier era has.
warnings.simplefilter("ignore", MCPDeprecationWarning)


class Failed(Exception):
    """Something is not as it should be."""


def must(truth, what, seen):
    if not truth:
        raise Failed(f"{what}: {json.dumps(seen, default=str)[:2000]}")


class Agent:
    """A client with a name, a person in front of it, and an ear for news."""

    def __init__(self, client, person):
        self.client = client
        self.person = person

    async def call(self, tool, **arguments):
        """The structured answer of a tool that has to succeed."""
        answer = await self.client.call_tool(tool, arguments)
        text = " ".join(block.text for block in answer.content)
        must(not answer.is_error, f"{tool} {arguments} was refused", text)
        must(answer.structured_content is not None and text, f"{tool} answered without content", text)
        return answer.structured_content

    async def refused(self, tool, **arguments):
        """What a tool says that has to refuse."""
        answer = await self.client.call_tool(tool, arguments)
        text = " ".join(block.text for block in answer.content)
        must(answer.is_error, f"{tool} {arguments} should have been refused", text)
        return text

    async def until(self, what, condition, tool, **arguments):
        """Asks again until the answer is as it should be."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = await self.call(tool, **arguments)
            if condition(answer):
                return answer
            must(time.monotonic() < end, f"{tool} never showed that {what}", answer)
            await asyncio.sleep(0.05)


    @contextlib.asynccontextmanager
    async def hears_of(self, uri, era):
        """Has to hear that this changed, because of what is done meanwhile."""
        if era == "legacy":
            await self.client.subscribe_resource(uri)
            yield
            heard = await asyncio.wait_for(self.person.updated.get(), PATIENCE_SECONDS)
            await self.client.unsubscribe_resource(uri)
        else:
            async with self.client.listen(resource_subscriptions=[uri]) as news:
                yield
                heard = (await asyncio.wait_for(anext(news), PATIENCE_SECONDS)).uri
        must(heard == uri, "the client is told what changed", heard)


class Person:
    """Would answer whatever comes to a client, and hears what changed."""

    def __init__(self):
        self.questions = []
        self.updated = asyncio.Queue()

    async def asked(self, _context, params):
        self.questions.append(params.message)
        return ElicitResult(action="accept", content={"decision": "approve", "reason": "as the client says"})

    async def heard(self, message):
        if isinstance(message, ResourceUpdatedNotification):
            await self.updated.put(message.params.uri)


class Door:
    """The way to the plans of a workspace."""

    def __init__(self, waypost, workspace):
        self.waypost, self.workspace = waypost, workspace

    def run(self, *words):
        done = subprocess.run(words, cwd=self.workspace, capture_output=True, text=True, check=False)
        must(done.returncode == 0, shlex.join(words), done.stdout + done.stderr)
        return done.stdout

    def approve(self, plan):
        """A person looks at everything and approves. That needs a terminal, so the command gets one of its own."""
        seen = json.loads(self.run(self.waypost, "--json", "preview", plan))["digest"]
        command = shlex.join([self.waypost, "approve", plan, "--yes", "--seen", seen])
        self.run("script", "-qec", command, "/dev/null")

    def reject(self, plan):
        self.run(self.waypost, "reject", plan, "--reason", REASON)


class Stdio(Door):
    """Each agent has a server process of its own; they meet in one SQLite file."""

    @contextlib.asynccontextmanager
    async def agent(self, name, era, toolset, person):
        words = ["mcp", "--toolset", toolset, "--agent", name]
        server = StdioServerParameters(command=self.waypost, args=words, cwd=self.workspace)
        async with connected(server, name, era, person) as agent:
            yield agent


class Http(Door):
    """All agents talk to one server; their tokens say who they are, whatever the client calls itself."""

    def __init__(self, waypost, workspace, url, tokens):
        super().__init__(waypost, workspace)
        self.url, self.tokens = url, tokens

    @contextlib.asynccontextmanager
    async def agent(self, name, era, _toolset, person):
        headers = {"Authorization": f"Bearer {self.tokens[name]}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            async with connected(streamable_http_client(self.url, http_client=http), "somebody", era, person) as agent:
                yield agent


@contextlib.asynccontextmanager
async def connected(server, name, era, person):
    client = Client(
        server,
        mode=era,
        client_info=Implementation(name=name, version="1"),
        elicitation_callback=person.asked,
        message_handler=person.heard,
        read_timeout_seconds=60,
    )
    async with client:
        is_of_today = client.protocol_version >= "2026"
        must(is_of_today == (era == "auto"), f"the era is {era}", client.protocol_version)
        yield Agent(client, person)


async def parent_and_subagent(door, era):
    """The workflow of the jaato document, from the subscription to the output that the parent receives."""
    mark = f"{era} {time.time_ns()}"
    helper, boss = Person(), Person()
    async with door.agent("parent", era, "jaato", boss) as parent:
        subscribed = await parent.call("subscribeToTasks", event_types=["plan_created", "step_completed"])
        plan = await parent.call("createPlan", title=f"Ship {mark}", steps=["Agree on the interface", "Announce it"])
        must(plan["status"] == "pending" and len(plan["steps"]) == 2, "createPlan", plan)
        await parent.client.call_tool("startPlan", {"message": "Ready to proceed?", "timeout": 0})
        must(not boss.questions, "no client decides for a person", boss.questions)
        status = await parent.call("getPlanStatus")
        must(status["status"] not in ("active", "in_progress"), "nothing runs before a person approves", status)
        door.approve(plan["plan_id"])
        status = await parent.call("getPlanStatus")
        must(status["status"] in ("active", "in_progress"), "the plan runs once it is approved", status)

        async with door.agent("implementer", era, "jaato", helper) as implementer:
            theirs = await subagent_begins(door, implementer, mark)
            last = theirs["steps"][-1]["id"]
            events = await parent.call("getTaskEvents", agent_id="implementer", event_types=["plan_created"])
            must("implementer" in json.dumps(events), "the parent sees the plan of the subagent", events)

            added = await parent.call(
                "addDependentStep",
                description="Review what was implemented",
                depends_on=[{"agent_id": "implementer", "step_id": last}],
            )
            must(added["status"] == "blocked" and len(added["blocked_by"]) == 1, "addDependentStep", added)
            blocked = await parent.call("getBlockedSteps")
            must(blocked["count"] == 1 and blocked["blocked_steps"][0]["step_id"] == added["step_id"], "blocked", blocked)

            output = {"passed": True, "results": ["file1.py created", "tests pass"], "errors": []}
            async with parent.hears_of(f"waypost://plans/{plan['plan_id']}", era):
                await subagent_ends(door, implementer, theirs, output)

        await parent.until("nothing is blocked", lambda seen: not seen["blocked_steps"], "getBlockedSteps")
        status = await parent.call("getPlanStatus")
        review = next(step for step in status["steps"] if added["step_id"] in (step.get("step_id"), step.get("id")))
        must(review["status"] == "pending", "the review can begin", review)
        received = review["received_outputs"]
        must(received.get(f"implementer:{last}") == output, "the output arrives with its values", received)
        events = await parent.call("getTaskEvents", event_types=["step_completed"], limit=50)
        must(last in json.dumps(events), "the parent sees the step that was completed", events)
    await parent_ends(door, era, plan, added["step_id"], subscribed)


async def subagent_begins(door, implementer, mark):
    plan = await implementer.call("createPlan", title=f"Implement {mark}", steps=["Write it", "Test it"])
    # A person who says nothing, and one who says no, have not approved.
    first = await implementer.client.call_tool("startPlan", {"message": "May I?", "timeout": 0})
    must("running" not in first.content[0].text, "a plan that nobody approved does not run", first.content[0].text)
    door.reject(plan["plan_id"])
    status = await implementer.call("getPlanStatus")
    must(status["status"] not in ("active", "in_progress"), "a plan that was rejected does not run", status)
    # The answer stands for the plan as it was: nobody is asked again before there is another one.
    again = await implementer.client.call_tool("startPlan", {"message": "Really not?", "timeout": 0})
    must(REASON in again.content[0].text, "a rejection is told with its reason", again.content[0].text)
    must(not implementer.person.questions, "no client decides for a person", implementer.person.questions)
    return await implementer.call("createPlan", title=f"Implement {mark} better", steps=["Write it well", "Test it"])


async def subagent_ends(door, implementer, plan, output):
    steps = [step["id"] for step in plan["steps"]]
    await implementer.client.call_tool("startPlan", {"message": "And now?", "timeout": 0})
    door.approve(plan["plan_id"])
    await implementer.until(
        "the plan runs", lambda seen: seen["status"] in ("active", "in_progress"), "getPlanStatus"
    )
    await implementer.call("setStepStatus", step_id=steps[0], status="in_progress")
    # Whoever says "unable to" has not completed anything.
    dishonest = await implementer.client.call_tool(
        "setStepStatus", {"step_id": steps[0], "status": "completed", "result": "Unable to write two of five files"}
    )
    must("failed" in dishonest.content[0].text, "a result that admits failure is called by its name", dishonest.content[0].text)
    await implementer.call("setStepStatus", step_id=steps[0], status="completed", result="Five files written")
    await implementer.call("setStepStatus", step_id=steps[1], status="in_progress")
    done = await implementer.call("completeStepWithOutput", step_id=steps[1], output=output, result="All tests pass")
    must("error" not in done, "completeStepWithOutput", done)
    await implementer.call("completePlan", status="completed", summary="Implemented")


async def parent_ends(door, era, plan, review, subscribed):
    """The parent comes back in another session, and finds everything as it left it."""
    async with door.agent("parent", era, "jaato", Person()) as parent:
        subscriptions = await parent.call("listSubscriptions")
        must(subscribed["subscription_id"] in json.dumps(subscriptions), "the subscription is still there", subscriptions)
        await parent.call("unsubscribe", subscription_id=subscribed["subscription_id"])
        extra = await parent.call("addStep", description="Thank everybody", after_step_id=review)
        for step in [step["id"] for step in plan["steps"]] + [review]:
            await parent.call("setStepStatus", step_id=step, status="in_progress")
            await parent.call("setStepStatus", step_id=step, status="completed", result="Done")
        await parent.call("setStepStatus", step_id=extra["step_id"], status="skipped", result="Nobody is left to thank")
        await parent.call("completePlan", status="completed", summary="Shipped")
        status = await parent.call("getPlanStatus", plan_id=plan["plan_id"])
        must(status["status"] == "completed", "the plan is completed", status)
        shown = await parent.client.get_prompt("plan", {"plan": plan["plan_id"]})
        must("[x]" in shown.messages[0].content.text, "the prompt shows what is done", shown.messages[0].content.text)


async def fifty_tasks(door, era):
    """One agent, a plan of fifty tasks: next, report, edit, export, update, events."""
    tasks = [{"description": "Task 1"}]
    tasks += [{"description": f"Task {number}", "depends_on": [f"t{number - 1}"]} for number in range(2, 51)]
    person = Person()
    async with door.agent("implementer", era, "native", person) as agent:
        made = await agent.call("plan_create", title=f"Fifty {era}", tasks=tasks)
        plan, version = made["plan"], made["version"]
        must(made["tasks"] == 50, "plan_create", made)
        refusal = await agent.refused("plan_create", title="Ring", tasks=[{"id": "a", "depends_on": ["b"]}, {"id": "b", "depends_on": ["a"]}])
        must("a" in refusal and "b" in refusal, "a ring is refused, and named", refusal)

        await agent.client.call_tool("plan_start", {"plan": plan, "message": "Fifty of them", "wait": 0})
        door.approve(plan)
        started = await agent.call("plan_start", plan=plan, message="Fifty of them")
        must(started["phase"] == "active" and not person.questions, "plan_start", [started, person.questions])
        seen = (await agent.call("events", plans=[plan]))["cursor"]
        for number in range(1, 4):
            taken = await agent.call("task_next", plan=plan)
            must(f"t{number}" == taken["task"], "the tasks come in their order", taken)
            if number > 1:
                must(f"result {number - 1}" in json.dumps(taken), "with the output of the one before", taken)
            await agent.call("task_report", plan=plan, task=taken["task"], status="done", output={"said": f"result {number}"})
        overview = await agent.call("plan_get", plan=plan)
        must((overview["done"], overview["total"]) == (3, 50), "plan_get", overview)
        news = await agent.call("events", plans=[plan], cursor=seen)
        must(json.dumps(news).count("t3") > 0, "events tell what happened since", news)

        ops = [{"op": "revise", "task": f"t{number}", "description": f"Changed {number}"} for number in range(10, 15)]
        edited = await agent.call("plan_edit", plan=plan, ops=ops)
        must(edited["version"] > version, "plan_edit", edited)
        stale = await agent.refused("plan_edit", plan=plan, known_version=version, ops=[{"op": "remove", "task": "t50"}])
        must("version" in stale, "a version that is not the latest is refused", stale)
        await through_a_file(agent, door, plan, f".waypost/files/fifty-{era}.md")
        # The agent has one open plan at a time in the other scenario.
        await agent.call("plan_edit", plan=plan, ops=[{"op": "plan", "phase": "cancelled", "summary": "Enough of them"}])
        ended = await agent.call("plan_get", plan=plan)
        must(ended["phase"] == "cancelled", "the plan is cancelled", ended)


async def through_a_file(agent, door, plan, name):
    await agent.call("plan_export", plan=plan, file=name)
    file = pathlib.Path(door.workspace, name)
    text = file.read_text()
    must("Changed 12" in text, "the file has what was changed", text[:500])
    file.write_text(text.replace("Changed 12", "Changed in the file"))
    await agent.call("plan_update", plan=plan, file=name)
    task = await agent.call("plan_get", plan=plan, task="t12")
    must(task["description"] == "Changed in the file", "the file's change arrived", task)
    outside = await agent.refused("plan_export", plan=plan, file="../outside.md")
    must("workspace" in outside or "outside" in outside, "files stay inside of the workspace", outside)


async def main(words):
    if words[0] == "stdio":
        door = Stdio(*words[1:])
    else:
        waypost, workspace, url, parent, implementer = words[1:]
        door = Http(waypost, workspace, url, {"parent": parent, "implementer": implementer})
    for era in ERAS:
        for scenario in (parent_and_subagent, fifty_tasks):
            begin = time.monotonic()
            try:
                async with asyncio.timeout(6 * PATIENCE_SECONDS):
                    await scenario(door, era)
            except BaseException as error:
                print(f"   {scenario.__name__} over {words[0]} ({era}): FAILED", flush=True)
                raise error
            print(f"   {scenario.__name__} over {words[0]} ({era}): ok after {time.monotonic() - begin:.1f} s", flush=True)


asyncio.run(main(sys.argv[1:]))
