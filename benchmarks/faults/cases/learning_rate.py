"""Faults of the learning rate and its schedule."""

from faults.scene import Scene, fault


@fault("rate-times-30", origin="mechanism: a unit slip in a schedule (per epoch against per step)")
def rate_times_30(scene: Scene) -> None:
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] *= 30


@fault("rate-zero-one-group", origin="mechanism: a schedule that ends early for one group",
       models=("language", "series"))  # fmt: skip
def rate_lost(scene: Scene) -> None:
    """The step is undone by a learning rate that underflows in the weights' last digit."""
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] = 1e-12
        group["weight_decay"] = 0.0


@fault("weight-decay-times-1000", origin="mechanism: decay given in percent")
def decay(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["weight_decay"] = 20.0 if "betas" in group else 1.0


@fault("gradient-sign", origin="mechanism: maximize=True left on, a sign slip in a custom loss")
def sign(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["maximize"] = True
