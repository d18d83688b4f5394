"""An agent of LangGraph that keeps its plans in Waypost, and works through them.

    pip install langchain langchain-mcp-adapters langchain-openai
    python langgraph_agent.py "Plan the move to signed tokens, and work through it."
"""

import asyncio
import os
import sys

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

STEPS_MAX = 200
WAYPOST = {"transport": "stdio", "command": "waypost", "args": ["mcp", "--agent", "langgraph"]}


async def main(prompt: str) -> None:
    model = init_chat_model(os.environ.get("OPENAI_MODEL", "gpt-5"), model_provider="openai")
    # One session for the whole run: `get_tools` would begin one for each call, and a task belongs to the session that claimed it.
    async with MultiServerMCPClient({"waypost": WAYPOST}).session("waypost") as session:
        graph = create_agent(model, await load_mcp_tools(session))
        state = await graph.ainvoke({"messages": [("user", prompt)]}, {"recursion_limit": STEPS_MAX})
    print(state["messages"][-1].content)


asyncio.run(main(sys.argv[1]))
