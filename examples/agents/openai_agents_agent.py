"""An agent of the OpenAI Agents SDK that keeps its plans in Waypost, and works through them.

    pip install openai-agents
    python openai_agents_agent.py "Plan the move to signed tokens, and work through it."
"""

import asyncio
import os
import sys

from agents import Agent, Runner
from agents.mcp import MCPServerStdio

TURNS_MAX = 100
WAYPOST = {"command": "waypost", "args": ["mcp", "--agent", "openai-agents"]}


async def main(prompt: str) -> None:
    # `plan_start` waits for a person's approval, longer than the five seconds that the SDK gives a tool.
    async with MCPServerStdio(params=WAYPOST, client_session_timeout_seconds=120) as waypost:
        agent = Agent(name="Planner", model=os.environ.get("OPENAI_MODEL", "gpt-5"), mcp_servers=[waypost])
        result = await Runner.run(agent, prompt, max_turns=TURNS_MAX)
        print(result.final_output)


asyncio.run(main(sys.argv[1]))
