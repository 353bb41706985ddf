"""Python in notebooks and in texts: an example of a README is `README.md#LINE`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from torchstone.core.files import read_regular
from torchstone.runtime.script_start import package_root, start_script
from torchstone.sources.notebook import read_notebook
from torchstone.starting.console_scripts import function_to_call
from torchstone.starting.cuts.replacing import compile_with_cuts, has_cuts
from torchstone.starting.project import project_root

_BYTES = 16 << 20
_FENCE = re.compile(r"^\s*```\s*(\w*)")
_EXAMPLE = re.compile(r"(.+\.md)#(\d+)")
_PROMPT = re.compile(r"^(>>>|\.\.\.) ?")


def is_document(script: str) -> bool:
    """Whether a script is a notebook or a block of a text."""
    match = _EXAMPLE.fullmatch(script)
    return Path(match[1] if match else script).is_file() and (
        match is not None or script.endswith(".ipynb")
    )


def python_blocks(text: str) -> Iterator[int]:
    """The lines on which blocks of Python begin."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if match := _FENCE.match(line):
            if not inside and match[1].lower() in ("python", "py", "python3"):
                yield number
            inside = not inside


def python_of(name: str, text: str) -> str:
    """The code of a notebook, cell after cell; or of one block, on the lines that it stands on."""
    match = _EXAMPLE.fullmatch(name)
    if match is None:
        source, _ = read_notebook(text, name)
        return source.text if source is not None else ""
    lines = text.splitlines()
    first = int(match[2])
    kept = [""] * first
    for line in lines[first:]:
        if _FENCE.match(line):
            break
        kept.append(_PROMPT.sub("", line))
    return "\n".join(kept) + "\n"


def start_program(script: str) -> None:
    """Run a script, a notebook from its first cell to its last, or a block of a text. Where an installed command
    of the project calls a function of the script, that function is called."""
    match = _EXAMPLE.fullmatch(script)
    path = Path(match[1] if match else script).resolve()
    if not is_document(script) and (not has_cuts(script) or package_root(path) is not None):
        names = start_script(script)
        if function := function_to_call(project_root(path), path):
            names[function]()
        return
    code = read_regular(path, _BYTES).decode("utf-8", "replace")
    code = python_of(script, code) if is_document(script) else code
    sys.path.insert(0, str(path.parent))
    main = sys.modules["__main__"]
    main.__dict__.update(__name__="__main__", __file__=str(path), display=print)
    exec(compile_with_cuts(code, str(path)), main.__dict__)
