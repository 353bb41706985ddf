"""Does a model hold for all sizes of an axis? Torch's shape environment proves it, or sizes are tried.

One run with symbolic sizes collects the guards: conditions under which its shapes hold. No guard
means proof for every size. A guard may be a mere branch, so the sizes that it excludes are run: only
what then fails is a constraint, and the line that failed is its place.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import sympy  # type: ignore[import-untyped]
import torch
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.dryrun.model_run import build, call
from torchstone.dryrun.record import Constraint
from torchstone.dryrun.script.endings import last_place
from torchstone.dryrun.settings import ScriptSettings
from torchstone.observe.compat.fakes import ConstantSource, FakeTensorMode
from torchstone.observe.compat.trees import tree_leaves, tree_map_only

TRIED = tuple(range(2, 18))
"""Sizes run for each axis: enough to tell multiples of 2 to 8 and limits apart."""


def find_constraints(settings: ScriptSettings) -> tuple[bool, tuple[Constraint, ...]]:
    """Is it proven for all sizes, and if not, what must hold of the named axes."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    model, inputs = build(settings, mode, torch.device("cpu"))
    axes = tuple(name.strip() for name in settings.symbolic.split(",") if name.strip())
    with mode, torch.no_grad():
        call(model, inputs)  # at the sizes given it must work: else that is the finding
    most = max((t.dim() for t in tree_leaves(inputs) if isinstance(t, torch.Tensor)), default=0)
    if len(axes) > most:
        raise InputError(
            "--symbolic", settings.symbolic,
            Text(f"names of at most {most} axes, as the inputs have", f"最多 {most} 个轴名，与输入的轴数一致"),
            Text("leave the others out", "请去掉多余的轴名"),
        )  # fmt: skip
    found = []
    for index, name in enumerate(axes):
        run = partial(_run, model, mode, inputs, index)
        found += _along(name, run, _size_of(inputs, index))
    proven = not found and not _guards(settings, axes)
    return proven, tuple(found)


def _size_of(inputs: Any, axis: int) -> int:
    sizes = [
        int(t.shape[axis])
        for t in tree_leaves(inputs)
        if isinstance(t, torch.Tensor) and t.dim() > axis
    ]
    return sizes[0] if sizes else 0


def _run(model: Any, mode: FakeTensorMode, inputs: Any, axis: int, size: int) -> Exception | None:
    def resized(tensor: torch.Tensor) -> torch.Tensor:
        shape = list(tensor.shape)
        if axis < len(shape):
            shape[axis] = size
        return torch.empty(shape, dtype=tensor.dtype)

    with mode, torch.no_grad():
        other = tree_map_only(torch.Tensor, resized, inputs)
        try:
            call(model, other)
        except Exception as error:
            return error
    return None


def _along(name: str, run: Callable[[int], Exception | None], given: int) -> list[Constraint]:
    """The constraint on one axis, from the sizes that fail."""
    failed = {size: error for size in sorted({*TRIED, given}) if (error := run(size)) is not None}
    if not failed:
        return []
    worked = [size for size in sorted({*TRIED, given}) if size not in failed]
    first = failed[min(failed)]
    place, inside = last_place(first)
    en, zh = in_words(name, worked, sorted(failed))
    said = str(first).splitlines()[0][:160]
    return [Constraint(f"{name} = {min(failed)}: {said}", en, zh, place if place.line else inside)]


def in_words(name: str, worked: list[int], failed: list[int]) -> tuple[str, str]:
    """Which sizes work, as a sentence."""
    if len(worked) == 1:
        return f"{name} must be {worked[0]}", f"{name} 必须等于 {worked[0]}"
    for factor in range(2, 18):
        if all(size % factor == 0 for size in worked) and all(size % factor for size in failed):
            if factor == 2:
                return f"{name} must be even", f"{name} 必须为偶数"
            return f"{name} must be a multiple of {factor}", f"{name} 必须是 {factor} 的倍数"
    if max(failed) < min(worked):
        return f"{name} must be at least {min(worked)}", f"{name} 不得小于 {min(worked)}"
    if min(failed) > max(worked):
        return f"{name} must be at most {max(worked)}", f"{name} 不得大于 {max(worked)}"
    shown = ", ".join(map(str, failed))
    return f"{name} must not be {shown}", f"{name} 不能为 {shown}"


def _guards(settings: ScriptSettings, axes: tuple[str, ...]) -> bool:
    """Does a symbolic run leave conditions that some size from 2 on does not meet?"""
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    model, sized = build(settings, FakeTensorMode(allow_non_fake_inputs=True), torch.device("cpu"))
    symbols: dict[str, Any] = {}
    inputs = tree_map_only(
        torch.Tensor, lambda tensor: _symbolic(mode, environment, tensor, axes, symbols), sized
    )
    for module in model.modules():
        for holder in (module._parameters, module._buffers):
            for name, value in holder.items():
                if value is not None:
                    holder[name] = _moved(value, mode)
    try:
        with mode, torch.no_grad():
            call(model, inputs)
    except Exception:  # an operator without a symbolic form: nothing is proven
        return True
    fixed = any(symbol in environment.replacements for symbol in symbols.values())
    return fixed or not all(_always_holds(guard.expr) for guard in environment.guards)


def _moved(tensor: torch.Tensor, mode: FakeTensorMode) -> Any:
    with mode:
        made = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype)
    return torch.nn.Parameter(made, False) if isinstance(tensor, torch.nn.Parameter) else made


def _symbolic(
    mode: FakeTensorMode, environment: ShapeEnv, tensor: torch.Tensor, axes: tuple[str, ...],
    symbols: dict[str, Any],
) -> torch.Tensor:  # fmt: skip
    """A tensor whose leading axes have names; one name is one size in all inputs."""
    shape: list[Any] = list(tensor.shape)
    for index, name in enumerate(axes[: len(shape)]):
        if name in symbols:
            hint = int(tensor.shape[index])
            shape[index] = environment.create_symintnode(symbols[name], hint=hint)
            continue
        context: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
        probe = mode.from_tensor(
            torch.empty(int(shape[index])), symbolic_context=context, source=ConstantSource(name)
        )
        shape[index] = probe.shape[0]
        symbols[name] = probe.shape[0].node.expr  # type: ignore[attr-defined]
    with mode:
        return torch.empty(shape, dtype=tensor.dtype)


def _always_holds(expression: Any) -> bool:
    """For sizes from 2 on: decided at sizes that are far apart, each axis with its own."""
    symbols = sorted(expression.free_symbols, key=str)
    for sizes in ((2, 3, 5), (3, 2, 7), (4, 64, 2), (7, 7, 7), (1000, 3, 9), (2, 1001, 4)):
        values = dict(zip(symbols, sizes, strict=False))
        if expression.subs(values) == sympy.false:
            return False
    return True
