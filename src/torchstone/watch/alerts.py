"""An alert is what a person is told; an episode is a stretch of alarms that is told once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from torchstone.core.errors import TorchstoneError
from torchstone.core.finding import Severity
from torchstone.core.text import Text
from torchstone.watch.channels import Channel

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
    text: Text = Text("", "")
    """What was seen, for a signal that is not learned."""

    @property
    def learned(self) -> bool:
        return not math.isnan(self.centre)

    def line(self, lang: str = "en") -> str:
        """The line of the terminal and the log."""
        return f"[ALERT] Step {self.step} | {self.body(lang)}"

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
            Text("a signal in its usual range", "信号处于正常范围"),
            Text(
                "look at the evidence of the alert, or pass on_alert=None to go on",
                "查看该告警的证据，或传入 on_alert=None 继续",
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


@dataclass(slots=True)
class Episodes:
    """Alarms less than `window` steps apart are one episode; each signal speaks once in its own."""

    window: int
    count: int = 0
    _last: int = -(10**9)
    _last_of: dict[str, int] = field(default_factory=dict)

    def admit(self, step: int, signal: str) -> bool:
        """True when this signal is to be told now; one that never stops mutes no other."""
        new = step - self._last_of.get(signal, -(10**9)) > self.window
        self._last_of[signal] = step
        if new and step - self._last > self.window:
            self.count += 1
        self._last = step
        return new

    def open_at(self, step: int) -> bool:
        """An episode is going on."""
        return step - self._last <= self.window
