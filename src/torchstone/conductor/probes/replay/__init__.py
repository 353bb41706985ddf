"""Modules of the run, copied and called again with changed inputs."""
