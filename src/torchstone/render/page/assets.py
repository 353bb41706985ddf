"""The style sheet and the script of a page, put together from the files of this folder."""

from __future__ import annotations

import functools
from pathlib import Path

_FOLDER = Path(__file__).parent


@functools.cache
def style_sheet() -> str:
    """All style sheets in the order of their names."""
    return "".join(path.read_text("utf-8") for path in sorted(_FOLDER.glob("css/*.css")))


@functools.cache
def script() -> str:
    """All scripts in the order of their names, which is the order in which they need each other."""
    return "".join(path.read_text("utf-8") for path in sorted(_FOLDER.glob("js/*.js")))
