"""Optimizers that step from the wrong state, or once too often."""

from __future__ import annotations

from faults.scene import Scene, fault


@fault(
    "quantised-moments-lose-their-scales",
    origin="databricks/flashoptim#3: quantised moments come back corrupted from a checkpoint, and "
    "no error is raised; here the codes are read as values because their scales were lost",
    models=("language", "series"),
)
def moments_lose_their_scales(scene: Scene) -> None:
    for state in scene.optimizer.state.values():
        for name in ("exp_avg", "exp_avg_sq"):
            largest = state[name].abs().max()
            if largest > 0:
                state[name].div_(largest)


@fault(
    "stepped-by-the-wrapper-and-by-the-loop",
    origin="NVIDIA/physicsnemo#1911: the wrapper steps the optimizer and the loop steps it again "
    "on the same gradients, two updates for each batch",
    models=("images", "series"),
)
def stepped_by_wrapper_and_loop(scene: Scene) -> None:
    def again(scene: Scene) -> None:
        scene.optimizer.step()

    scene.before_step = again
