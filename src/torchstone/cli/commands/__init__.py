"""One command, one file: HELP, OPTIONS (a frozen dataclass or None), and `run`."""
