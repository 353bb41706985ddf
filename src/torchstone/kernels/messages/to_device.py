"""Questions to processes that use a device, or compile for one, each followed by its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchstone.kernels.messages.facts import KernelLaunch, Told
from torchstone.kernels.messages.trees import Tree


@dataclass(frozen=True, slots=True)
class OpenDevice:
    """Load a candidate or the reference on a device; the assembler by its path and version, where one is needed."""

    source: str
    who: str
    device: str
    implementation: str
    path: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class IsAvailable:
    """Can torch use this device?"""

    device: str


@dataclass(frozen=True, slots=True)
class Available:
    """Why it cannot be used, empty where it can, and its compute capability, 0 where it has none."""

    said: str
    arch: int


@dataclass(frozen=True, slots=True)
class TimeOnDevice:
    """Time one call."""

    tree: Tree
    seed: int


@dataclass(frozen=True, slots=True)
class Seconds:
    """By the device's own clock, where it has one."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OpenCompiler:
    """Load Triton's compiler for a device with so much shared memory for one program."""

    path: str
    version: str
    arch: int
    most_shared: int


@dataclass(frozen=True, slots=True)
class LoadKernels:
    """Import the candidate without the interpreter."""

    source: str


@dataclass(frozen=True, slots=True)
class Constants:
    """Numbers and words at the top of the file."""

    globals: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelName:
    """A kernel by its name and line."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class FindMissing:
    """Which of these kernels are not there?"""

    wanted: list[KernelName]


@dataclass(frozen=True, slots=True)
class Missing:
    """Those that are not."""

    missing: list[KernelName]


@dataclass(frozen=True, slots=True)
class TryCall:
    """Call the candidate once with no kernel running; the first `weights` buffers are those of `init`."""

    init: Tree
    tree: Tree
    seed: int
    weights: int


@dataclass(frozen=True, slots=True)
class CompileLaunch:
    """Compile the kernel of a launch."""

    launch: KernelLaunch


@dataclass(frozen=True, slots=True)
class CompiledLaunch:
    """What the code needs, or why there is none."""

    shared: int = 0
    tf32: bool = False
    seconds: float = 0.0
    undescribed: str = ""
    """What it is given that cannot be handed to another process."""
    error: Told | None = None


@dataclass(frozen=True, slots=True)
class Assemble:
    """The other way round: a compiler asks for machine code."""

    arch: int
    fusion: bool


@dataclass(frozen=True, slots=True)
class Assembled:
    """Machine code is beside this message, or the assembler said why there is none."""

    said: str
