"""Every operator of torch with perturbed dtypes, ranks and sides: eager's verdict against the dry run's.

python benchmarks/operator_fuzz.py tuned        the operators that were looked at while building
python benchmarks/operator_fuzz.py kept_aside   a third of the operators, scored once
python benchmarks/operator_fuzz.py tuned -v     every disagreement

The samples are those of torch's own tests. Floating-point tensors are fake and integers are real, as
where parameters meet data. A call whose verdict depends on the values of floats is left out, and so is
one for which torch has no kernel on a CPU.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from torchstone.dryrun.script.fakes.answers import Answers
from torchstone.dryrun.script.fakes.calls import Calls
from torchstone.dryrun.script.fakes.conversions import answer_conversions
from torchstone.dryrun.script.fakes.lazy import make_fake, make_mode
from torchstone.dryrun.session import Session
from torchstone.dryrun.settings import ScriptSettings
from torchstone.dryrun.world import quiet_torch

SAMPLES = 6
"""Samples of each operator; most have a dozen that differ in one flag."""
LARGEST = 1 << 14
"""Elements of a sample's tensors: kernels of larger ones only take longer."""
SECONDS = 90
"""For one operator; what has not been tried by then is left out."""
DTYPES = (
    torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool,
    torch.complex64,
)  # fmt: skip
NO_KERNEL = (
    "not implemented for",
    "not supported on CPU",
    "Could not run",
    "not implemented on CPU",
)

Call = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One call: what was changed, what eager says, what the dry run says."""

    operator: str
    change: str
    eager: str
    """The text of its refusal; empty where it accepts."""
    ours: str


def is_kept_aside(name: str) -> bool:
    return zlib.crc32(name.encode()) % 3 == 0


def perturb(leaves: list[Any], choose: random.Random) -> Iterator[tuple[str, list[Any]]]:
    """The call as it is, and with one tensor changed in one way each time."""
    yield "as it is", leaves
    for place, value in enumerate(leaves):
        if not isinstance(value, torch.Tensor):
            continue
        for change, made in changes_of(value, choose):
            yield f"{place}: {change}", [*leaves[:place], made, *leaves[place + 1 :]]


def changes_of(value: torch.Tensor, choose: random.Random) -> Iterator[tuple[str, torch.Tensor]]:
    for dtype in choose.sample(DTYPES, 3):
        if dtype != value.dtype:
            yield str(dtype), value.to(dtype)
    yield "one rank more", value.unsqueeze(0)
    if value.dim() and value.shape[0]:
        yield "one rank less", value[0]
    if value.dim():
        axis = choose.randrange(value.dim())
        size = value.shape[axis]
        if size:
            index = torch.arange(size + 1).clamp(max=size - 1)
            yield f"side {axis} longer", value.index_select(axis, index)


def try_call(call: Call, leaves: list[Any]) -> str:
    try:
        call(leaves)
    except Exception as error:  # every kind is a refusal: the kinds differ between kernels
        return f"{type(error).__name__}: {error}"
    return ""


def copied(leaves: list[Any], fill: Callable[[torch.Tensor], torch.Tensor]) -> list[Any]:
    return [fill(item) if isinstance(item, torch.Tensor) else item for item in leaves]


def is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def like_identity(tensor: torch.Tensor) -> torch.Tensor:
    if not is_float(tensor) or tensor.dim() < 2:
        return half(tensor)
    return torch.eye(*tensor.shape[-2:], dtype=tensor.dtype).expand(tensor.shape).clone()


def half(tensor: torch.Tensor) -> torch.Tensor:
    return torch.full_like(tensor, 0.5) if is_float(tensor) else tensor.clone()


def judge_eager(call: Call, leaves: list[Any]) -> str | None:
    """The refusal, or nothing; None where that depends on values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        said = [try_call(call, copied(leaves, fill)) for fill in (torch.clone, half, like_identity)]
    if any(word in text for word in NO_KERNEL for text in said):
        return None
    return said[0] if len({bool(text) for text in said}) == 1 else None


def judge_dry(
    call: Call, leaves: list[Any], session: Session, calls: Calls, answers: Answers
) -> str:
    given = copied(
        leaves,
        lambda item: make_fake(session.mode, item.clone()) if is_float(item) else item.clone(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with calls, answers:
            return try_call(call, given)


def judge_operator(name: str) -> Iterator[Verdict]:
    choose = random.Random(name)
    session = Session(ScriptSettings(cuda=False), make_mode())
    calls, answers = Calls(session), Answers(session)
    answer_conversions(session, calls)
    for info in (item for item in op_db if item.name == name):
        kinds = info.supported_dtypes("cpu")
        if not kinds:
            continue
        dtype = torch.float32 if torch.float32 in kinds else min(kinds, key=str)
        for sample in list(info.sample_inputs("cpu", dtype))[:SAMPLES]:
            leaves, tree = tree_flatten((sample.input, list(sample.args), dict(sample.kwargs)))
            tensors = [item for item in leaves if isinstance(item, torch.Tensor)]
            if sum(item.numel() for item in tensors) > LARGEST or not all(map(is_plain, tensors)):
                continue

            def call(given: list[Any], op: Any = info.op, tree: Any = tree) -> Any:
                first, rest, named = tree_unflatten(given, tree)
                return op(first, *rest, **named)

            for change, changed in perturb(copied(leaves, torch.Tensor.detach), choose):
                eager = judge_eager(call, changed)
                if eager is not None:
                    ours = judge_dry(call, changed, session, calls, answers)
                    yield Verdict(name, change, eager, ours)


def is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided


def judge_apart(name: str) -> tuple[list[Verdict], bool]:
    """In a process of its own: kernels given nonsense may end it. Whether it came to its end."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        with os.fdopen(write, "w") as pipe, contextlib.suppress(BrokenPipeError):
            for verdict in judge_operator(name):
                texts = (verdict.change, verdict.eager[:300], verdict.ours[:300])
                print(json.dumps(texts), file=pipe, flush=True)
            print("null", file=pipe, flush=True)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        lines = [json.loads(line) for line in pipe if line.endswith("\n")]
    os.waitpid(child, 0)
    ended = bool(lines) and lines[-1] is None
    return [Verdict(name, *line) for line in lines if line is not None], ended


def score(verdicts: list[Verdict]) -> str:
    refusals = [item for item in verdicts if item.eager]
    accepted = [item for item in verdicts if not item.eager]
    refused, kept = (
        sum(bool(item.ours) for item in refusals),
        sum(not item.ours for item in accepted),
    )
    return (
        f"{len(verdicts)} calls: {refused} of {len(refusals)} refusals "
        f"({refused / max(1, len(refusals)):.2%}), {kept} of {len(accepted)} acceptances "
        f"({kept / max(1, len(accepted)):.2%})"
    )


def main(words: list[str]) -> int:
    part, named = words[0] if words else "tuned", [word for word in words[1:] if word != "-v"]
    quiet_torch()
    torch.set_num_threads(1)
    names = sorted({item.name for item in op_db})
    names = [name for name in names if is_kept_aside(name) == (part == "kept_aside")]
    verdicts: list[Verdict] = []
    unended = Counter[str]()
    for name in named or names:
        found, ended = judge_apart(name)
        verdicts += found
        unended[name] += not ended
    if "-v" in words:
        for item in verdicts:
            if bool(item.eager) != bool(item.ours):
                said = f"eager: {item.eager[:150]}" if item.eager else f"OURS: {item.ours[:150]}"
                print(item.operator, item.change, said.replace("\n", " "), sep=" | ")
    print("not ended:", ", ".join(name for name, count in unended.items() if count) or "none")
    print(f"{part}: {score(verdicts)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
