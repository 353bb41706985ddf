"""The evidence of an alert: the steps before it, the layers that moved, and how to replay the step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from torchstone.core.files import write_atomically
from torchstone.watch.alerts import Alert
from torchstone.watch.measure.call import TrainingCall
from torchstone.watch.measure.learner import JudgedOptimizer

_LAYERS_SHOWN = 10

_SCRIPT = '''"""Replays step {step} of a watched run, where {signal} raised an alert.

The random state of the step is restored from evidence.json. Two things only you have: the weights
(the last checkpoint before step {step}) and the batch{batch}.

重放被监控训练的第 {step} 步（{signal} 告警）。该步的随机状态由 evidence.json 恢复；权重（第 {step} 步之前的检查点）和
批次只有你有。
"""

import json
from pathlib import Path

import torch

{origin}

evidence = json.loads((Path(__file__).parent / "evidence.json").read_text())


def restore_random_state():
    state = evidence["random_state"]
    if state:
        torch.set_rng_state(torch.tensor(list(bytes.fromhex(state["torch"])), dtype=torch.uint8))


def replay(build):
    """`build()` gives the arguments of the training step: the model with its weights, the batch.

    `build()` 返回训练步的参数：带权重的模型和批次。
    """
    arguments = build()
    restore_random_state()
    return {call}


if __name__ == "__main__":
    raise SystemExit("import replay from this file and call replay(build); see its docstring")
'''


def write_bundle(
    folder: Path, alert: Alert, call: TrainingCall, function: Callable[..., Any] | None,
    optimizers: Iterable[JudgedOptimizer], recent: list[dict[str, float]],
) -> str:  # fmt: skip
    """Write the evidence beside the run; gives its folder's name."""
    name = f"alerts/step-{alert.step:06d}-{re.sub(r'[^A-Za-z0-9_-]', '_', alert.signal)[:40]}"
    place = folder / name
    evidence = {
        "step": alert.step,
        "signal": alert.signal,
        "layer": alert.layer,
        "what": alert.body("en"),
        "what_zh": alert.body("zh"),
        "severity": str(alert.severity),
        "next": alert.next.en,
        "next_zh": alert.next.zh,
        "also": [],
        "last_steps": recent,
        "first_layers_to_move": _moved(optimizers),
        "batch": {"size": call.batch.size, "digest": call.batch.digest,
                  "indices": list(call.batch.indices)},
        "random_state": _random_state(call),
    }  # fmt: skip
    write_atomically(place / "evidence.json", json.dumps(_plain(evidence), ensure_ascii=False))
    write_atomically(place / "replay_step.py", _script(alert, call, function))
    return name


def add_to_bundle(folder: Path, name: str, alert: Alert) -> None:
    """List a later alert of the same episode under `also`."""
    place = folder / name / "evidence.json"
    if not name or not place.exists():
        return
    evidence = json.loads(place.read_text("utf-8"))
    evidence["also"].append({
        "step": alert.step, "signal": alert.signal, "layer": alert.layer,
        "severity": str(alert.severity), "what": alert.body("en"), "what_zh": alert.body("zh"),
    })  # fmt: skip
    write_atomically(place, json.dumps(evidence, ensure_ascii=False))


def _random_state(call: TrainingCall) -> dict[str, str]:
    if call.random_state is None:
        return {}
    return {"torch": bytes(call.random_state.numpy()).hex()}


def _script(alert: Alert, call: TrainingCall, function: Callable[..., Any] | None) -> str:
    module = getattr(function, "__module__", "") or ""
    named = getattr(function, "__qualname__", "") or ""
    usable = module not in ("", "__main__") and named.isidentifier()
    origin = f"from {module} import {named}" if usable else _unknown_origin(function)
    again = f"{named}.__wrapped__(*arguments)" if usable else "train_step(*arguments)"
    indices = list(call.batch.indices)
    batch = f" (indices {indices[:32]})" if indices else ""
    return _SCRIPT.format(
        step=alert.step, signal=alert.signal, origin=origin, call=again, batch=batch
    )


def _unknown_origin(function: Callable[..., Any] | None) -> str:
    """A program that ran as a script would train again if it were imported unasked."""
    code = getattr(function, "__code__", None)
    seen = "" if code is None else f"; it ran from {Path(code.co_filename).name!r}"
    return f"# import your training step as train_step here, without the decorator{seen}"


def _moved(optimizers: Iterable[JudgedOptimizer]) -> list[dict[str, Any]]:
    """Layers by how far their signals are from usual, the furthest first."""
    found: list[dict[str, Any]] = []
    for judged in optimizers:
        for learner in judged.learners.values():
            baselines = learner.baselines
            if baselines.seen < baselines.warmup:
                continue
            away = baselines.away
            for signal, start, end in learner.spans:
                if signal.of == "layer":
                    worst = int(np.abs(away[start:end]).argmax())
                    found.append({
                        "layer": learner.layers[worst], "signal": signal.name,
                        "sigmas": float(away[start + worst]),
                    })  # fmt: skip
    return sorted(found, key=lambda item: -abs(item["sigmas"]))[:_LAYERS_SHOWN]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value
