"""Six questions of a newcomer, each answered by a first screen: of the page, and of the terminal."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser
from torch import nn

from torchstone import Watch
from torchstone.cli.main import run

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
VISIBLE = """() => {
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  for (let node; (node = walk.nextNode());) {
    const range = document.createRange(); range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width && box.bottom <= innerHeight && !node.parentElement.closest('script, style')) found.push(node.textContent);
  }
  return found.join(' ').replace(/\\s+/g, ' ');
}"""
Screens = Callable[..., tuple[str, str]]


@pytest.fixture
def screens(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Screens:
    """What a command shows on the first screen of its page, and in its first twenty lines."""

    def ask(*words: str) -> tuple[str, str]:
        monkeypatch.chdir(ROOT)
        assert run([*words]) <= 1
        lines = capsys.readouterr().out.splitlines()[:20]
        path = tmp_path / "page.html"
        run([*words, "--output", str(path)])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_timeout(300)
        seen: str = page.evaluate(VISIBLE)
        page.close()
        capsys.readouterr()
        return seen, " ".join(lines)

    return ask


def both(found: tuple[str, str], *words: str) -> None:
    for where, text in zip(("page", "terminal"), found, strict=True):
        for word in words:
            assert word in text, f"{word!r} is not on the first screen of the {where}:\n{text}"


def test_the_worst_finding_and_its_fix(screens: Screens) -> None:
    found = screens(
        "check", "examples/train_project/train.py", "--select", "TS107,TS301", "--no-cache"
    )
    both(found, "clip_grad_norm_", "unscale_", "train.py:29", "HIGH")


def test_the_cost_of_a_model_on_a_device_and_whether_it_fits(screens: Screens) -> None:
    found = screens("cost", "hf:gpt2", "--train", "--device", "h100")
    both(found, "124.4 M", "FLOP", "time on NVIDIA H100", "ms", "fits", "left")


def test_why_a_run_was_alerted(screens: Screens, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with Watch(model, optimizer, folder=tmp_path / "run", warmup_steps=10) as watch:
        for step in range(30):
            loss = model(torch.randn(16, 8)).square().mean() * (math.nan if step == 25 else 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    found = screens("watch", str(tmp_path / "run"))
    both(found, "Not healthy since step 26", "HIGH", "Next:")


def test_why_a_kernel_was_refused(screens: Screens, tmp_path: Path) -> None:
    kernel = tmp_path / "mine.py"
    kernel.write_text(
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n        return torch.clamp(x, min=0.25)\n"
    )
    found = screens("kernel", "verify", "relu", str(kernel), "--impl", "torch", "--seeds", "2")
    both(found, "Refused", "expected", "0.25", "roundings", "first wrong element")


def test_how_to_run_it_in_ci(screens: Screens, capsys: pytest.CaptureFixture[str]) -> None:
    page, _ = screens("check", "examples/train_project", "--no-cache")
    assert "--format github" in page
    run(["--help"])
    assert "--format github" in " ".join(capsys.readouterr().out.splitlines()[:24])


def test_at_most_fifteen_lines_answer_and_one_line_when_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    run(["cost", "hf:gpt2", "--train", "--device", "h100,a100"])
    assert len(capsys.readouterr().out.splitlines()) <= 15
    run(["cost", "hf:gpt2", "--device", "h100", "-q"])
    assert len(capsys.readouterr().out.splitlines()) == 1
