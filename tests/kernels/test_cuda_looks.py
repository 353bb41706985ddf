"""Files for a GPU run under the interpreter as they are: the host answers as a device."""

from __future__ import annotations

import pytest
import torch

from torchstone.kernels import Candidate, verify
from torchstone.kernels.harness.kits.cuda_looks import DEVICE, looking
from torchstone.kernels.sessions.workshop import Workshop

FOR_A_GPU = """import torch
import triton
import triton.language as tl
from triton.runtime import driver

DEVICE = triton.runtime.driver.active.get_active_torch_device()
PROPERTIES = driver.active.utils.get_device_properties(0)


@triton.autotune([triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 512})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.where(value < 0, 0.0, value), mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda and x.device == DEVICE
        x = x.contiguous().cuda()
        y = torch.empty(x.shape, device="cuda")
        if x.numel():
            relu[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
        return y
"""


def test_tensors_look_as_if_they_were_there_and_are_here() -> None:
    with looking():
        made = torch.zeros(3, device="cuda:0")
        moved = torch.ones(3).to("cuda").cuda()
        assert (made.is_cuda, moved.device, made.get_device()) == (True, DEVICE, 0)
        total = (made + moved).cpu()
        module = torch.nn.Linear(2, 2).to("cuda").cuda()
    assert total.tolist() == [1.0, 1.0, 1.0]
    assert not made.is_cuda
    assert module.weight.device.type == "cpu"


@pytest.mark.usefixtures("few_sizes")
def test_a_file_for_a_gpu_is_accepted_as_it_is(workshop: Workshop) -> None:
    verdict = verify("relu", Candidate(FOR_A_GPU, "triton"), seeds=2, workshop=workshop)
    assert verdict.accepted, verdict.error_log()
