"""What makes a step fit on one device: options that are counted, not guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from torchstone.core.errors import TorchstoneError
from torchstone.core.quantity import human
from torchstone.core.text import Text
from torchstone.cost.on_devices.fitting import fit
from torchstone.cost.options import CostOptions
from torchstone.cost.reporting.report import CostReport
from torchstone.runtime.devices import Device

Measure = Callable[[CostOptions], CostReport]
_MOST = 8
"""Counts that are made: one of an 8 B model takes about a second."""
_SHORTEST = 256
"""Tokens; shorter sequences are no answer to anybody's question."""


def what_helps(
    options: CostOptions, device: Device, length: int | None, measure: Measure
) -> Iterator[Text]:
    """The first change that fits, with what it needs; or the smallest that was tried."""
    smallest: tuple[int, str] | None = None
    for number, changed in enumerate(_changes(options, length)):
        if number == _MOST:
            break
        try:
            found = fit(measure(changed), device, batch=_first(changed.batch), suggest=False)
        except TorchstoneError:
            continue  # a model without checkpointing, inputs without a length
        flags, size = _flags(options, changed), human(found.total_bytes, "B")
        if found.fits:
            yield Text(
                f"it fits with {flags}: {size} at peak", f"加上 {flags} 即可放下：峰值 {size}"
            )
            return
        if smallest is None or found.total_bytes < smallest[0]:
            smallest = found.total_bytes, flags
    if smallest is not None:
        size = human(smallest[0], "B")
        yield Text(
            f"nothing that was tried fits; the least is {size} with {smallest[1]}: take a larger "
            "device, or more of them (--plan data=8,zero=3)",
            f"尝试过的选项都放不下；最少为 {size}（{smallest[1]}）：请换用更大的设备，或使用多个设备"
            "（--plan data=8,zero=3）",
        )


def _changes(options: CostOptions, length: int | None) -> Iterator[CostOptions]:
    """Singly and then together, those first that change the training least."""
    wide = options.dtype in ("", "fp32", "float32") and not (options.lora or options.quant)
    single: list[dict[str, object]] = []
    if options.train and not options.checkpoint:
        single.append({"checkpoint": True})
    if wide and not options.autocast:
        single.append({"dtype": "bf16"})
    if options.train and not options.lora:
        single.append({"lora": "r=16"})
    if not options.quant:
        single.append({"quant": "nf4"})
    packs = [one for one in single if "quant" not in one or options.lora or not options.train]
    for one in packs:
        yield replace(options, **one)  # type: ignore[arg-type]
    together: dict[str, object] = {}
    for one in single:
        together |= one
        if len(together) > 1 and ("quant" not in together or together.get("lora") or options.lora or not options.train):  # fmt: skip
            kept = {k: v for k, v in together.items() if not (k == "dtype" and "lora" in together)}
            yield replace(options, **kept)  # type: ignore[arg-type]
    everything = replace(options, **together)  # type: ignore[arg-type]
    shorter = (length or 0) // 2
    while shorter >= _SHORTEST:
        yield replace(everything, seq=str(shorter))
        shorter //= 2


def _flags(before: CostOptions, after: CostOptions) -> str:
    """The options that were added, as they are written."""
    names = ("dtype", "lora", "quant", "seq")
    said = [f"--{name} {getattr(after, name)}" for name in names if getattr(after, name) != getattr(before, name)]  # fmt: skip
    if after.checkpoint and not before.checkpoint:
        said.append("--checkpoint")
    return " ".join(said)


def _first(sizes: str) -> int:
    return int(sizes.split(",")[0]) if sizes.split(",")[0].isdecimal() else 1
