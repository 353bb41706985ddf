"""Set-up of coding agents: what is written is what the agents read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.integrations.agents import CLIENTS
from torchstone.skills import all_skills


@pytest.mark.parametrize("name", CLIENTS)
def test_server_and_skills_are_written_into_the_project(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    path = tmp_path / (client.file or "none.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({client.servers: {"other": {"command": "x"}}, "kept": 1}))
    assert run(["mcp", "--setup", name, "--write", "--root", str(tmp_path)]) == 0
    values = json.loads(path.read_text())
    if client.file:
        assert values["kept"] == 1
        assert list(values[client.servers]) == ["other", "torchstone"]
        assert values[client.servers]["torchstone"]["args"] == ["mcp", "--root", "."]
    for skill in all_skills().values():
        folder = tmp_path / client.skills / skill.name.replace("_", "-")
        page = (folder / "SKILL.md").read_text("utf-8")
        assert f"name: {folder.name}\n" in page, "the format wants the folder's name"
        assert not list(folder.rglob("*.pyc"))


@pytest.mark.parametrize(("lang", "says"), [("en", "Run once:"), ("zh", "运行一次：")])
def test_what_to_paste(lang: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--setup", "claude", "--lang", lang]) == 0
    said = capsys.readouterr().out
    assert says in said
    assert "claude mcp add torchstone -- torchstone mcp --root ." in said


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--setup", "clade"]) == 2
    assert "did you mean 'claude'" in capsys.readouterr().err
    assert run(["mcp", "--write"]) == 2
    (tmp_path / ".mcp.json").write_text("[1")
    assert run(["mcp", "--setup", "claude", "--write", "--root", str(tmp_path)]) == 2
    assert (tmp_path / ".mcp.json").read_text() == "[1"
