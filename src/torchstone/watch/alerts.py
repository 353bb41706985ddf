"""An alert: a signal that left its range, or something that is wrong in itself."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchstone.core.errors import TorchstoneError
from torchstone.core.finding import Severity
from torchstone.core.text import NOTHING, Text
from torchstone.watch.learn.channels import Channel

_KINDS = {
    "spike": Text("", ""),
    "shift": Text(" | shift (median of 12 steps)", " | shift（12 步的中位数）"),
    "change": Text(
        " | change (mean of 32 steps, σ of that mean)",
        " | change（32 步的均值，σ 为该均值的标准误）",
    ),
    "ramp": Text(" | ramp (median of 40 steps)", " | ramp（40 步的中位数）"),
}
"""What the number is, for each channel."""
_INDENT = " " * len("[ALERT] ")
_ALSO = Text("also: ", "另有：")
_NEXT = Text("next: ", "下一步：")


@dataclass(frozen=True, slots=True)
class Alert:
    """One signal that left its range, or one thing that is wrong."""

    step: int
    signal: str
    layer: str
    value: float
    severity: Severity
    centre: float = math.nan
    """The usual value, for a learned signal."""
    width: float = math.nan
    """One spread of the usual values."""
    sigmas: float = math.nan
    channel: str = ""
    unit: str = ""
    others: int = 0
    """Further layers that left their range with this one."""
    text: Text = NOTHING
    """What was seen, for a signal that is not learned."""
    next: Text = NOTHING
    """What to look at now."""
    episode: int = 0
    """The number of its episode, from 1."""
    opens: bool = True
    """It is the first of its episode; the others are listed under that one."""

    @property
    def learned(self) -> bool:
        return not math.isnan(self.centre)

    def line(self, lang: str = "en") -> str:
        """The first line in the terminal and the log: `[ALERT] Step 305 | …`, or `also: …`."""
        head = "[ALERT] " if self.opens else f"{_INDENT}{_ALSO.get(lang)}"
        return f"{head}Step {self.step} | {self.body(lang)}"

    def next_line(self, lang: str = "en") -> str:
        """The line under the one that opens an episode: what to look at now."""
        return f"{_INDENT}{_NEXT.get(lang)}{self.next.get(lang)}"

    def body(self, lang: str = "en") -> str:
        """The line without its head."""
        if not self.learned:
            return self.text.get(lang)
        unit = f" {self.unit}" if self.unit.isalpha() else self.unit
        place = f"Layer '{self.layer}' " if self.layer else ""
        usual = f"(baseline: {short(self.centre)}±{short(self.width)}{unit})"
        far = "" if self.layer else f" | Deviation: {abs(self.sigmas):.0f}σ"
        kind = _KINDS[self.channel].get(lang)
        more = f" | +{self.others} layers" if self.others else ""
        return f"{place}{self.signal}: {short(self.value)}{unit} {usual}{far}{kind}{more}"


class TrainingAlertError(TorchstoneError):
    """Raised out of the training step when `on_alert="raise"`."""

    def __init__(self, alert: Alert, lang: str = "en") -> None:
        self.alert = alert
        self._lang = lang
        super().__init__(
            f"step {alert.step}" if lang == "en" else f"第 {alert.step} 步",
            alert.body(lang),
            Text("signals in their usual range", "信号处于正常范围"),
            Text(
                f"{alert.next.en}; on_alert=None continues training after an alert",
                f"{alert.next.zh}；on_alert=None 表示告警后继续训练",
            ),
        )
        self.args = (self.say(lang),)

    def __reduce__(self) -> tuple[type[TrainingAlertError], tuple[Alert, str]]:
        return TrainingAlertError, (self.alert, self._lang)  # it may come from another process


def short(value: float) -> str:
    """Three digits, as a person would write them."""
    if not math.isfinite(value):
        return str(value)
    return f"{value:.3g}"


def channel_name(channel: int) -> str:
    """The channel as it is printed."""
    return Channel(channel).name.lower()
