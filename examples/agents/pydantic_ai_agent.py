"""An agent of Pydantic AI that keeps its plans in Waypost, and works through them.

    pip install "pydantic-ai-slim[openai,mcp]"
    python pydantic_ai_agent.py "Plan the move to signed tokens, and work through it."
"""

import asyncio
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.usage import UsageLimits

# `plan_start` waits for a person's approval.
WAYPOST = MCPToolset(StdioTransport("waypost", ["mcp", "--agent", "pydantic-ai"]), read_timeout=120)


async def main(prompt: str) -> None:
    agent = Agent("openai-chat:" + os.environ.get("OPENAI_MODEL", "gpt-5"), toolsets=[WAYPOST])
    async with agent:
        result = await agent.run(prompt, usage_limits=UsageLimits(request_limit=100))
    print(result.output)


asyncio.run(main(sys.argv[1]))
