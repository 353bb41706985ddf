"""What an import of the project's own names must find, and what is taken to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions

_NET = "import torch\nclass Net(torch.nn.Module):\n    pass\n"
_PACKAGE = {"kit/__init__.py": "", "kit/net.py": _NET, "kit/ops.py": "def fold(model):\n    pass\n"}
_USE = "import torch\nfrom kit.net import Net\n{}\nmodel = Net()\n"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from kit.ops import fold", ""),
        ("from kit.opts import fold", "no module `kit.opts` (`ops`?)"),
        ("from kit.ops import unfold", "`kit.ops` of this project has no `unfold`"),
        ("from kit.net.deep import Net", "no module `kit.net.deep`"),
        ("from kit.net import Net as Base, Nett", "`kit.net` of this project has no `Nett`"),
        ("from elsewhere.ops import fold", ""),
        ("try:\n    from kit.fast import fold\nexcept ImportError:\n    fold = None", ""),
    ],
)
def test_imports_of_a_package(tmp_path: Path, line: str, found: str) -> None:
    said = _check(tmp_path, {**_PACKAGE, "train.py": _USE.format(line)})
    assert (found in said) if found else not said


@pytest.mark.parametrize(
    "more",
    [
        {"kit/opts.pyx": ""},
        {"kit/opts/data.txt": ""},
        {"setup.py": "ext = ['kit.opts']\n"},
        {"kit/__init__.py": "import importlib\n"},
        {"lib/kit/opts.py": "fold = 1\n"},
    ],
)
def test_what_may_be_there_is_not_missed(tmp_path: Path, more: dict[str, str]) -> None:
    files = {**_PACKAGE, "train.py": _USE.format("from kit.opts import fold"), **more}
    assert not _check(tmp_path, files)


@pytest.mark.parametrize("how", ["def __getattr__(name): ...", "globals()['unfold'] = 1",
                                 "from other import *", "import kit.ops as unfold"])  # fmt: skip
def test_names_that_a_module_may_bind_are_not_missed(tmp_path: Path, how: str) -> None:
    files = {**_PACKAGE, "train.py": _USE.format("from kit.ops import unfold")}
    assert not _check(tmp_path, {**files, "kit/ops.py": how + "\n"})


def test_relative_imports_of_a_file_that_was_renamed(tmp_path: Path) -> None:
    files = {**_PACKAGE, "kit/train.py": "import torch\nfrom .network import Net\nmodel = Net()\n"}
    assert "this project has no module `.network`" in _check(tmp_path, files)


def _check(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    report = check(CheckOptions(paths=(str(folder),), select=("TS257",), no_cache=True))
    assert not report.gaps
    return "; ".join(item.message("en") for item in report.findings)
