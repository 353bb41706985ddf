"""How many different tokens the model is given."""

from __future__ import annotations

from typing import Any

from torchstone.core.text import Text
from torchstone.watch.channels import NEVER, Limits
from torchstone.watch.signal import Signal

SIGNAL = Signal(
    "token_variety",
    phase="call",
    of="run",
    title=Text("different tokens among a hundred", "一百个词元中的不同词元占比"),
    why=Text(
        "the mix of a text is steady: a flood of one token is padding, an unknown word for all, or a file that is read over and over",
        "文本的词元构成很稳定：某个词元泛滥，说明是填充、全部变成未知词，或反复读同一文件",
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
    return float(call.token_variety)


def fault(toy: Any) -> None:
    """All words but the first few become the unknown one."""
    toy.transform = lambda x, y: (x.clamp(max=3), y)
