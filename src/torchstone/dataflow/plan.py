"""A migration plan: which call of the pipeline runs on which device, as data that survives JSON.

The placement writes it, the migrator reads it; nothing else stands between the two.

A call is named by its *context*: the user's functions that lead to it, outermost first, and the
called function last, joined by `/`:

    image_pipeline/cv2.resize                    one device for all calls of resize in the function
    image_pipeline/cv2.resize@12                 only the call at line 12
    ImageDataset.__getitem__/ImageDataset.preprocess/cv2.cvtColor

Functions of the user go by `__qualname__`, others by module and name. Library code between two
functions of the user leaves no part in the path, and neither do the functions around the traced
block: what traces a pipeline is rarely what runs it. `#n` (the n-th call) may follow a part and is
ignored when contexts are compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.text import Text

SCHEMA = "torchstone/flow-plan/1"
SEPARATOR = "/"
_LARGEST = 64 * 2**20  # a plan of 10,000 operators has 5 MiB
_NUMBER = re.compile(r"#\d+(?=/|@|$)")
_DEVICE = re.compile(r"^(cpu|(cuda|mps|xpu|npu|[a-z][a-z0-9_]*)(:\d+)?)$")


def context_key(path: Sequence[str], function: str, line: int = 0) -> str:
    """The context of a call; with a line, of that one call."""
    key = SEPARATOR.join((*path, function))
    return f"{key}@{line}" if line else key


def normalize_context_key(key: str) -> str:
    """The context without the numbers of calls."""
    return _NUMBER.sub("", key)


@dataclass(frozen=True, slots=True)
class Match:
    """The entry of a plan that a call was matched with."""

    key: str
    device: str
    is_whole: bool
    """All of the entry's path leads to the call; False where only an end of it, or the name, does."""


@dataclass(frozen=True, slots=True)
class _Entry:
    key: str
    device: str
    path: tuple[str, ...]
    line: int


class ContextIndex:
    """The entries of a plan by function, for calls to be matched with.

    A call is matched with the entry whose path equals its own, else with the entry that shares the
    longest end of the path with it, of these with the one that has most functions in the same order,
    else by the name of the function alone. Frames above the traced
    block are in no entry, and a program may be called from elsewhere than it was when it was traced.
    """

    def __init__(self, devices: Mapping[str, str]) -> None:
        self._entries: dict[str, list[_Entry]] = {}
        for key, device in devices.items():
            *path, last = normalize_context_key(key).split(SEPARATOR)
            function, _, line = last.partition("@")
            entry = _Entry(key, device, tuple(path), int(line) if line.isdecimal() else 0)
            self._entries.setdefault(function, []).append(entry)

    def find(self, path: Sequence[str], function: str, line: int = 0) -> Match | None:
        """None where the plan has no entry for the function, or where the entries that fit equally
        well name different devices."""
        bare = function.rpartition(".")[2]
        listed = self._entries.get(function) or self._entries.get(bare, [])
        names = tuple(map(normalize_context_key, path))
        best: list[_Entry] = []
        best_rank = (-1, False, 0, False)
        for entry in listed:
            shared = _common_end(entry.path, names)
            at_line = entry.line == line and line > 0
            if entry.line and not at_line:
                rank = (0, False, 0, False)  # another line of the function: only its name is shared
            else:
                is_exact = shared == max(len(entry.path), len(names))
                rank = (shared, is_exact, _in_order(entry.path, names), at_line)
            if rank > best_rank:
                best, best_rank = [], rank
            if rank == best_rank:
                best.append(entry)
        if not best or len({entry.device for entry in best}) > 1:
            return None
        first = best[0]
        is_whole = best_rank[0] == len(first.path) and (not first.line or first.line == line)
        return Match(first.key, first.device, is_whole)


def _common_end(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many names two paths share, counted from their ends."""
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count


def _in_order(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many names of one are met, in their order from the end, in the other: generators that wait
    for each other stand between two functions in one run and not in the other."""
    left = list(other)
    count = 0
    for name in reversed(one):
        while left and left[-1] != name:
            left.pop()
        if not left:
            break
        left.pop()
        count += 1
    return count


@dataclass(frozen=True, slots=True)
class PlannedOperator:
    """One operator of the pipeline (all its calls from one place) and where it goes."""

    context: str
    function: str
    """Module and name, such as `cv2.resize`."""
    device: str
    file: str = ""
    line: int = 0
    calls: int = 1
    cpu_seconds: float = 0.0
    """For all its calls, by the median of the warm ones."""
    device_seconds: float | None = None
    """For all its calls, on the device, at the most; None where it cannot run there."""
    device_seconds_low: float | None = None
    """At the least."""
    launches: int = 0
    """Kernels that one call of it launches on the device."""
    bytes_in: int = 0
    bytes_out: int = 0
    keep_on_device: bool = False
    """Its result is only used on the device: the migrator need not bring it back."""
    reason: Text = Text("", "")
    """Why it goes there, or why it stays."""
    flips_at: float | None = None
    """Speed-up over the CPU at which the decision would be the other one; None where none would."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds for the traced run under one placement."""

    name: str
    """`plan`, `optimum` (where the plan is another one), `all_cpu`, `all_device`."""
    seconds: float
    """What is planned with: the slow end of device times."""
    cpu_seconds: float = 0.0
    device_seconds: float = 0.0
    transfer_seconds: float = 0.0
    transfer_bytes: int = 0
    transfers: int = 0
    low: float = 0.0
    high: float = 0.0
    """The least and the most that is expected."""


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """Everything that `PipelineMigrator.from_plan` needs, and what a person wants to know of it."""

    context_device_map: Mapping[str, str]
    """Context → device, for every operator that moves."""
    default_device: str = "cpu"
    """Where everything else runs."""
    devices: tuple[str, ...] = ("cpu",)
    partition_device_map: Mapping[str, str] = field(default_factory=dict)
    """Partition id (as text) → device."""
    node_device_map: Mapping[str, str] = field(default_factory=dict)
    """Node id of the (coarsened) graph (as text) → device."""
    operators: tuple[PlannedOperator, ...] = ()
    estimates: tuple[Estimate, ...] = ()
    goal: str = "latency"
    """`latency` (one call after the other), or `throughput` (CPU, bus and device overlap)."""
    bound_seconds: float | None = None
    """No placement is faster than this; equal to the estimate where the plan is optimal."""
    assumptions: tuple[Text, ...] = ()
    program: str = ""
    """What was traced: a script, or the functions."""
    program_hash: str = ""
    """Of the functions' source: a plan for another program is refused."""
    gpu_count: int = 0
    batch: int = 1
    workers: int = 0
    consumer: str = "cpu"
    """Where the results are needed: `cpu`, or `device`."""
    allow_rounding: bool = False
    """Calls that are only within a tolerance of the original move, too."""

    def device_for(self, path: Sequence[str], function: str, line: int = 0) -> str:
        found = ContextIndex(self.context_device_map).find(path, function, line)
        return self.default_device if found is None else found.device

    def to_data(self) -> dict[str, Any]:
        """A mapping for `json.dump`, with every key present."""
        whole: dict[str, Any] = {
            "context_device_map": {},
            "default_device": "cpu",
            "devices": ["cpu"],
            "partition_device_map": {},
            "node_device_map": {},
            "operators": [],
            "estimates": [],
            "gpu_count": 0,
        }
        return {"schema": SCHEMA, **whole, **to_data(self)}


def plan_from_data(data: object, where: str = "migration plan") -> MigrationPlan:
    """The plan that `to_data` wrote, checked. A bare `{"context_device_map": …}` is a plan too."""
    if isinstance(data, MigrationPlan):
        return data
    if not isinstance(data, Mapping):
        raise _wrong(where, type(data).__name__, Text("a mapping", "映射"))
    schema = data.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise _wrong(where, f"schema {schema!r}", Text(f"schema {SCHEMA!r}", f"schema {SCHEMA!r}"))
    if "context_device_map" not in data:
        keys = ", ".join(sorted(map(str, data))[:5]) or "an empty mapping"
        raise _wrong(where, keys, Text("the key context_device_map", "键 context_device_map"))
    plan = from_data(MigrationPlan, {k: v for k, v in data.items() if k != "schema"}, where)
    for key, device in plan.context_device_map.items():
        if not key or not _DEVICE.match(device):
            expected = Text("a device such as cpu or cuda:0", "设备名，如 cpu 或 cuda:0")
            raise _wrong(f"{where}: {key or '(empty context)'}", repr(device), expected)
    return plan


def load_plan(path: Path | str) -> MigrationPlan:
    """The plan in a file."""
    try:
        data = json.loads(read_regular(path, _LARGEST))
    except OSError as error:
        given = error.strerror or type(error).__name__
        raise _wrong(str(path), given, Text("a readable plan", "可读取的迁移计划")) from None
    except (ValueError, RecursionError) as error:
        raise _wrong(str(path), f"no JSON ({error})", Text("a plan", "迁移计划")) from None
    return plan_from_data(data, str(path))


def _wrong(where: str, given: str, expected: Text) -> InputError:
    todo = Text(
        "make the plan anew with `torchstone flow plan`", "请用 `torchstone flow plan` 重新生成计划"
    )
    return InputError(where, given, expected, todo)
