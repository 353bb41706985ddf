"""Learning rates that go wrong when a run is resumed or its groups are rewritten."""

from __future__ import annotations

from typing import Any

from torch.optim import lr_scheduler

from faults.scene import Scene, fault


def _step_decay(scene: Scene) -> None:
    """A rate of 0.2, and a tenth of it from step 150 on, as a classic recipe has it."""
    scene.optimizer.param_groups[0]["lr"] = 0.2
    scene.scheduler = lr_scheduler.MultiStepLR(scene.optimizer, [150], 0.1)


@fault(
    "decayed-rate-starts-over-on-resume",
    origin="github.com/ultralytics/yolov5/issues/292 and huggingface/transformers/issues/23099: "
    "the scheduler is built anew on resume, its counter is not in the checkpoint, and the decayed "
    "rate is back at its first value",
    models=("images",),
    setup=_step_decay,
)
def start_over(scene: Scene) -> None:
    for group in scene.optimizer.param_groups:
        group["lr"] = group["initial_lr"]
    scene.scheduler = lr_scheduler.MultiStepLR(scene.optimizer, [150], 0.1)


@fault(
    "linear-schedule-already-spent",
    origin="github.com/facebookresearch/DPR/issues/99: a finished run is resumed for more epochs, "
    "the linear schedule still ends where the old run ended, and the rate is 0 from then on",
)
def spent(scene: Scene) -> None:
    done, planned = scene.step, scene.step
    scene.scheduler = lr_scheduler.LambdaLR(
        scene.optimizer, lambda count: max(0.0, 1 - (done + count) / planned)
    )


def _rate_of_each_group(scene: Scene) -> None:
    """The head learns ten times as fast as the body; a function sets both after every step."""
    whole = dict(scene.optimizer.defaults)
    parameters = list(scene.model.parameters())
    body = {"params": parameters[:-2], "factor": 1.0}
    head = {"params": parameters[-2:], "factor": 10.0}
    rate = whole.pop("lr") / (1 if scene.kind == "language" else 2)
    kind: Any = type(scene.optimizer)
    scene.optimizer = kind([body, head], lr=rate, **_known(whole))
    scene.scheduler = None

    def adjust(scene: Scene) -> None:
        now = rate * min(1.0, (scene.step + 1) / 50)
        for group in scene.optimizer.param_groups:
            group["lr"] = now * group["factor"]

    adjust(scene)
    scene.after_step = adjust


def _known(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that are worth carrying over to a rebuilt optimizer."""
    return {name: settings[name] for name in ("weight_decay", "momentum") if name in settings}


@fault(
    "one-rate-written-to-every-group",
    origin="github.com/JUGGHM/PENet_ICRA2021/issues/29 and huggingface/lerobot/pull/280: the hand-"
    "written adjust_learning_rate gives every group the rate of the head, ten times that of the "
    "backbone",
    models=("language", "images"),
    setup=_rate_of_each_group,
)
def one_rate(scene: Scene) -> None:
    rate = scene.optimizer.param_groups[-1]["lr"]

    def adjust(scene: Scene) -> None:
        for group in scene.optimizer.param_groups:
            group["lr"] = rate

    scene.after_step = adjust
