"""Faults of number formats."""

import torch

from faults.scene import Scene, fault


@fault("weights-rounded-to-bf16", origin="mechanism: bf16 weights without fp32 masters absorb updates",
       models=("language", "series"))  # fmt: skip
def bf16_weights(scene: Scene) -> None:
    scene.scheduler = None
    for group in scene.optimizer.param_groups:
        group["lr"] *= 0.1

    def after(*_: object) -> None:
        with torch.no_grad():
            for p in scene.model.parameters():
                p.copy_(p.bfloat16())

    scene.optimizer.register_step_post_hook(after)


def _half(scene: Scene) -> None:
    scene.autocast = torch.float16
    scene.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=10**6)


@fault("loss-scale-collapse", origin="mechanism: every step overflows, the scaler backs off for ever",
       models=("language",), setup=_half)  # fmt: skip
def collapse(scene: Scene) -> None:
    usual = scene.loss
    scene.loss = lambda a, b: usual(a, b) * 1e38 * 10


@fault("gradients-flushed", origin="notes of fp16 training: gradients below 2**-25 become zero",
       models=("language", "images", "series"))  # fmt: skip
def flushed(scene: Scene) -> None:
    def cast(scene: Scene) -> None:
        for p in scene.model.parameters():
            if p.grad is not None:
                p.grad.copy_((p.grad * 1e-6).half().float() * 1e6)

    scene.after_backward = cast


@fault("overflow-to-infinity", origin="mechanism: exp of unshifted logits")
def infinity(scene: Scene) -> None:
    usual = scene.loss
    scene.loss = lambda a, b: usual((a * 60).exp().exp(), b)
