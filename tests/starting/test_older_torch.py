"""What torch did by itself in older versions."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from torchstone.starting.replacements.older_torch import older_behaviour

_CODE = """
import torch
from torchstone.starting.replacements.older_torch import put_back
put_back("stft")
put_back("verbose")
spectrum = torch.stft(torch.ones(400), 64, 16, 64, torch.hann_window(64))
whole = torch.stft(torch.ones(400), 64, 16, 64, torch.hann_window(64), return_complex=True)
print(spectrum.shape[-1], torch.equal(torch.view_as_complex(spectrum), whole))
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3, verbose=True)
step = torch.optim.lr_scheduler.StepLR(optimizer, 2, verbose=False)
print(plateau.patience, step.step_size)
"""


def test_it_does_again() -> None:
    done = subprocess.run([sys.executable, "-c", _CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["2 True", "3 2"]


def test_what_an_exception_says() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    with pytest.raises(TypeError) as verbose:
        torch.optim.lr_scheduler.StepLR(optimizer, 2, verbose=True)  # type: ignore[call-arg]
    with pytest.raises(RuntimeError) as stft:
        torch.stft(torch.ones(400), 64)
    assert older_behaviour(verbose.value) == "verbose"
    assert older_behaviour(stft.value) == "stft"
    assert older_behaviour(TypeError("f() got an unexpected keyword argument 'verbose'")) == ""
