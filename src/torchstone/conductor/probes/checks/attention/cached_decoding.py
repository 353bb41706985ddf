"""Decoding with a cache gives what one pass over all tokens gives."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from torchstone.conductor.probes.checks._text import ON_A_COPY
from torchstone.conductor.probes.harvest.listeners import copied
from torchstone.conductor.probes.harvest.operators import Operator, OperatorTrace
from torchstone.conductor.probes.harvest.recording import ModuleCall, Recording
from torchstone.conductor.probes.replay.copies import floats, unsettled, widened
from torchstone.conductor.probes.replay.divergence import difference
from torchstone.conductor.probes.rules import ProbeRule, Shown, expected, number
from torchstone.conductor.probes.templates import SourceFile, fix, offered
from torchstone.core.finding import Severity
from torchstone.core.fix import Fix
from torchstone.core.place import Place
from torchstone.core.text import Text
from torchstone.observe.where import Where

RULE = ProbeRule(
    "PR205", "cached-decoding-differs", Severity.HIGH, "wrong result",
    Text("decoding with the cache differs from a pass over all tokens", "使用缓存解码与一次性处理全部 token 的结果不同"),
    Text("positions, masks or what is cached do not continue where the cache ends: generated text gets worse "
         "with every token", "位置、掩码或缓存内容没有接续：生成文本会逐 token 变差"),
    Text("let positions and masks start at the length of the cache, and cache what the full pass uses",
         "让位置与掩码从缓存长度开始，并缓存与完整计算一致的内容"),
)  # fmt: skip
_TOLERANCE = 1e-3
"""Relative, float32: other orders of summation stay below 1e-5."""
_SIMPLE = (int, float, str, bool, type(None), torch.Tensor)


@dataclass(frozen=True, slots=True)
class _Session:
    """A prompt and the tokens after it, with the state as it was before the prompt."""

    module: nn.Module
    calls: tuple[ModuleCall, ...]
    chunks: tuple[torch.Tensor, ...]

    def full(self, calls: int = 0) -> _Arguments:
        """Arguments of one pass over all tokens: without a state, or with the one from before the
        prompt; everything else as the last call got it."""
        first, last = self.calls[0], self.calls[calls - 1]
        names = list(inspect.signature(self.module.forward).parameters.values())
        defaults = [item.default for item in names] + [inspect.Parameter.empty] * len(first.args)
        args = tuple(map(_older, first.args, last.args, defaults))
        known = {item.name: item.default for item in names}
        kwargs = {key: _older(value, last.kwargs.get(key), known.get(key))
                  for key, value in first.kwargs.items()}  # fmt: skip
        return widened(copied(args)), widened(copied(kwargs))

    def step(self, place: int, state: _Arguments) -> _Arguments:
        """Arguments of one call: the state as the calls before have left it."""
        call = self.calls[place]
        args = tuple(map(_newer, state[0], widened(copied(call.args))))
        kwargs = {
            key: _newer(value, widened(copied(call.kwargs.get(key))))
            for key, value in state[1].items()
        }
        return args, kwargs


_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def _is_simple(value: Any) -> bool:
    return isinstance(value, _SIMPLE)


def _older(first: Any, last: Any, default: Any) -> Any:
    """No cache at all where a call needs none: that is how the model was trained."""
    if _is_simple(first):
        return last
    return None if default is None else first


def _newer(state: Any, given: Any) -> Any:
    return given if _is_simple(state) else state


def check(run: Recording) -> Iterator[Shown]:
    told: set[type] = set()
    for session in _sessions(run):
        if type(session.module) in told:
            continue
        try:
            found = _compare(run, session)
        except Exception as error:  # a protocol that this does not know
            name = f"cached decoding of {type(session.module).__name__}"
            run.not_probed[name] = f"{type(error).__name__}: {str(error)[:160]}"
            continue
        run.asks(RULE)
        told.add(type(session.module))
        if found is not None:
            yield found


def _sessions(run: Recording) -> Iterator[_Session]:
    """Calls of a model in evaluation with a state, whose first is longer than the next ones."""
    calls = [call for call in run.calls if call.top and not call.training and _has_state(call)]
    for place, call in enumerate(calls):
        tokens = _tokens(call)
        if tokens is None or tokens.shape[1] < 2:
            continue
        chunks, used = [tokens], [call]
        for later in calls[place + 1 :]:
            step = _tokens(later)
            if (
                later.module is not call.module
                or step is None
                or step.shape != (tokens.shape[0], 1)
            ):
                break
            chunks.append(step)
            used.append(later)
        if len(chunks) > 2:
            yield _Session(call.module, tuple(used), tuple(chunks))


def _has_state(call: ModuleCall) -> bool:
    return any(not isinstance(item, _SIMPLE) for item in (*call.args, *call.kwargs.values()))


def _tokens(call: ModuleCall) -> torch.Tensor | None:
    first = call.args[0] if call.args else None
    is_ids = isinstance(first, torch.Tensor) and not first.is_floating_point() and first.dim() == 2
    return first if is_ids else None


def _compare(run: Recording, session: _Session) -> Shown | None:
    module = unsettled(copy.deepcopy(session.module).float().eval())
    whole = torch.cat(session.chunks, dim=1)
    full = _logits(_call(module, whole, session.full())[0])
    state = _state(session)
    outputs: list[torch.Tensor] = []
    for place, chunk in enumerate(session.chunks):
        result, state = _call(module, chunk, session.step(place, state))
        outputs.append(_logits(result))
    steps = torch.cat(outputs, dim=1)
    size = difference(full[:, -len(session.chunks) + 1 :], steps[:, -len(session.chunks) + 1 :])
    if size <= _TOLERANCE:
        return None
    found = _place(run, module, session)
    if not found:
        return None
    return Shown(
        RULE, found,
        Text("after a prompt of {prompt} tokens the decoded outputs differ from one pass over all {all} by {size}",
             "在 {prompt} 个 token 的提示之后，逐步解码的输出与一次处理全部 {all} 个 token 相差 {size}"),
        {"prompt": str(session.chunks[0].shape[1]), "all": str(whole.shape[1]), "size": f"{size:.1%}"},
        (number("difference", "差异", 100 * size, "%", ON_A_COPY),
         expected(0.0, "%", ON_A_COPY)),
        offered(run.root, found, _continue_positions),
    )  # fmt: skip


def _state(session: _Session) -> _Arguments:
    first = session.calls[0]
    return widened(copied(first.args)), widened(copied(first.kwargs))


def _call(
    module: nn.Module,
    tokens: torch.Tensor,
    state: _Arguments,
) -> tuple[Any, _Arguments]:
    args, kwargs = state
    with torch.no_grad():
        result = module(tokens, *args[1:], **kwargs)
    return result, (args, kwargs)


def _logits(result: Any) -> torch.Tensor:
    return next(item for item in floats(result) if item.dim() == 3)


def _place(run: Recording, module: nn.Module, session: _Session) -> Place:
    """The first line whose values for the decoded token differ from those of the full pass."""
    prompt = session.chunks[0]
    whole = torch.cat(session.chunks[:2], dim=1)
    full = _traced(run, module, whole, session.full(2))
    state = _call(module, prompt, _state(session))[1]
    step = _traced(run, module, session.chunks[1], session.step(1, state))
    by_place: dict[tuple[Place, str], list[Operator]] = {}
    for item in full:
        by_place.setdefault((item.place, item.name), []).append(item)
    counted: dict[int, Place] = {}
    for item in step:
        others = by_place.get((item.place, item.name), [])
        other = others.pop(0) if others else None
        if other is None or item.name in ("cat", "masked_fill"):
            continue
        last = _last(other.output, item.output, whole.shape[1])
        if last is not None and difference(last, item.output) > _TOLERANCE:
            if item.name == "arange":  # its start may be added to it later
                counted[id(item.output)] = item.place
                continue
            return next((counted[id(x)] for x in item.inputs if id(x) in counted), item.place)
    return step[-1].place if step else Place("", 0)


def _last(full: torch.Tensor, step: torch.Tensor, length: int) -> torch.Tensor | None:
    """The last position of the full pass where only the length differs."""
    if full.dim() != step.dim() or full.numel() == 0:
        return None
    axes = [axis for axis in range(full.dim()) if full.shape[axis] != step.shape[axis]]
    if len(axes) != 1 or full.shape[axes[0]] != length or step.shape[axes[0]] != 1:
        return None
    return full.narrow(axes[0], length - 1, 1)


def _traced(
    run: Recording, module: nn.Module, tokens: torch.Tensor,
    state: _Arguments,
) -> list[Operator]:  # fmt: skip
    trace = OperatorTrace(Where(run.root))
    with trace:
        _call(module, tokens, state)
    return trace.operators


def _continue_positions(file: SourceFile, place: Place) -> Iterator[Fix]:
    """An arange that starts at zero starts at the length of the cache."""
    function = file.function(place.line)
    names = (
        [item.arg for item in function.args.args if "cache" in item.arg or "past" in item.arg]
        if function
        else []
    )
    lengths = list(_lengths(file)) or ["length"]
    for call in file.calls(place.line, "arange"):
        text = file.source(call)
        for name in names:
            for length in lengths:
                for value in (f"{name}[0].{length}", f"{name}.{length}"):
                    yield fix([file.replace(call, f"({value} if {name} is not None else 0) + {text}")],
                              "let positions continue after the cache", "让位置接续缓存长度")  # fmt: skip


def _lengths(file: SourceFile) -> Iterator[str]:
    """Names of lengths that a cache of this project has."""
    for path in sorted(file.home.rglob("*.py")):
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError):
            continue
        for kind in ast.walk(tree):
            if isinstance(kind, ast.ClassDef) and "cache" in kind.name.lower():
                for node in ast.walk(kind):
                    if isinstance(node, ast.FunctionDef) and any(
                        word in node.name for word in ("length", "size", "pos", "len")
                    ) and not node.name.startswith("__"):  # fmt: skip
                        is_property = any(
                            "property" in ast.unparse(item) for item in node.decorator_list
                        )
                        yield node.name if is_property else f"{node.name}()"
