"""The options of `Watch` and `watch_training`; the defaults suit most runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Literal, Protocol, cast

import torch

from torchstone.core.errors import UsageError
from torchstone.core.text import Text, locale_lang
from torchstone.runtime.number_formats import NumberFormat, format_of
from torchstone.watch.alerts import Alert

OnAlert = Callable[[Alert], object] | Literal["raise", "skip"] | None


class Writer(Protocol):
    """Receives the numbers of a run, as TensorBoard or Weights & Biases do."""

    def step(self, step: int, values: Mapping[str, float]) -> None: ...
    def alert(self, alert: Alert) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of a watch: warm-up, alert window, false alarms, reaction to alerts, output."""

    warmup_steps: int = 100
    """Learned signals raise no alerts before this step; NaN and wrong code are reported at once."""
    alert_window: int = 50
    """Alerts that follow one another within this many steps belong to one episode."""
    false_alarms_per_10k: float = 2.0
    """Acceptable false alarms per 10,000 healthy steps."""
    on_alert: OnAlert = None
    """A function of the alert, "raise", or "skip" (skip the optimizer step)."""
    print_every: int = 100
    folder: str | Path | bool | None = True
    """Where to record the run; True: `.torchstone/watch/…` in the working folder, False or None: not."""
    budget: float = 0.1
    """The largest share of a step that monitoring may take; beyond it fewer steps are read."""
    narrow: NumberFormat | torch.dtype | str | None = None
    """The narrowest format of the gradients; found from the scaler and the parameters by default."""
    ranks_every: int = 20
    """Steps between two comparisons of the ranks."""
    writers: tuple[Writer, ...] = ()
    """Other tools to write to: `writers.TensorBoard`, `writers.WandB`, `writers.MLflow`."""
    lang: str = ""
    """The language of messages, "en" or "zh"; that of the locale by default."""

    def __post_init__(self) -> None:
        for name, least in (("warmup_steps", 10), ("alert_window", 1), ("print_every", 1),
                            ("ranks_every", 1)):  # fmt: skip
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise _wrong(
                    name, value, f"a whole number from {least} on", f"不小于 {least} 的整数"
                )
        rate = self.false_alarms_per_10k
        if not _is_number(rate) or not 0 < rate <= 1000:
            raise _wrong(
                "false_alarms_per_10k",
                rate,
                "a number above 0, up to 1000",
                "大于 0 且不超过 1000 的数",
            )
        if not _is_number(self.budget) or not 0 < self.budget <= 10:
            raise _wrong("budget", self.budget, "a share of the step above 0", "大于 0 的占比")
        if not (self.on_alert in (None, "raise", "skip") or callable(self.on_alert)):
            raise _wrong("on_alert", self.on_alert, 'a function, "raise", "skip" or None',
                         '函数、"raise"、"skip" 或 None')  # fmt: skip
        place, writers = cast(object, self.folder), cast(object, self.writers)
        if not isinstance(place, (str, Path, bool, NoneType)) or place == "" or "\0" in str(place):
            raise _wrong("folder", place, "a path, True or False", "路径、True 或 False")
        if not isinstance(writers, (tuple, list)) or not all(map(_is_writer, writers)):
            raise _wrong("writers", writers, "a tuple of writers", "写入器的元组")
        if not self.lang:
            object.__setattr__(self, "lang", locale_lang())
        if self.lang not in ("en", "zh"):
            raise _wrong("lang", self.lang, '"en" or "zh"', '"en" 或 "zh"')
        if self.narrow is not None:
            format_of(self.narrow)

    @property
    def tightness(self) -> float:
        """Factor on all thresholds: 1 for two false alarms in 10k steps, 1.25 for two in 50k."""
        return max(0.4, 1 + 0.25 * math.log(2.0 / self.false_alarms_per_10k, 5))


def _is_writer(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in ("step", "alert", "close"))


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _wrong(name: str, value: object, en: str, zh: str) -> UsageError:
    return UsageError(
        f"watch_training({name}=…)", repr(value)[:80], Text(en, zh),
        Text(f"leave {name} out, or pass {en}", f"省略 {name}，或传入{zh}"),
    )  # fmt: skip
