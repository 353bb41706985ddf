"""An entry is proven on this machine before its first use, and the proof is kept by versions.

cv2 differs from itself between versions, with and without IPP, and between processors; so does
torch between devices. What was proven elsewhere says little here.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchstone.core.errors import TorchstoneError
from torchstone.core.files import cache_folder, read_regular, write_atomically
from torchstone.dataflow.migration.proof.comparison import difference, largest_error
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal

PROBES = 6
"""Random calls per case: the equivalence bench has hundreds; here a wrong build is to be found."""
DRAWS = 400
"""Random calls that are drawn to find those of one case; only those of the case are computed."""
_FILE_LIMIT = 4 << 20

Compute = Callable[[Call], Any]


@dataclass(frozen=True, slots=True)
class Certificate:
    """What the probe of one case on one device found."""

    passed: bool
    calls: int
    largest_error: float
    reason: str = ""


class Certificates:
    """The certificates of this process and of earlier ones."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = (folder or cache_folder() / "flow") / "certificates.json"
        self._known: dict[str, Certificate] | None = None
        self.seconds = 0.0
        """Spent in proofs, which are made once and kept."""

    def find(self, spec: OpSpec, case: Case, device: torch.device) -> Certificate | None:
        if self._known is None:
            self._known = _read(self._path)
        return self._known.get(certificate_key(spec, case, device))

    def prove(
        self, spec: OpSpec, case: Case, device: torch.device, original: Compute, moved: Compute
    ) -> Certificate:
        """Compare both sides on random calls of the case, and keep what came out."""
        start = time.perf_counter()
        made = probe(spec, case, original, moved)
        key = certificate_key(spec, case, device)
        self._known = {**_read(self._path), **(self._known or {}), key: made}
        try:
            text = json.dumps({name: asdict(item) for name, item in self._known.items()}, indent=1)
            write_atomically(self._path, text + "\n")
        except (TorchstoneError, OSError):
            pass  # a cache that cannot be written costs a probe per process, nothing else
        self.seconds += time.perf_counter() - start
        return made


def probe(spec: OpSpec, case: Case, original: Compute, moved: Compute) -> Certificate:
    """The random numbers are its own: the program's generators are not touched."""
    rng = np.random.default_rng(zlib.crc32(f"{spec.name} {case.name}".encode()))
    done, worst = 0, 0.0
    for _ in range(DRAWS):
        call = spec.sample(rng)
        verdict = spec.judge(spec.bind(call.args, call.kwargs))
        if isinstance(verdict, Refusal) or verdict.name != case.name:
            continue
        try:
            with np.errstate(all="ignore"):  # the program did not ask for these calls
                expected, got = original(call), moved(call)
        except Exception as error:  # another version of the library, a device that lacks a kernel
            text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            return Certificate(False, done + 1, worst, text)
        worst = max(worst, largest_error(expected, got))
        if wrong := difference(expected, got, verdict):
            return Certificate(False, done + 1, worst, wrong)
        done += 1
        if done == PROBES:
            break
    if not done:
        return Certificate(False, 0, 0.0, f"no sample covers the case {case.name!r}")
    return Certificate(True, done, worst)


def certificate_key(spec: OpSpec, case: Case, device: torch.device) -> str:
    parts = (spec.name, case.name, _device_name(device), _versions(spec.name), _source(spec))
    return " | ".join(parts)


@functools.cache
def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return device.type if device.type != "cpu" else f"cpu {_processor()}"


@functools.cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@functools.cache
def _versions(name: str) -> str:
    library = name.split(".")[0]
    module = sys.modules.get(library)
    version = getattr(module, "__version__", "?")
    if library == "cv2" and hasattr(module, "ipp"):
        version += " ipp" if module.ipp.useIPP() else " no ipp"  # type: ignore[union-attr]
    return f"{library} {version}, torch {torch.__version__}, numpy {np.__version__}"


@functools.cache
def _sources_of(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _source(spec: OpSpec) -> str:
    """Of the entry's folder: helpers count too."""
    return _sources_of(Path(spec.case.__code__.co_filename).parent)


def _read(path: Path) -> dict[str, Certificate]:
    """What is readable of it; a broken cache is an empty one."""
    try:
        content = json.loads(read_regular(path, _FILE_LIMIT))
    except (OSError, ValueError):
        return {}
    found: dict[str, Certificate] = {}
    for key, item in content.items() if isinstance(content, dict) else ():
        try:
            found[key] = Certificate(
                bool(item["passed"]), int(item["calls"]), float(item["largest_error"]), str(item["reason"])
            )  # fmt: skip
        except (KeyError, TypeError, ValueError):
            continue
    return found
