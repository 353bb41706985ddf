"""What the kernels of one call did: launches, programs, faults; shared by all implementations."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from torchstone.kernels.harness.calling.launch_records import LaunchRecorder
from torchstone.kernels.messages.facts import Fault, KernelLaunch

MOST_KEPT = 8
MOST_KERNELS = 16


@dataclass(slots=True)
class Launches:
    """Counted and found during one call. `ghost` makes every kernel do nothing."""

    ghost: bool = False
    order: str = "forward"
    side_by_side: bool = False
    """Programs run many at once: at the problem's own sizes, where one after the other takes too long."""
    until_cpu_seconds: float = math.inf
    """The CPU time of this process after which no further programs are begun, where they run side by side."""
    left_out: int = 0
    """Programs that were not begun for that reason."""
    launches: int = 0
    programs: int = 0
    work: int = 0
    """Interpreted operations: a measure of effort that is the same on every machine."""
    faults: list[Fault] = field(default_factory=list)
    kernels: list[KernelLaunch] = field(default_factory=list)
    """Distinct launches of this call as plain data, where a compiler may be asked about them."""
    recorder: LaunchRecorder = field(default_factory=LaunchRecorder)

    def start(self) -> None:
        """Begin a new call."""
        self.launches = self.programs = self.work = self.left_out = 0
        self.faults = []
        self.kernels = []

    def saw(self, kernel: KernelLaunch) -> None:
        """Keep how a kernel was launched; the same launch is kept once."""
        if len(self.kernels) < MOST_KERNELS and kernel not in self.kernels:
            self.kernels.append(kernel)

    def fault(self, kind: str, where: str, elements: int) -> None:
        """Keep a fault; the same one in every program is kept once."""
        known = any((item.kind, item.where) == (kind, where) for item in self.faults)
        if not known and len(self.faults) < MOST_KEPT:
            self.faults.append(Fault(kind, where, elements))

    def permutation(self, count: int) -> list[int]:
        """The order in which programs run."""
        order = list(range(count))
        if self.order == "reversed":
            order.reverse()
        elif self.order == "shuffled":
            random.Random(count).shuffle(order)
        return order
