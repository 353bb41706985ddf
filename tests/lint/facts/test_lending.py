"""A function lends its words to the files that import it, and to no others."""

from __future__ import annotations

from pathlib import Path

from torchstone.lint.engine import check
from torchstone.lint.facts.lending import Lending, loans_of
from torchstone.lint.options import CheckOptions

_STEP = b"def step(loss, opt):\n    loss.backward()\n    opt.step()\n"


def borrowed(text: bytes, lender: bytes = _STEP, path: str = "project/steps.py") -> set[bytes]:
    words = set(text.replace(b"(", b" ").replace(b".", b" ").replace(b",", b" ").split())
    return Lending(loans_of(path, lender)).to(words, text)


def test_an_import_by_name_or_of_the_whole_file_borrows() -> None:
    assert borrowed(b"from steps import step\n") == {b"backward"}
    assert borrowed(b"from project import steps\nsteps.step(1)\n") == {b"backward"}
    assert borrowed(b"import steps\nsteps.step(1)\n") == {b"backward"}


def test_a_word_that_is_not_imported_borrows_nothing() -> None:
    assert borrowed(b"steps = 3\nstep = 1\n") == set()
    assert borrowed(b"from elsewhere import step\nsteps = 1\n") == set()


def test_the_backward_of_an_autograd_function_is_not_lent() -> None:
    assert (
        loans_of("f.py", b"class F(Function):\n    def backward(ctx, g):\n        return g\n") == []
    )


def test_an_import_under_another_name_is_followed() -> None:
    text = b"from torch.nn.parallel import DistributedDataParallel as W\n\ndef wrap(m):\n    return W(m)\n"
    assert [loan.words for loan in loans_of("w.py", text)] == [
        frozenset((b"DistributedDataParallel",))
    ]


def test_the_cache_notices_that_a_function_lends_something_new(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    (home / "main.py").write_text(
        "from steps import step\n\ndef fit(model, loader, opt):\n    total = 0\n    for x in loader:\n"
        "        total += step(model(x), opt)\n    return total\n"
    )
    (home / "steps.py").write_text("def step(loss, opt):\n    return loss\n")
    options = CheckOptions(paths=(str(home),), select=("TS314",))
    assert not check(options, cache_folder=cache).findings
    assert not check(options, cache_folder=cache).findings
    (home / "steps.py").write_text(
        "def step(loss, opt):\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n    return loss\n"
    )
    first = check(options, cache_folder=cache).findings
    assert [item.rule for item in first] == ["TS314"]
    assert check(options, cache_folder=cache).findings == first
