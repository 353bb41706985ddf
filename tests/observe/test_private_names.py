"""What is done with torch's private names does what it says."""

from __future__ import annotations

import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from torchstone.observe.compat import (
    autograd,
    backends,
    compiler,
    fakes,
    modes,
    operators,
    optimizers,
    tensors,
)

PROCESS = """
import ctypes, os, threading
os.environ["CUDA_VISIBLE_DEVICES"] = "7"
os.environ.pop("HIP_VISIBLE_DEVICES", None)
from torchstone.observe.compat.autograd_engine import engine_threads, start_engine
start_engine()
import torch
print(os.environ["CUDA_VISIBLE_DEVICES"], "HIP_VISIBLE_DEVICES" in os.environ, engine_threads(),
      torch._C._is_multithreading_enabled())
begun, stop = threading.Event(), threading.Event()
def named():
    ctypes.CDLL(None).prctl(15, b"pt_autograd_0", 0, 0, 0)
    begun.set()
    stop.wait(20)
threading.Thread(target=named, daemon=True).start()
begun.wait()
print(engine_threads())
import torch.distributed as dist
from torchstone.observe.compat import groups
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
groups.default_store().set("a", "b")
print(groups.default_store().get("a").decode(), len(groups.world().pg_map), type(groups.make_fake_store()).__name__,
      *[module.__name__.rpartition(".")[2] for module in groups.sharding_modules()])
"""


def test_what_needs_a_process_of_its_own() -> None:
    """The engine starts without devices and threads, and puts the environment back; a thread of it
    is counted; what groups keep behind their functions is found."""
    done = subprocess.run(
        [sys.executable, "-c", PROCESS], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "7 False 0 False", "1", "b 1 FakeStore _fsdp_common _fsdp_param"
    ]  # fmt: skip


def test_the_node_that_runs() -> None:
    seen: list[tuple[str, bool]] = []
    x = torch.ones(1, requires_grad=True)
    before = autograd.next_sequence_number()
    y = x * 2
    assert autograd.next_sequence_number() == before + 1
    y.register_hook(
        lambda _: seen.append((type(autograd.current_node()).__name__, autograd.graph_task() >= 0))
    )
    y.backward()
    assert [inside for _, inside in seen] == [True]
    assert autograd.current_node() is None
    assert autograd.graph_task() == -1


def test_what_is_being_transformed() -> None:
    seen: list[tuple[bool, bool]] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append((autograd.is_batched(x), autograd.is_transformed()))
        return x

    look(torch.ones(2))
    torch.vmap(look)(torch.ones(2))
    torch.func.grad(lambda x: look(x).sum())(torch.ones(2))
    assert seen == [(False, False), (True, True), (False, True)]


def test_hooks_for_saved_tensors() -> None:
    assert not autograd.saved_tensor_hooks()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        assert autograd.saved_tensor_hooks()


def test_models_that_were_given_to_the_compiler() -> None:
    model, other = nn.Linear(1, 1), nn.Linear(1, 1)
    assert not compiler.is_compiled(model)
    wrapped = torch.compile(model, backend="eager")
    assert compiler.is_compiled(wrapped)  # type: ignore[arg-type]
    assert compiler.uncompiled(wrapped) is model  # type: ignore[arg-type]
    other.compile(backend="eager")
    assert compiler.is_compiled(other)
    assert compiler.uncompiled(other) is other
    compiler.forget_compiled()


def test_breaks_are_explained_and_operators_decomposed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = compiler.explain_breaks(
            lambda x, scale: (x * scale).sum(), (torch.ones(2),), {"scale": 3.0}
        )
    assert found.graph_count == 1
    add = torch.ops.aten.addcmul.default
    assert add in compiler.find_decompositions([add])


def test_flags_of_dispatching_are_put_back() -> None:
    before = modes.dispatch_flags()
    assert before
    assert all(name.startswith("_is_in_") for name in before)
    name = next(iter(before))
    modes.set_dispatch_flags({name: "mine"})
    assert modes.dispatch_flags()[name] == "mine"
    modes.set_dispatch_flags(before)
    assert modes.dispatch_flags() == before


def test_the_fake_mode_that_is_active() -> None:
    assert modes.fake_mode_on_top() is None
    with fakes.FakeTensorMode() as mode:
        assert modes.fake_mode_on_top() is mode
        with modes.disable_modes():
            assert not modes.dispatch_modes()


def test_operators_as_objects() -> None:
    key = operators.COMPOSITE_EXPLICIT_AUTOGRAD
    assert operators.has_kernel("aten::zeros", key)
    assert not operators.has_kernel("aten::mm", key)
    found = operators.function_of_torch("relu")
    assert found(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert operators.is_tensor_class(torch.Tensor)
    assert operators.is_tensor_class(nn.Parameter)
    assert not operators.is_tensor_class(nn.Module)


def test_kernels_of_optimizers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(optimizers.devices_with_foreach_kernels(), list)
    assert "cuda" in optimizers.devices_with_foreach_kernels()

    class Mine(torch.Tensor):
        pass

    for module in (optimizers.optimizers, optimizers.utilities):
        monkeypatch.setattr(module, "_foreach_supported_types", [torch.Tensor])
    optimizers.add_foreach_type(Mine)
    optimizers.add_foreach_type(Mine)
    for module in (optimizers.optimizers, optimizers.utilities):
        assert module._foreach_supported_types == [torch.Tensor, Mine]


def test_tensors_below_their_interface() -> None:
    one, two = torch.zeros(2), torch.ones(3)
    assert tensors.has_compatible_impl(one, two)
    tensors.swap_impl(one, two)
    assert one.tolist() == [1.0] * 3
    assert [float(item) for item in tensors.foreach_norm([torch.full((4,), 2.0)])] == [4.0]


def test_the_fake_device_is_registered_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(backends, "_set_up", lambda *words, **parts: asked.append((*words, *parts)))
    backends.register_fake_device()
    backends.register_python_backend("mine", part=SimpleNamespace())
    assert asked == [(backends.FAKE_DEVICE,), ("mine", "part")]
    monkeypatch.setattr(backends, "_set_up", None)
    backends.register_fake_device()
    assert ("pretend" if backends.HAS_PYTHON_BACKEND else "lazy") == backends.FAKE_DEVICE
