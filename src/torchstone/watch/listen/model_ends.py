"""The two ends of a model: what it is given and what it gives.

What a program hands around may do anything: odd things cost a look at one end, which is said once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchstone.core.text import Text
from torchstone.watch.judge.judge import Judge
from torchstone.watch.listen.inputs import Batches
from torchstone.watch.listen.outputs import Outputs
from torchstone.watch.measure.call import Batch

_BATCH = Text("the batch", "批次")
_INPUTS = Text("the model's inputs", "模型的输入")
_OUTPUTS = Text("the model's outputs", "模型的输出")


class ModelEnds:
    """Looks at both ends of the model of one watch."""

    def __init__(self, judge: Judge, guard: Callable[[Callable[[], object]], None]) -> None:
        self.batches = Batches()
        self.outputs = Outputs(guard)
        self._judge, self._guard = judge, guard
        self._unseen: set[Text] = set()
        """What cannot be looked at, and was said to be so."""

    def see(self, batch: Any) -> Batch:
        """The batch that the step was called with."""
        try:
            return self.batches.see(batch)
        except Exception as error:
            self._not_seen(_BATCH, f"{type(error).__name__}: {error}")
            return Batch()

    def called(self, args: Any, kwargs: Any) -> None:
        """The model is given something."""
        self._look(_INPUTS, lambda: self.batches.model_called(args, kwargs))
        if self.batches.elsewhere:
            self._not_seen(_INPUTS, self.batches.elsewhere)

    def answered(self, output: Any) -> None:
        """The model has given something."""
        self._look(_OUTPUTS, lambda: self.outputs.answered(output))
        if self.outputs.elsewhere:
            self._not_seen(_OUTPUTS, self.outputs.elsewhere)

    def _look(self, end: Text, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self._not_seen(end, f"{type(error).__name__}: {error}")

    def _not_seen(self, end: Text, why: str) -> None:
        if end not in self._unseen:
            self._unseen.add(end)
            self._guard(lambda: self._judge.note(Text(
                f"not watched: {end.en} ({why})", f"未监控：{end.zh}（{why}）"
            )))  # fmt: skip
