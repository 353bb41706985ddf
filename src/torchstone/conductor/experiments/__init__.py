"""Whatever is shown by a run: two runs that differ in one known way, and a relation that must hold."""

BUILT = "built:"
"""How the measure of a model begins that was trained on made inputs."""
