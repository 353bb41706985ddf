"""How much memory a verdict may use: half of what is free, or what the user says."""

from __future__ import annotations

import re
from pathlib import Path

from torchstone.core.errors import UsageError
from torchstone.core.text import Text

_SHARE = 2
"""Half of what is free: the other half is for whatever else runs on the machine."""
_UNKNOWN_BYTES = 4 << 30
"""Where the system does not say what is free: what the smallest machines in use have to spare."""
_LEAST_BYTES = 1 << 30
"""torch alone maps most of this."""
_UNITS = {"": 1 << 30, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([mgt]?)(?:i?b)?\s*", re.IGNORECASE)
_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def memory_budget(given: str = "") -> int:
    """Bytes for one verdict; `given` is what the user wrote, in GiB where no unit is named."""
    if not given:
        return max(_free_bytes() // _SHARE, _LEAST_BYTES)
    found = _SIZE.fullmatch(given)
    size = int(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if size < _LEAST_BYTES:
        raise UsageError(
            "kernel verify: --memory",
            repr(given),
            Text("a size of 1 GiB or more, such as 12G", "不小于 1 GiB 的大小，例如 12G"),
            Text("leave it out to use half of the free memory", "省略时使用空闲内存的一半"),
        )
    return size


def _free_bytes() -> int:
    """What is free on the machine, or below the limit of the control group, whichever is less."""
    rows = _read("/proc/meminfo").splitlines()
    known = [int(row.split()[1]) << 10 for row in rows if row.startswith("MemAvailable:")]
    for limit, used in _CGROUPS:
        most, now = _read(limit).strip(), _read(used).strip()
        if most.isdigit() and now.isdigit():
            known.append(max(int(most) - int(now), 0))
    return min(known, default=_UNKNOWN_BYTES)


def _read(name: str) -> str:
    try:
        return Path(name).read_text()
    except OSError:
        return ""
