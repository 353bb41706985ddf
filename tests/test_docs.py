"""The generated pages are those that the code makes now."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent


def make_docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_docs", ROOT / "scripts" / "make_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_current() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in make_docs().pages().items()
        if not path.exists() or path.read_text("utf-8") != text
    ]
    assert stale == [], "run `make docs`"


def test_no_page_is_left_of_a_rule_that_is_gone() -> None:
    wanted = set(make_docs().pages())
    for home in (ROOT / "docs" / "rules", ROOT / "docs" / "zh" / "rules"):
        assert {path for path in home.glob("*.md") if path not in wanted} == set()


@pytest.mark.parametrize(
    "name", ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "docs/architecture.md"]
)
def test_links_lead_somewhere(name: str) -> None:
    page = ROOT / name
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readme_shows_what_is_really_said(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from torchstone.cli.main import run

    monkeypatch.chdir(ROOT)
    shown = re.search(
        r"```\n\$ torchstone (.+)\n([\s\S]+?)\n…\n```", (ROOT / name).read_text("utf-8")
    )
    assert shown is not None
    run([*shown[1].split(), "--format", "text", "--no-cache"])
    said = capsys.readouterr().out
    for part in shown[2].split("\n\n"):
        assert part in said, f"{name} shows\n{part}\nwhich is not in\n{said}"
