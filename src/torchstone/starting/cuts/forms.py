"""What a made value is, and the value itself."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Literal

BATCH = 4
"""Two halves of two samples: a batch of one cannot be normalised."""
ROWS = 128
"""Of what a function gives as a whole: more than one batch of usual size, and quick to make."""
SAMPLES = 512
"""Of a dataset: more than the usual batch, which the last one may have to fill."""
_SEED = 1000003


@dataclass(frozen=True, slots=True)
class Form:
    """One value; of a dataset, that of one sample."""

    what: Literal["tensor", "array", "number", "text", "state"] = "tensor"
    dtype: str = "float32"
    shape: tuple[int, ...] = ()
    high: int = 0
    """Whole numbers are below it."""
    value: str = ""
    """A number or a text itself."""

    def say(self) -> str:
        if self.what in ("number", "text"):
            return self.value
        if self.what == "state":
            return "the state that modules have"
        sides = "×".join(map(str, self.shape)) or "one number"
        return f"{sides}, {self.dtype}" + (f" below {self.high}" if self.high else "")


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of what is given. Steps of its place: `(0` in a tuple, `[0` in a list, `{key` in a
    dictionary, `.name` an attribute, `@` in the batches of a loader."""

    place: tuple[str, ...]
    name: str = ""
    """As the code calls it."""
    form: Form | None = None


def make_value(form: Form, seed: int) -> Any:
    """The same for the same seed."""
    if form.what == "text":
        return form.value
    if form.what == "number":
        return float(form.value) if "." in form.value or "e" in form.value else int(form.value)
    if form.what == "state":
        checkpoints = importlib.import_module("torchstone.starting.replacements.checkpoints")
        checkpoints.keep_own_state()
        return checkpoints.MadeState()
    numpy = importlib.import_module("numpy")
    drawn = numpy.random.default_rng(_SEED + seed)
    if form.high:
        made = drawn.integers(0, form.high, form.shape).astype(form.dtype)
    else:  # between 0 and 1: an image, a probability, a measured value
        made = drawn.random(form.shape).astype(form.dtype)
    made = numpy.asarray(made)
    return made if form.what == "array" else importlib.import_module("torch").from_numpy(made)
