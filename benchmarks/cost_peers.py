"""What each FLOP counter says of each model on the meta device, one child process for each pair.

python benchmarks/cost_peers.py     one JSON line a pair; run by bench_cost.py in .venv-peers

A model is built once and forked for every tool: a tool that crashes, patches torch or hangs
touches nobody else. Tools that report multiply-adds are doubled; of those that report both
(calflops, deepspeed) the multiply-adds are taken, because their FLOPs also hold activations and
norms. Models get positional tensors and return one tensor, which every tool can take.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).parent))

from cost_models import SUBJECTS, Subject, plain_output

LIMIT_S = 180


class Plain(nn.Module):
    """A model with positional tensors in and one tensor out."""

    def __init__(self, model: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, first: Tensor, second: Tensor | None = None) -> Tensor:
        given = [first] if second is None else [first, second]
        return plain_output(self.model(**dict(zip(self.names, given, strict=True))))


def torchstone(model: nn.Module, subject: Subject) -> int:
    from torchstone.cost import measure_cost

    return measure_cost(model, subject.tensors()).total["flops"]


def torchstone_train(model: nn.Module, subject: Subject) -> int:
    from torchstone.cost import measure_cost

    total = measure_cost(model, subject.tensors(), train=True).total
    return total["forward_flops"] + total["backward_flops"]


def flop_counter(model: nn.Module, subject: Subject) -> int:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(**subject.tensors())
    return counter.get_total_flops()


def flop_counter_train(model: nn.Module, subject: Subject) -> int:
    with FlopCounterMode(display=False) as counter:
        backward(model.train()(**subject.tensors()))
    return counter.get_total_flops()


def backward(output: Any) -> None:
    """From every output that has a gradient."""
    values = [output] if isinstance(output, Tensor) else list(output.values())
    ends = [item for item in values if isinstance(item, Tensor) and item.requires_grad]
    torch.autograd.backward(ends, [torch.empty_like(item) for item in ends])


def fvcore(model: nn.Module, subject: Subject) -> int:
    from fvcore.nn import FlopCountAnalysis

    inputs = tuple(subject.tensors().values())
    analysis = FlopCountAnalysis(Plain(model, list(subject.inputs)), inputs)
    return 2 * int(analysis.unsupported_ops_warnings(False).total())


def calflops(model: nn.Module, subject: Subject) -> int:
    from calflops import calculate_flops

    _, macs, _ = calculate_flops(
        Plain(model, list(subject.inputs)), args=list(subject.tensors().values()),
        print_results=False, output_as_string=False,
    )  # fmt: skip
    return 2 * int(macs)


def ptflops(model: nn.Module, subject: Subject, backend: str = "pytorch") -> int:
    from ptflops import get_model_complexity_info

    names = ("first", "second")
    macs, _ = get_model_complexity_info(
        Plain(model, list(subject.inputs)), (1,), as_strings=False, print_per_layer_stat=False,
        input_constructor=lambda _: dict(zip(names, subject.tensors().values(), strict=False)),
        backend=backend,
    )  # fmt: skip
    if macs is None:
        raise RuntimeError("returned no figure")
    return 2 * int(macs)


def ptflops_aten(model: nn.Module, subject: Subject) -> int:
    return ptflops(model, subject, "aten")


def thop(model: nn.Module, subject: Subject) -> int:
    from thop import profile

    macs, _ = profile(
        Plain(model, list(subject.inputs)),
        inputs=tuple(subject.tensors().values()),
        verbose=False,
    )
    return 2 * int(macs)


def torchinfo(model: nn.Module, subject: Subject) -> int:
    from torchinfo import summary

    found = summary(
        Plain(model, list(subject.inputs)), input_data=list(subject.tensors().values()),
        device="meta", verbose=0,
    )  # fmt: skip
    return 2 * int(found.total_mult_adds)


def deepspeed(model: nn.Module, subject: Subject) -> int:
    from deepspeed.profiling.flops_profiler import get_model_profile

    _, macs, _ = get_model_profile(
        Plain(model, list(subject.inputs)), args=list(subject.tensors().values()),
        print_profile=False, as_string=False, warm_up=0,
    )  # fmt: skip
    return 2 * int(macs)


TOOLS: dict[str, Callable[[nn.Module, Subject], int]] = {
    "torchstone": torchstone,
    "torchstone_train": torchstone_train,
    "flop_counter": flop_counter,
    "flop_counter_train": flop_counter_train,
    "fvcore": fvcore,
    "calflops": calflops,
    "ptflops": ptflops,
    "ptflops_aten": ptflops_aten,
    "thop": thop,
    "torchinfo": torchinfo,
    "deepspeed": deepspeed,
}


def answer(tool: str, model: nn.Module, subject: Subject) -> dict[str, Any]:
    """What a tool says, or why it says nothing."""
    try:
        return {"flops": TOOLS[tool](model.eval(), subject)}
    except BaseException as error:  # a peer may fail in any way, SystemExit among them
        traceback.print_exc()
        lines = str(error).strip().splitlines() or [""]
        # torch.jit puts the place first and the reason last
        line = next((item for item in reversed(lines) if "Error" in item), lines[0])
        line = line if "Error:" in line else f"{type(error).__name__}: {line}"
        return {"error": line.strip()[:160]}


def asked(tool: str, model: nn.Module, subject: Subject) -> dict[str, Any]:
    """The answer of a child process, which is stopped when it takes too long."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        if "-v" not in sys.argv:
            os.dup2(silence, 2)
        os.write(write, json.dumps(answer(tool, model, subject)).encode())
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], LIMIT_S)
    text = os.read(read, 65536) if ready else b""
    os.close(read)
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ready:
        return {"error": f"no answer within {LIMIT_S} s"}
    return json.loads(text) if text else {"error": f"crashed with status {status}"}


def main() -> None:
    torch.set_num_threads(1)
    wanted = [word for word in sys.argv[1:] if word in SUBJECTS] or list(SUBJECTS)
    tools = [word for word in sys.argv[1:] if word in TOOLS] or list(TOOLS)
    for name in wanted:
        subject = SUBJECTS[name]()
        model = subject.build()
        for tool in tools:
            start = time.monotonic()
            found = asked(tool, model, subject)
            seconds = round(time.monotonic() - start, 2)
            row = {"model": name, "tool": tool, "seconds": seconds, **found}
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
