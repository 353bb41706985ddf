"""The verifier over a corpus of right and wrong kernels: who is let in, who is not, at what cost.

python benchmarks/kernels/score.py                 every set
python benchmarks/kernels/score.py wrong           one set
python benchmarks/kernels/score.py right/relu_*    kernels by their file
python benchmarks/kernels/score.py --shared right  torch is loaded once for each implementation

A file opens with lines `# problem:` (a shipped name, or a path from this folder),
`# implementation:` and `# mechanism:`; a wrong one names its `# origin:` too. `held_out` and `blind*` were written by people who had not seen the
gates; the gates were mended after each was scored.
"""

from __future__ import annotations

import contextlib
import fnmatch
import resource
import statistics
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchstone.core.errors import InputError
from torchstone.kernels.candidate import load_candidate
from torchstone.kernels.problem import load_problem
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verifier import preload_for, verify

HERE = Path(__file__).parent
SETS = (
    *("right", "wrong", "held_out", "blind_right", "blind", "blind_3", "blind_4", "blind_5"),
    *("modules/right", "modules/wrong"),
    *("own_size/right", "own_size/wrong", "own_size/aside"),
)
_RIGHT = ("right", "blind_right", "modules/right", "own_size/right")
CPU_LIMIT_S = 20.0


@dataclass(frozen=True)
class Entry:
    """One kernel of the corpus and what its header says of it."""

    path: Path
    problem: str
    implementation: str
    mechanism: str
    origin: str

    @property
    def set(self) -> str:
        return self.path.parent.relative_to(HERE).as_posix()

    @property
    def name(self) -> str:
        return f"{self.set}/{self.path.stem}"


@dataclass(frozen=True)
class Score:
    """What the verifier said of a kernel."""

    entry: Entry
    accepted: bool
    gates: tuple[str, ...]
    """Gates that it failed, or that could not be tried."""
    log: str
    cpu_s: float

    @property
    def good(self) -> bool:
        return self.accepted == (self.entry.set in _RIGHT)


def entries(patterns: Iterable[str] = ()) -> list[Entry]:
    """The kernels of the corpus, all or those that a pattern fits."""
    wanted = [f"{item}/*" if item in SETS else item for item in patterns] or ["*"]
    found = [read(path) for name in SETS for path in sorted((HERE / name).glob("*.py"))]
    return [item for item in found if any(fnmatch.fnmatch(item.name, word) for word in wanted)]


def read(path: Path) -> Entry:
    """The header of a kernel."""
    told: dict[str, str] = {}
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith("# "):
            break
        name, _, value = line[2:].partition(":")
        told[name.strip()] = value.strip()
    for name in ("problem", "implementation", "mechanism"):
        if not told.get(name):
            raise SystemExit(f"{path}: the header names no {name}")
    return Entry(
        path,
        _problem(told["problem"]),
        told["implementation"],
        told["mechanism"],
        told.get("origin", ""),
    )


def _problem(told: str) -> str:
    """The name of a shipped problem, or the path of a file beside this one."""
    return str(HERE / told) if told.endswith(".py") else told


def cpu_s(workshop: Workshop | None = None) -> float:
    """CPU seconds of this process, of its children that have ended, and of a workshop that lives."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    living = workshop.spent.cpu_seconds if workshop is not None else 0.0
    return sum(item.ru_utime + item.ru_stime for item in used) + living


def score(entry: Entry, workshop: Workshop | None = None) -> Score:
    """The verdict on a kernel; a workshop that is handed in saves its start."""
    before = cpu_s(workshop)
    candidate = load_candidate(entry.path, entry.implementation)
    try:
        verdict = verify(load_problem(entry.problem), candidate, workshop=workshop)
    except InputError as error:  # a problem that cannot be used judges nobody
        return Score(entry, False, ("problem",), str(error), cpu_s(workshop) - before)
    gates = tuple(item.gate for item in verdict.results if item.status in ("failed", "gap"))
    return Score(entry, verdict.accepted, gates, verdict.error_log(), cpu_s(workshop) - before)


def scores(chosen: list[Entry], shared: bool = False) -> Iterator[Score]:
    """The verdicts in turn; `shared`: one workshop for all kernels of an implementation."""
    with contextlib.ExitStack() as open_ones:
        known: dict[str, Workshop] = {}
        for entry in chosen:
            kind = entry.implementation
            if shared and kind not in known:
                known[kind] = open_ones.enter_context(Workshop(preload_for(kind)))
                known[kind].start()
            yield score(entry, known.get(kind))


def table(found: list[Score]) -> str:
    """The figures by set and implementation, and every kernel that was judged wrongly."""
    lines = [
        "| set | implementation | kernels | accepted | rejected | CPU s per verdict, median | most |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for name in SETS:
        mine = [item for item in found if item.entry.set == name]
        kinds = sorted({item.entry.implementation for item in mine})
        for kind in (*kinds, ""):
            some = [item for item in mine if kind in ("", item.entry.implementation)]
            if some:
                lines.append(_row(name, kind or "**all**", some))
    wrongly = [item for item in found if not item.good]
    lines += ["", f"Judged wrongly: {len(wrongly)} of {len(found)}."]
    lines += [f"- `{item.entry.name}`: {', '.join(item.gates) or 'accepted'}" for item in wrongly]
    return "\n".join(lines)


def _row(name: str, kind: str, some: list[Score]) -> str:
    accepted = sum(item.accepted for item in some)
    seconds = [item.cpu_s for item in some]
    return (
        f"| {name} | {kind} | {len(some)} | {accepted} | {len(some) - accepted} | "
        f"{statistics.median(seconds):.1f} | {max(seconds):.1f} |"
    )


def main(words: list[str]) -> int:
    found: list[Score] = []
    shared = "--shared" in words
    for item in scores(entries([word for word in words if word != "--shared"]), shared):
        found.append(item)
        mark = "ok   " if item.good else "WRONG"
        said = "accepted" if item.accepted else f"rejected by {', '.join(item.gates)}"
        print(f"{mark} {item.cpu_s:5.1f} s  {item.entry.name}: {said}", flush=True)
        if not item.good:
            print("      " + item.log.replace("\n", "\n      "), flush=True)
    print("\n" + table(found))
    return 0 if all(item.good for item in found) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
