"""How a tool of the server is registered: what it may do, and how its refusals reach the agent."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from torchstone.conductor.experiments.checks.check import HELPERS
from torchstone.core.errors import TorchstoneError

F = TypeVar("F", bound=Callable[..., Any])
READS = ToolAnnotations(read_only_hint=True)
RUNS = ToolAnnotations(read_only_hint=False, destructive_hint=False)
"""It runs code of the project or writes into the run folder; the project itself stays as it is."""
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=True)
CHECK_FORM = (
    "Python source with test functions (pytest) that import and call the project's own code and fail as long "
    "as the fault is there; no reading of source text, no patching; it runs in a sandbox with three seeds; "
    + HELPERS
)


def add_tool(server: MCPServer, annotations: ToolAnnotations) -> Callable[[F], F]:
    """A tool whose refusals reach the agent as one sentence, not as a crash."""

    def add(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except TorchstoneError as error:
                raise ToolError(error.say("en")) from None

        server.tool(annotations=annotations)(call)
        return function

    return add
