"""`python -m torchstone` and the `torchstone` command."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; `--version` answers before anything else is loaded."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from torchstone._version import __version__

        print(f"torchstone {__version__}")
        return 0
    from torchstone.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
