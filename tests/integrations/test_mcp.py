"""The server for agents, driven by the SDK's own client: in process, over stdio, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
from mcp import Client, MCPError, StdioServerParameters

from tests.conductor.conftest import MODEL, TESTS, TRAIN
from tests.conductor.test_checks import CHECK, METRICS
from torchstone.cli.main import run as torchstone
from torchstone.integrations.mcp.answers import MOST_TEXT
from torchstone.integrations.mcp.server import build_server
from torchstone.sandbox.run import is_confined

pytestmark = pytest.mark.skipif(not is_confined(), reason="this system offers no walls")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root" / "project"
    (place / "tests").mkdir(parents=True)
    soft = TRAIN.replace("F.cross_entropy(model(x), y)", "F.cross_entropy(model(x).softmax(-1), y)")
    for name, text in (("model.py", MODEL), ("train.py", soft), ("tests/test_net.py", TESTS)):
        (place / name).write_text(text)
    return place.parent


def answer(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    found: dict[str, Any] = result.structured_content
    return found


def refusal(result: Any) -> str:
    assert result.is_error
    text: str = result.content[0].text
    assert "Traceback" not in text
    return text


def test_all_six_phases(root: Path, tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            plan = answer(await client.call_tool("plan", {"path": "project", "depth": "quick"}))
            run = plan["run_id"]
            assert {job["tool"] for job in plan["runs"]} == {"lint", "ruff"}
            ran = answer(await client.call_tool("run", {"run_id": run, "runs_wanted": ["lint"]}))
            assert ran["problems"] >= 4
            page = answer(await client.call_tool("findings", {"run_id": run, "limit": 2}))
            assert len(page["problems"]) == 2
            rest = answer(await client.call_tool(
                "findings", {"run_id": run, "limit": 50, "cursor": page["next_cursor"]}))  # fmt: skip
            rows = page["problems"] + rest["problems"]
            assert len({row["id"] for row in rows}) == page["total"]
            soft = next(row for row in rows if row["rule"] == "TS203")
            told = answer(await client.call_tool("explain", {"run_id": run, "problem": soft["id"]}))
            assert told["code"]["untrusted"] is True
            assert "softmax" in told["code"]["text"]
            edits = [{"path": "train.py", "old": "model(x).softmax(-1)", "new": "model(x)"}]
            done = answer(await client.call_tool(
                "submit_solution", {"run_id": run, "problem": soft["id"], "edits": edits, "reason": "logits"}))  # fmt: skip
            assert done["applies"]
            proposed = answer(await client.call_tool("propose", {"run_id": run}))
            mine = [
                row
                for row in proposed["solutions"]
                if row["problem"] == soft["id"] and row["kind"] == "model"
            ]
            assert mine
            chosen = {soft["id"]: mine[0]["id"]}
            proposed = answer(await client.call_tool("propose", {"run_id": run, "choose": chosen}))
            assert next(row for row in proposed["solutions"] if row["id"] == mine[0]["id"])[
                "chosen"
            ]
            guide = answer(await client.call_tool("guide", {"run_id": run}))
            assert guide["patches"]
            verified = answer(await client.call_tool("verify", {"run_id": run}))
            verdict = next(row for row in verified["verdicts"] if row["problem"] == soft["id"])
            assert verdict["outcome"] == "fixed"
            assert "no changes that are proven" in refusal(
                await client.call_tool("apply", {"run_id": run})
            )
            shown = answer(await client.call_tool("trace_show", {"run_id": run}))
            assert "PLAN" in shown["text"]
            replayed = answer(await client.call_tool("trace_replay", {"run_id": run}))
            assert "same decisions" in replayed["text"]
            report = (
                (await client.read_resource(f"torchstone://run/{run}/report.md")).contents[0].text
            )
            assert "TS203" in report
            kept = next((tmp_path / "runs").rglob("patches"))
            names = sorted(path.name for path in kept.glob("*.patch"))
            for name in names:
                address = f"torchstone://run/{run}/patches/{name}"
                text = (await client.read_resource(address)).contents[0].text
                assert text == (kept / name).read_text("utf-8")
            assert names
            # problems that were joined by a later finding have other ids than the plan of work knows
            solutions = next((tmp_path / "runs").rglob("solutions.json"))
            solutions.write_text(solutions.read_text("utf-8").replace(soft["id"], "p-00000000"))
            again = answer(await client.call_tool("verify", {"run_id": run}))
            assert soft["id"] in {row["problem"] for row in again["verdicts"]}

    asyncio.run(go())


def test_answers_are_bounded(root: Path, tmp_path: Path) -> None:
    (root / "project" / "long.py").write_text(
        "import torch.nn.functional as F\n"
        + "".join(f"def f{n}(x):\n    return F.dropout(x, 0.1)\n" for n in range(400))
    )

    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            run = answer(await client.call_tool("plan", {"path": "project", "depth": "quick"}))[
                "run_id"
            ]
            for name, more in (
                ("run", {"runs_wanted": ["lint"]}),
                ("findings", {}),
                ("propose", {}),
                ("guide", {}),
            ):
                found = answer(await client.call_tool(name, {"run_id": run, **more}))
                assert max(len(text) for text in _texts(found)) <= MOST_TEXT

    asyncio.run(go())


def _texts(data: Any) -> list[str]:
    if isinstance(data, dict):
        return [text for item in data.values() for text in _texts(item)]
    if isinstance(data, list):
        return [text for item in data for text in _texts(item)]
    return [data] if isinstance(data, str) else [""]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plan", {"path": "../.."}),
        ("plan", {"path": "/etc"}),
        ("plan", {"path": "project", "depth": "deepest"}),
        ("plan", {"path": "project", "goals": ["world peace"]}),
        ("run", {"run_id": "../../etc"}),
        ("run", {"run_id": "nope"}),
        ("findings", {"run_id": "", "limit": 1}),
        ("findings", {"run_id": "x", "limit": 100000}),
        ("verify_kernel", {"problem": "../x.py", "candidate": "", "impl": "numpy"}),
        ("verify_kernel", {"problem": "relu", "candidate": "", "impl": "bash"}),
        ("plan", {"path": "project\0"}),
        ("plan", {"path": "x" * 5000}),
        ("verify_kernel", {"problem": "x" * 5000 + ".py", "candidate": "", "impl": "numpy"}),
        ("no_such_tool", {}),
    ],
)
def test_wrong_calls_are_refused_in_a_sentence(
    root: Path, tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            try:
                result = await client.call_tool(name, arguments)
            except MCPError:
                return  # the protocol's own refusal is as good
            assert refusal(result)

    asyncio.run(go())


def test_a_run_of_another_root_is_refused_at_every_call(root: Path, tmp_path: Path) -> None:
    """Servers of one user keep their runs in one folder: an id must not open another root."""
    runs, elsewhere = tmp_path / "runs", tmp_path / "elsewhere"
    elsewhere.mkdir()
    edit = {"path": "train.py", "old": "import torch", "new": "import torch  "}
    calls = [
        ("run", {}), ("findings", {}), ("explain", {"problem": "p"}), ("propose", {}), ("guide", {}),
        ("verify", {}), ("apply", {"dry_run": False}), ("trace_show", {}), ("trace_replay", {}),
        ("trace_diff", {"other_run_id": "x"}),
        ("submit_solution", {"problem": "p", "edits": [edit], "reason": "r"}),
    ]  # fmt: skip

    async def go() -> None:
        async with Client(build_server(root, runs)) as client:
            plan = {"path": "project", "depth": "quick"}
            run = answer(await client.call_tool("plan", plan))["run_id"]
        for other in (elsewhere, root):
            if other is root:  # a link takes the place of the project after it was planned
                (root / "project").rename(elsewhere / "project")
                (root / "project").symlink_to(elsewhere / "project")
            async with Client(build_server(other, runs)) as client:
                for name, more in calls:
                    result = await client.call_tool(name, {"run_id": run, **more})
                    assert "the id that plan returned" in refusal(result), name
                with pytest.raises(Exception, match=r"."):
                    await client.read_resource(f"torchstone://run/{run}/plan.md")

    asyncio.run(go())


def test_a_change_of_the_agent_is_never_written_by_the_server(root: Path, tmp_path: Path) -> None:
    """It is proven, and a person is handed the command; a huge or hostile one is refused."""
    train = root / "project" / "train.py"
    broken = train.read_text().replace("torch.randn(4, 8)", "torch.randn(4, 9)")
    train.write_text(broken)
    good = {"path": "train.py", "old": "torch.randn(4, 9)", "new": "torch.randn(4, 8)"}

    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            plan = answer(await client.call_tool("plan", {"path": "project"}))
            run = plan["run_id"]
            wanted = [job["id"] for job in plan["runs"] if job["tool"] == "dryrun"]
            await client.call_tool("run", {"run_id": run, "runs_wanted": wanted})
            rows = answer(await client.call_tool("findings", {"run_id": run}))["problems"]
            crash = next(row for row in rows if row["effect"] == "crash")
            given = {"run_id": run, "problem": crash["id"], "reason": "eight features"}
            for new, why in (
                ("torch.hub.load('a', 'b')", "torch.hub"),
                ("x" * 30_000, "characters"),
            ):
                done = answer(await client.call_tool("submit_solution", {**given, "edits": [{**good, "new": new}]}))  # fmt: skip
                assert (done["applies"], why in done["refused"]) == (False, True), done
            done = answer(await client.call_tool("submit_solution", {**given, "edits": [good]}))
            assert done["applies"], done
            ways = answer(await client.call_tool("propose", {"run_id": run}))["solutions"]
            mine = next(
                row for row in ways if row["problem"] == crash["id"] and row["kind"] == "model"
            )
            await client.call_tool("propose", {"run_id": run, "choose": {crash["id"]: mine["id"]}})
            verified = answer(await client.call_tool("verify", {"run_id": run}))
            verdict = next(row for row in verified["verdicts"] if row["problem"] == crash["id"])
            assert verdict["patch"] == "proven", verified
            applied = answer(await client.call_tool("apply", {"run_id": run, "dry_run": False}))
            assert not applied["applied"]
            assert applied["waiting"] == [mine["id"]]
            assert "+" in applied["waiting_diff"]["text"]
            assert "torch.randn(4, 8)" in applied["waiting_diff"]["text"]
            assert f"--apply --accept {crash['id']}" in applied["for_a_person"]
            assert train.read_text() == broken
            words = applied["for_a_person"].split()[1:]
            assert torchstone(words) in (0, 1)
            assert "torch.randn(4, 8)" in train.read_text()

    asyncio.run(go())


def test_phases_out_of_order_say_what_is_missing(root: Path, tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            run = answer(await client.call_tool("plan", {"path": "project", "depth": "quick"}))[
                "run_id"
            ]
            for name in ("findings", "propose", "verify", "guide", "apply"):
                assert "yet" in refusal(await client.call_tool(name, {"run_id": run}))

    asyncio.run(go())


def test_resources_and_prompts(root: Path, tmp_path: Path) -> None:
    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            rule = (await client.read_resource("torchstone://rule/TS401")).contents[0].text
            assert "collective" in rule
            shown = (await client.read_resource("torchstone://rule/EX108")).contents[0].text
            assert "What to do" in shown
            topic = (
                (await client.read_resource("torchstone://rule/numerical_issues")).contents[0].text
            )
            assert topic
            point = (await client.read_resource("torchstone://scenario/amp")).contents[0].text
            assert "1." in point
            names = {item.name for item in (await client.list_prompts()).prompts}
            assert names == {"review", "scenario", "kernel"}
            with pytest.raises(Exception, match=r"."):
                await client.read_resource("torchstone://run/../../etc/passwd")

    asyncio.run(go())


def test_over_stdio(root: Path) -> None:
    async def go() -> None:
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "torchstone", "mcp", "--root", str(root)]
        )
        async with Client(server) as client:
            plan = answer(await client.call_tool("plan", {"path": "project", "depth": "quick"}))
            assert re.fullmatch(r"[0-9a-f-]+", plan["run_id"])

    asyncio.run(go())


def test_over_http_on_loopback(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "torchstone",
        "mcp",
        "--root",
        str(root),
        "--http",
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)

            async def go() -> None:
                async with Client(f"http://127.0.0.1:{port}/mcp") as client:
                    plan = answer(
                        await client.call_tool("plan", {"path": "project", "depth": "quick"})
                    )
                    assert plan["files"] == 3

            asyncio.run(go())
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/mcp", data=json.dumps({}).encode(),
                headers={"Host": "evil.example", "Content-Type": "application/json"},
            )  # fmt: skip
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request, timeout=20)
            assert refused.value.code in (400, 403, 421)
        finally:
            process.kill()


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server did not come up")


def test_a_check_and_a_change_without_a_review(root: Path, tmp_path: Path) -> None:
    (root / "project" / "metrics.py").write_text(METRICS)
    right = {"path": "metrics.py", "old": "/ x.numel()", "new": "/ mask.sum()"}
    idle = {"path": "metrics.py", "old": "    return x\n", "new": "    return -x\n"}

    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            page = answer(await client.call_tool("read_file", {"path": "project/metrics.py"}))
            assert page["text"] == {"untrusted": True, "text": METRICS}
            given = {"path": "project", "file": "metrics.py", "check": CHECK}
            assert answer(await client.call_tool("run_check", given))["state"] == "broken"
            done = answer(await client.call_tool("try_patch", {**given, "edits": [right]}))
            assert (done["proven"], done["before"], done["after"]) == (True, "broken", "holds")
            done = answer(await client.call_tool("try_patch", {**given, "edits": [right, idle]}))
            assert not done["proven"]
            assert "metrics.py:16" in done["refused"]
            assert refusal(
                await client.call_tool("run_check", {**given, "check": "import inspect"})
            )
            assert refusal(await client.call_tool("read_file", {"path": "../x"}))
            run = {"path": "project", "script": "train.py"}
            seen = answer(await client.call_tool("observe_run", run))["text"]["text"]
            assert "train.py:11" in seen
            assert "float32[4, 8]" in seen
            done = answer(await client.call_tool("run_experiments", run))
            assert "EX101" in done["held"]
            around = {"path": "project", "file": "train.py", "line": 11}
            graph = answer(await client.call_tool("call_graph", around))
            assert (graph["function"], graph["every_step"]) == ("train", False), graph
            assert "train.py:27" in graph["callers"]
            assert "model.py:14 Net.forward" in graph["calls"]
            other = [{"path": "train.py", "old": "lr=0.1", "new": "lr=0.2"}]
            same = answer(await client.call_tool("compare_variants", run))
            parts = answer(
                await client.call_tool("compare_variants", {**run, "other_edits": other})
            )
            assert (same["parts_at"], parts["parts_at"]) == (None, 1)
            assert refusal(await client.call_tool("observe_run", {**run, "script": "../x.py"}))

    asyncio.run(go())


def test_what_a_kernel_says_when_it_raises_stays_in_its_cell(root: Path, tmp_path: Path) -> None:
    source = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        "        raise ValueError('text of a file')\n"
    )

    async def go() -> None:
        async with Client(build_server(root, tmp_path / "runs")) as client:
            given = {"problem": "relu", "candidate": source, "impl": "torch"}
            found = answer(await client.call_tool("verify_kernel", given))
            assert not found["accepted"]
            assert "ValueError" in found["text"]
            assert "text of a file" not in found["text"]

    asyncio.run(go())
