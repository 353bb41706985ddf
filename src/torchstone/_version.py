"""The version stands alone so that `--version` loads nothing else."""

__version__ = "0.1.0"
