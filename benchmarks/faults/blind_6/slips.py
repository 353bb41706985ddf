"""Slips of the training code between the batch and the step."""

from __future__ import annotations

from faults.scene import Scene, fault


@fault(
    "token-scored-against-itself",
    origin="KempnerInstitute/KempnerForge#154 and huggingface/transformers#27517: the labels are "
    "not shifted, each position is scored against the token it was given, and the loss collapses",
    models=("language",),
)
def token_against_itself(scene: Scene) -> None:
    scene.transform = lambda x, y: (x, x)


def _four_micro_batches(scene: Scene) -> None:
    scene.accumulate = 4
    scene.clip = None


@fault(
    "accumulated-and-never-divided",
    origin="huggingface/transformers#35438 and karpathy/nanoGPT#206: the micro-batches are summed "
    "and not averaged, so the gradient grows with their number",
    models=("images",),
    setup=_four_micro_batches,
)
def never_divided(scene: Scene) -> None:
    def undo_the_division(scene: Scene) -> None:
        if (scene.step + 1) % scene.accumulate == 0:
            for parameter in scene.model.parameters():
                if parameter.grad is not None:
                    parameter.grad *= scene.accumulate

    scene.after_backward = undo_the_division
