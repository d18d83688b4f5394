"""An agent of the Claude Agent SDK that keeps its plans in Waypost, and works through them.

    pip install claude-agent-sdk
    python claude_agent_sdk_agent.py "Plan the move to signed tokens, and work through it."
"""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

OPTIONS = ClaudeAgentOptions(
    mcp_servers={"waypost": {"command": "waypost", "args": ["mcp", "--agent", "claude-agent-sdk"]}},
    allowed_tools=["mcp__waypost__*"],
)


async def main(prompt: str) -> None:
    async for message in query(prompt=prompt, options=OPTIONS):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main(sys.argv[1]))
