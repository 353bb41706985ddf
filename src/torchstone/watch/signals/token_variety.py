"""How many different tokens the model is given."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.learn.channels import NEVER, Limits
from torchstone.watch.measure.signal import Signal

SIGNAL = Signal(
    "token_variety",
    phase="call",
    of="run",
    title=Text("distinct tokens among a hundred", "每一百个 token 中不同 token 的占比"),
    why=Text(
        "the mix of tokens in text is stable: when one token takes over, it is padding, an unknown-word token, or the same file read again and again",
        "文本的 token 构成是稳定的：某个 token 占据主导，说明是填充、未知词，或反复读取同一文件",
    ),
    remedy=Text("decode a batch and read it", "把一个批次解码出来读一读"),
    limits=Limits(
        spike=(NEVER, NEVER),
        ramp=(NEVER, NEVER),
        mixed=True,
        shift=(1.6, 1.6),
        floor=0.02,
        shift_sigmas=8.0,
        fall_sigmas=8.0,
    ),
)


@SIGNAL.measure
def variety(call: Any) -> float:
    return float(call.input.variety)


def fault(toy: Any) -> None:
    """All words but the first few become the unknown one."""
    toy.transform = lambda x, y: (x.clamp(max=3), y)
