"""`python -m torchstone.cost.ocr`: the static report, timed runs and MFU in one folder."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torchstone.core.errors import TorchstoneError
from torchstone.core.text import Text
from torchstone.cost.ocr.measured.runner import run
from torchstone.cost.ocr.measured.settings import settings_from_flags
from torchstone.render.style import printable

_DONE = Text("written to {folder}\n", "已写入 {folder}\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 when everything was written, 2 for a mistake in what was given."""
    given = list(sys.argv[1:] if argv is None else argv)
    lang = _asked(given)
    try:
        settings = settings_from_flags(given)
        lang = settings.lang
        folder = run(settings)
    except TorchstoneError as error:
        sys.stderr.write(printable(error.say(lang)) + "\n")
        return 2
    sys.stdout.write(_DONE.get(lang).replace("{folder}", str(folder)))
    return 0


def _asked(given: Sequence[str]) -> str:
    """The language of an error in the flags themselves."""
    after = [*given[1:], ""]
    chinese = any(
        flag in ("--lang=zh", "lang=zh") or (flag == "--lang" and value == "zh")
        for flag, value in zip(given, after, strict=True)
    )
    return "zh" if chinese else "en"


if __name__ == "__main__":
    sys.exit(main())
