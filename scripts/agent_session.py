"""An agent's review of the forecaster through MCP: `agent_session.py FOLDER`. Prints where its report is.

The agent hands in one fault that it found by reading, with a check, and changes for what the tools found.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

from mcp import Client

from torchstone.integrations.mcp.server import build_server

HOME = Path(__file__).parent.parent / "examples" / "review"
CLAIM = "the mean divides by all hours, not by those that were reported"
MEAN = (
    "    error, _ = masked_error(predicted, loads, seen)\n    return error / seen.numel()",
    "    error, count = masked_error(predicted, loads, seen)\n    return error / count.clamp(min=1)",
)
CHANGES = {
    "DR201": ("model.py", "self.total(hours)", "self.total(hours).squeeze(-1)"),
    "EX109": ("train.py", "Windows(loads, seen, 0, args.hours)", "Windows(loads, seen, 0, split)"),
    "EX120": (
        "train.py",
        "AnnealingLR(optimizer, epochs)",
        "AnnealingLR(optimizer, epochs * len(train))",
    ),
}


async def lead(folder: Path) -> Path:
    """All six phases, as an agent calls them."""
    shutil.copytree(HOME / "forecast", folder / "forecast")
    async with Client(build_server(folder, folder / "runs")) as client:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            answer = await client.call_tool(tool, arguments)
            if answer.is_error:
                raise SystemExit(f"{tool}: {answer.content}")
            return answer.structured_content or {}

        run = (await call("plan", path="forecast"))["run_id"]
        await call("run", run_id=run)
        found = (await call("findings", run_id=run))["problems"]
        check = (HOME / "forecast_checks" / "hours_that_count.py").read_text("utf-8")
        mine = await call(
            "submit_finding",
            run_id=run,
            file="metrics.py",
            line=12,
            claim=CLAIM,
            severity="HIGH",
            check=check,
        )
        changes = {item["id"]: CHANGES[item["rule"]] for item in found if item["rule"] in CHANGES}
        changes[mine["problem"]] = ("metrics.py", *MEAN)
        for problem, (path, old, new) in changes.items():
            edits = [{"path": path, "old": old, "new": new}]
            await call("submit_solution", run_id=run, problem=problem, edits=edits, reason="")
        await call("verify", run_id=run)
        return folder / "runs" / run / "report.html"


if __name__ == "__main__":
    print(asyncio.run(lead(Path(sys.argv[1]))))
