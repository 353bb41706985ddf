"""What an accelerator can do at best: memory, bandwidths and dense peaks, each with its source.

The figures are data (`devices.toml` beside this file). A user adds devices with a file of the same
form (`load_devices`), or with a table of it in a configuration (`read_devices`).
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any

from torchstone.core.errors import ConfigError
from torchstone.core.files import read_regular
from torchstone.core.options import unknown
from torchstone.core.text import Text

FORMATS = ("float64", "float32", "tf32", "bfloat16", "float16", "float8", "int8")
"""Number formats that a matrix unit may have a peak for."""

_SHORT = {"fp64": "float64", "double": "float64", "fp32": "float32", "float": "float32"}
_SHORT |= {"bf16": "bfloat16", "fp16": "float16", "half": "float16", "fp8": "float8"}
# what computes a format that the device has no unit for
_STAND_INS = {
    "float8": ("bfloat16", "float16", "float32"),
    "tf32": ("float32",),
    "bfloat16": ("float32",),
    "float16": ("float32",),
    "int8": ("float32",),
}
_OTHERS = {"complex64": "float32", "complex128": "float64", "complex32": "float16"}
_BYTES = 1 << 20
_TODO = Text(
    "compare with the table of devices that comes with torchstone (devices.toml)",
    "请对照 torchstone 自带的设备表（devices.toml）",
)


@dataclass(frozen=True, slots=True)
class Peak:
    """The rate at which a device multiplies matrices of one number format."""

    flops_per_second: float
    format: str
    """The format whose unit does the work; another one than asked for when it stands in."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. Rates are the maker's; interconnects are in one direction."""

    name: str
    title: str
    memory_bytes: int
    memory_bytes_per_second: float
    vector_flops_per_second: float
    """float32 outside the matrix units."""
    source: str
    """Title of the datasheet or whitepaper."""
    peaks: Mapping[str, float] = field(default_factory=dict)
    """Dense FLOP/s of the matrix units by number format."""
    aliases: tuple[str, ...] = ()
    link_bytes_per_second: float | None = None
    """To other devices of the same node; None where the maker names none."""
    network_bytes_per_second: float | None = None
    """To other nodes."""
    node_devices: int = 1
    unverified: tuple[str, ...] = ()
    """Keys whose figure was not found in the source itself."""

    def peak(self, dtype: str) -> Peak:
        """The peak for a number format, or that of the unit which stands in for it."""
        wanted = format_of(dtype)
        for name in (wanted, *_STAND_INS.get(wanted, ())):
            if name in self.peaks:
                return Peak(self.peaks[name], name)
        raise unknown(f"device {self.name}", dtype, list(self.peaks))

    def peak_flops(self, dtype: str) -> float:
        """Dense FLOP/s for a number format such as `bfloat16`."""
        return self.peak(dtype).flops_per_second

    def ridge(self, dtype: str) -> float:
        """FLOP per byte above which the matrix units and not the memory are the limit."""
        return self.peak_flops(dtype) / self.memory_bytes_per_second

    def cited(self) -> Text:
        """Where the figures come from, and which of them were not found there."""
        if not self.unverified:
            return Text(self.source, self.source)
        keys = ", ".join(self.unverified)
        return Text(
            f"{self.source}; not found there: {keys}", f"{self.source}；未能在其中查到：{keys}"
        )


def format_of(dtype: str) -> str:
    """The peak that a number format is looked up under: `torch.float8_e4m3fn` → `float8`."""
    name = str(dtype).removeprefix("torch.").lower()
    name = _SHORT.get(name, _OTHERS.get(name, name))
    name = "float8" if name.startswith("float8") else name
    if name not in FORMATS:
        raise unknown("device", str(dtype), [*FORMATS, *_SHORT])
    return name


@functools.cache
def known_devices() -> Mapping[str, Device]:
    """The devices that come with torchstone, by name."""
    path = Path(__file__).with_name("devices.toml")
    return read_devices(tomllib.loads(path.read_text("utf-8")), path.name)


def device(name: str, more: Mapping[str, Device] | None = None) -> Device:
    """The device of a name or alias; the user's own (`more`) come before those that are known."""
    wanted = _plain(name)
    for table in (more or {}, known_devices()):
        for item in table.values():
            if wanted in {_plain(item.name), *map(_plain, item.aliases)}:
                return item
    names = [*(more or {}), *known_devices()]
    raise unknown(
        "device",
        name,
        names,
        more=Text(f"known: {', '.join(names)}", f"可用：{', '.join(names)}"),
    )


def load_devices(path: Path | str) -> dict[str, Device]:
    """The devices of a user's TOML file, which has the form of `devices.toml`."""
    expected = Text("a TOML file with a table for each device", "每个设备各有一个表的 TOML 文件")
    try:
        data = tomllib.loads(read_regular(path, _BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error), expected, _TODO) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(str(path), str(error), expected, _TODO) from None
    return read_devices(data, str(path))


def read_devices(tables: Mapping[str, Any], where: str) -> dict[str, Device]:
    """The devices of a table of tables, such as `[tool.torchstone.devices]`."""
    found: dict[str, Device] = {}
    taken: dict[str, str] = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            expected = Text("a table for each device", "每个设备一个表")
            raise ConfigError(f"{where} [{name}]", repr(table), expected, _TODO)
        item = _device(name, table, f"{where} [{name}]")
        for alias in {_plain(item.name), *map(_plain, item.aliases)}:
            if alias in taken:
                raise ConfigError(
                    f"{where} [{name}]",
                    repr(alias),
                    Text(
                        f"a name that [{taken[alias]}] does not have",
                        f"[{taken[alias]}] 未用的名称",
                    ),
                    Text("rename one of the two", "请改掉其中一个"),
                )
            taken[alias] = name
        found[name] = item
    return found


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _device(name: str, table: Mapping[str, Any], where: str) -> Device:
    readers: dict[str, Callable[[Any, str], Any]] = {
        "title": _words,
        "source": _words,
        "aliases": _list,
        "unverified": _list,
        "memory_bytes": _whole,
        "node_devices": _whole,
        "memory_bytes_per_second": _positive,
        "vector_flops_per_second": _positive,
        "link_bytes_per_second": _positive,
        "network_bytes_per_second": _positive,
        "peaks": _peaks,
    }
    for key in table:
        if key not in readers:
            raise unknown(where, key, list(readers), ConfigError)
    optional = {item.name for item in fields(Device) if item.default is not MISSING}
    for key in sorted(set(readers) - optional - set(table)):
        raise ConfigError(where, f"no {key}", Text(f"the key {key}", f"键 {key}"), _TODO)
    return Device(
        name=name, **{key: readers[key](value, f"{where}.{key}") for key, value in table.items()}
    )


def _words(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(where, repr(value), Text("words", "文字"), _TODO)
    return value


def _list(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(where, repr(value), Text("a list of words", "文字列表"), _TODO)
    return tuple(value)


def _positive(value: Any, where: str) -> float:
    wrong_kind = isinstance(value, bool) or not isinstance(value, (int, float))
    if wrong_kind or not math.isfinite(value) or value <= 0:
        expected = Text("a number greater than 0", "大于 0 的数")
        raise ConfigError(where, repr(value), expected, _TODO)
    return float(value)


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        expected = Text("a whole number greater than 0", "大于 0 的整数")
        raise ConfigError(where, repr(value), expected, _TODO)
    return value


def _peaks(value: Any, where: str) -> Mapping[str, float]:
    if not isinstance(value, dict) or not value:
        expected = Text("FLOP/s by number format", "按数值格式给出的 FLOP/s")
        raise ConfigError(where, repr(value), expected, _TODO)
    for key in value:
        if key not in FORMATS:
            raise unknown(where, key, list(FORMATS), ConfigError)
    if "float32" not in value:  # what every other format falls back to
        raise ConfigError(where, "no float32", Text("the key float32", "键 float32"), _TODO)
    return {key: _positive(item, f"{where}.{key}") for key, item in value.items()}
