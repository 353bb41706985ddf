"""What torch would compile, trace, quantise or spread over devices runs as it is written."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch import nn

from torchstone.core.text import Text
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session
from torchstone.observe.compat.trees import tree_map_only
from torchstone.starting.replacements.imports import when_imported

_RUNS = Text("the Python code is run", "直接运行 Python 代码")


def run_as_written(model: Any = None, **_: Any) -> Any:
    """`torch.compile` gives back what it was given."""
    return model if model is not None else lambda inner: inner


def script_as_written(session: Session) -> None:
    """`torch.jit.script` and `torch.jit.trace` give back the Python code, which shows its lines."""

    def script(code: Any, *args: Any, **kwargs: Any) -> Any:
        session.assume("torch.jit.script", _RUNS)
        return _with_save(code)

    def trace(code: Any, example_inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        session.assume("torch.jit.trace", _RUNS)
        if example_inputs is not None:
            with torch.no_grad():
                code(*(example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)))
        return _with_save(code)

    put(torch.jit, "script", script)
    put(torch.jit, "trace", trace)
    put(torch.jit, "save", lambda code, file, **_: torch.save(code, file))
    put(torch.jit, "load", lambda file, **_: torch.load(file, weights_only=False))
    put(torch.jit, "freeze", run_as_written)
    put(torch.jit, "optimize_for_inference", run_as_written)


def _with_save(code: Any) -> Any:
    """Scripted modules can save themselves."""
    if isinstance(code, nn.Module) and not hasattr(code, "save"):
        object.__setattr__(code, "save", lambda file, **_: torch.save(code, file))
    return code


def run_on_one_device() -> None:
    """`nn.DataParallel` with a single device calls its module, with inputs on that device."""

    def forward(parallel: Any, *inputs: Any, **options: Any) -> Any:
        def move(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to("cuda")

        inputs, options = tree_map_only(torch.Tensor, move, (inputs, options))
        return parallel.module(*inputs, **options)

    put(nn.DataParallel, "forward", forward)
    put(nn.DataParallel, "__init__", _data_parallel_init)


def _data_parallel_init(
    parallel: Any,
    module: nn.Module,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
) -> None:
    nn.Module.__init__(parallel)
    parallel.module = module
    parallel.device_ids = [0] if device_ids is None else list(device_ids)
    parallel.output_device, parallel.dim = output_device, dim


def leave_pictures_out(session: Session) -> None:
    """A picture of the model for TensorBoard is traced, which fake weights do not allow: nothing is drawn."""

    def put_nothing() -> None:
        writer: Any = sys.modules["torch.utils.tensorboard.writer"]

        def add_graph(self: Any, *args: Any, **kwargs: Any) -> None:
            session.note("add_graph draws nothing")

        put(writer.SummaryWriter, "add_graph", add_graph)

    when_imported("torch.utils.tensorboard.writer", put_nothing)
