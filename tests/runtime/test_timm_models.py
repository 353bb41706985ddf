"""timm, which is not installed here: stand-ins on the path behave as the real packages do."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.runtime.targets import build_target

# torchvision registers a shape function for an operator that only its library defines
TORCHVISION = """
import torch
@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, iou_threshold): return dets.new_empty(0)
@torch.library.register_fake("torchvision::qnms")
def qnms(dets, scores, iou_threshold): return dets.new_empty(0)
"""
TIMM = """
import torch, torchvision
from torch import nn
class Settings:
    def to_dict(self): return {"input_size": (3, 96, 96)}
class models:
    @staticmethod
    def get_pretrained_cfg(name): return Settings()
def is_model(name): return name == "tiny"
def list_models(): return ["tiny"]
def create_model(name, num_classes=1000): return nn.Conv2d(3, num_classes, 1)
"""


def run(folder: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def stand_ins(tmp_path: Path) -> Path:
    for name, source in (("torchvision", TORCHVISION), ("timm", TIMM)):
        (tmp_path / f"{name}.py").write_text(source)
    return tmp_path


def test_a_broken_torchvision_is_mended(stand_ins: Path) -> None:
    said = run(
        stand_ins,
        """
        try:
            import torchvision
        except RuntimeError as error:
            print(error)
        import sys
        sys.modules.pop("torchvision", None)
        from torchstone.runtime.targets import build_target
        from torchstone.runtime.inputs import default_inputs
        target = build_target("timm:tiny?num_classes=7")
        print(target.model, target.model.weight.device)
        print(default_inputs(target.model, target.config, batch=2)[0].shape)
        """,
    )
    assert "torchvision::nms does not exist" in said
    assert "Conv2d(3, 7, kernel_size=(1, 1), stride=(1, 1)) meta" in said
    assert "[2, 3, 96, 96]" in said


def test_an_unknown_name_and_a_wrong_option(stand_ins: Path) -> None:
    said = run(
        stand_ins,
        """
        from torchstone.core.errors import TorchstoneError
        from torchstone.runtime.targets import build_target
        for name in ("timm:tinny", "timm:tiny?classes=3", "timm:tiny?x"):
            try:
                build_target(name)
            except TorchstoneError as error:
                print(error)
        """,
    )
    assert "did you mean 'tiny'" in said
    assert "unexpected keyword argument 'classes'" in said
    assert "expected key=value" in said


def test_without_timm_the_error_says_what_to_do() -> None:
    with pytest.raises(InputError, match="environment of its own") as caught:
        build_target("timm:resnet50")
    assert "单独的环境" in caught.value.say("zh")
