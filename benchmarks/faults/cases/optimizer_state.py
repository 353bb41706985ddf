"""Faults of the optimizer's state."""

import copy

from faults.scene import Scene, fault


@fault("second-moment-lost", origin="mechanism: a resume that restores exp_avg and not exp_avg_sq",
       models=("language", "series"))  # fmt: skip
def second_moment(scene: Scene) -> None:
    for state in scene.optimizer.state.values():
        state["exp_avg_sq"].zero_()


@fault("epsilon-huge", origin="mechanism: eps=1e-8 typed as 1.0", models=("language", "series"))
def epsilon(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["eps"] = 1.0


@fault("momentum-off", origin="mechanism: optimizer re-created at each epoch without its momentum",
       models=("images",))  # fmt: skip
def momentum(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["momentum"] = 0.0


@fault("optimizer-of-a-copy", origin="mechanism: model.to() or deepcopy after the optimizer was made",
       when="start")  # fmt: skip
def of_a_copy(scene: Scene) -> None:
    scene.model = copy.deepcopy(scene.model)


@fault("last-layer-not-in-optimizer", origin="mechanism: a head replaced for fine-tuning",
       when="start")  # fmt: skip
def head_left_out(scene: Scene) -> None:
    last = list(scene.model.parameters())[-2:]
    for group in scene.optimizer.param_groups:
        group["params"] = [p for p in group["params"] if all(p is not q for q in last)]
