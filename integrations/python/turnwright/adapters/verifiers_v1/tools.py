"""Tools of verifiers' toolsets. Their MCP servers are used in this process, so that schemas, checks of arguments and
texts of results are the library's own."""

from __future__ import annotations

import json
from typing import Any, Sequence


class Tools:
    """The tools of one task."""

    def __init__(self) -> None:
        self._servers: dict[str, tuple[Any, Any]] = {}

    async def serve(self, toolsets: Sequence[Any], data: Any = None) -> None:
        """Adds toolsets. `data` is the data of the task, or None for toolsets that all tasks share."""
        from mcp.server.mcpserver import MCPServer
        from verifiers.v1.utils.decorators import discover_decorated

        for toolset in toolsets:
            prefix = toolset.server_name
            server = MCPServer(prefix or type(toolset).__name__)
            await toolset.setup()
            if data is not None:
                await toolset.setup_task(data)
            for function in discover_decorated(toolset, "tool"):
                name = getattr(function, "tool_name", None) or function.__name__
                server.add_tool(function, name=name, description=(function.__doc__ or "").strip() or None)
            for tool in await server.list_tools():
                self._servers[f"{prefix}_{tool.name}" if prefix else tool.name] = (server, tool)

    def share(self, others: Tools) -> None:
        """Adds the tools that all tasks share."""
        self._servers.update(others._servers)

    def describe(self) -> list[dict[str, Any]]:
        """Returns the definitions that the model sees."""
        return [
            {"name": name, "description": tool.description or "", "parameters": tool.input_schema}
            for name, (_, tool) in self._servers.items()
        ]

    def definitions(self) -> list[Any]:
        """Returns the definitions as a trace has them."""
        from verifiers.v1.types import Tool

        return [Tool(**described) for described in self.describe()]

    async def call(self, call: Any, state: Any) -> Any:
        """Performs a call on the state of an attempt. Returns the message that answers it."""
        from verifiers.v1.harnesses.utils.compaction import bound_tool_message
        from verifiers.v1.types import ToolMessage

        message = {"role": "tool", "tool_call_id": call.id, "content": await self._content(call, state)}
        return ToolMessage.model_validate(bound_tool_message(message))

    async def _content(self, call: Any, state: Any) -> Any:
        from verifiers.v1.harnesses.utils.mcp import mcp_content_to_chat_content
        from verifiers.v1.mcp.server import _call_state

        if call.name not in self._servers:
            return f"Error: no tool {call.name}"
        try:
            arguments = json.loads(call.arguments or "{}")
        except ValueError as error:
            return f"Error: the arguments are no JSON: {error}"
        if not isinstance(arguments, dict):
            return "Error: the arguments are no JSON object"
        server, tool = self._servers[call.name]
        token = _call_state.set(state)
        try:
            result = await server.call_tool(tool.name, arguments)
        except Exception as error:
            # As the server answers over HTTP.
            return str(error)
        finally:
            _call_state.reset(token)
        return mcp_content_to_chat_content(result.content)
