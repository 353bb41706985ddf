"""Run in a process of its own: torch's private-use backend can be registered once per process."""

from __future__ import annotations

import threading

import torch
from torch import nn

from torchstone.observe.compat.autograd_engine import engine_threads
from torchstone.runtime.pretend_accelerator import pretend_accelerator


def values_views_and_writes() -> None:
    with pretend_accelerator():
        x = torch.arange(12.0).reshape(3, 4).to("pretend")
        assert x.device == torch.device("pretend:0")
        x[1].zero_()
        x += 1
        assert (x @ x.T).cpu()[1, 1] == 4
        assert torch.arange(3, device="pretend").cpu().tolist() == [0, 1, 2]


def refuses_mixing_and_numpy() -> None:
    with pretend_accelerator():
        x = torch.ones(3, device="pretend")
        for mistake in (lambda: x + torch.ones(3), lambda: x.numpy()):
            try:
                mistake()
            except (RuntimeError, TypeError):
                continue
            raise AssertionError("not refused")
        assert (x + torch.tensor(2.0)).cpu().tolist() == [3, 3, 3]


def counts_bytes_and_moves_its_clock() -> None:
    with pretend_accelerator(bus_bytes_per_second=1e6, launch_seconds=1.0) as device:
        x = torch.zeros(1000).to("pretend")
        (x * 2).cpu()
        assert (device.to_device_bytes, device.to_host_bytes, device.transfers) == (4000, 4000, 2)
        assert 1.008 <= device.seconds < 1.01
        assert device.live_bytes == 4000
        del x
        assert device.live_bytes == 0
        assert device.peak_bytes == 8000


def injects_faults() -> None:
    with pretend_accelerator(memory_bytes=100):
        try:
            torch.zeros(1000).to("pretend")
        except torch.OutOfMemoryError:
            pass
        else:
            raise AssertionError("no limit")
    with pretend_accelerator(missing_operators=frozenset({"aten.sort"})):
        try:
            torch.zeros(4, device="pretend").sort()
        except NotImplementedError:
            pass
        else:
            raise AssertionError("sort is there")


def trains() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 2))
    x = torch.randn(2, 3, 8, 8)
    model(x).square().sum().backward()
    expected = model[0].weight.grad.clone()
    with pretend_accelerator():
        moved = model.to("pretend")
        moved.zero_grad()
        optimizer = torch.optim.SGD(moved.parameters(), lr=0.1)
        moved(x.to("pretend")).square().sum().backward()
        assert torch.allclose(moved[0].weight.grad.cpu(), expected, atol=1e-5)
        optimizer.step()


def has_no_thread_that_runs_python() -> None:
    """It could still run while the interpreter ends."""
    with pretend_accelerator():
        threads = []
        x = torch.ones(3, device="pretend", requires_grad=True)
        x.register_hook(lambda _: threads.append(threading.get_ident()))
        (x * 2).sum().backward()
    assert threads == [threading.get_ident()]
    assert engine_threads() == 0


if __name__ == "__main__":
    for check in (
        values_views_and_writes,
        refuses_mixing_and_numpy,
        counts_bytes_and_moves_its_clock,
        injects_faults,
        trains,
        has_no_thread_that_runs_python,
    ):
        check()
        print("passed", check.__name__)  # noqa: T201
