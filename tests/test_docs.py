"""The generated pages are those that the code makes now."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
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


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Strict: a page that is missing, or a link that leads nowhere, is an error."""
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    around = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, env=around)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "index.html").read_text("utf-8")
    loaded = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:[^\"]+)", page)
    assert loaded == [], "the site opens offline"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "pictures").glob("*.png")), ids=lambda p: p.name
)
def test_pictures_are_small(path: Path) -> None:
    assert path.stat().st_size < 300_000
