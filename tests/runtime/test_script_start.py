"""A script is started as a file, or as a module where its own imports need a package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchstone.runtime.script_start import package_root

START = "import sys; from torchstone.runtime.script_start import start_script; start_script(sys.argv[1])"


def tree(tmp_path: Path, **files: str) -> Path:
    for name, text in files.items():
        path = tmp_path / name.replace("__slash__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    "source",
    [
        "from .parts import VALUE\n",
        "from pack.parts import VALUE\n",
        "from parts import VALUE\n",
        "from pack.inner import deep\nVALUE = deep.VALUE\n",
    ],
    ids=["relative", "own package", "beside", "sub-package"],
)
def test_the_script_runs(tmp_path: Path, source: str) -> None:
    root = tree(tmp_path, pack__slash____init__="", pack__slash__inner__slash__x="")
    (root / "pack" / "__init__.py").write_text("")
    (root / "pack" / "parts.py").write_text("VALUE = 7\n")
    (root / "pack" / "inner" / "__init__.py").write_text("")
    (root / "pack" / "inner" / "deep.py").write_text("from ..parts import VALUE\n")
    script = root / "pack" / "train.py"
    script.write_text(source + "if __name__ == '__main__':\n    print('value', VALUE)\n")
    done = subprocess.run([sys.executable, "-c", START, "pack/train.py"], cwd=root, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.stdout == "value 7\n", done.stderr


def test_a_folder_called_like_an_installed_package_is_no_package(tmp_path: Path) -> None:
    script = tmp_path / "torch" / "train.py"
    script.parent.mkdir()
    script.write_text("import torch\n")
    assert package_root(script) is None


def test_a_file_that_does_not_parse_runs_as_it_lies_there(tmp_path: Path) -> None:
    script = tmp_path / "pack" / "train.py"
    script.parent.mkdir()
    script.write_text("from . import (\n")
    assert package_root(script) is None
