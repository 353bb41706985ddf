"""Whatever is shown by a run: two runs that differ in one known way, and a relation that must hold."""

BUILT = "built:"
"""How the measure of a model begins that was trained on made inputs."""
FIRST_LOSS = "first_loss"
"""The measure of the value of the first backward pass."""
BACKWARDS = "backwards_per_step"
"""The measure of how many backward passes one optimizer step has."""
