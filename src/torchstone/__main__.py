"""`python -m torchstone` and the `torchstone` command."""

from __future__ import annotations

import gc
import sys


def main() -> int:
    """Run the command line; `--version` answers before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from torchstone._version import __version__

        print(f"torchstone {__version__}")
        return 0
    if sys.argv[1:2] == ["check"]:
        return _without_collector()
    from torchstone.cli.main import run

    return run(sys.argv[1:])


def _without_collector() -> int:
    """A check is short and leaves hardly any circles: the collector would walk over the rules while
    they are loaded and over everything when the program ends, a tenth of a check of one file."""
    gc.disable()
    from torchstone.cli.main import run

    code = run(sys.argv[1:])
    gc.freeze()
    return code


if __name__ == "__main__":
    raise SystemExit(main())
