"""Where a line stands in the program: who calls it, whether it runs in every step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchstone.conductor.project.gathered import relative
from torchstone.sources.discover import discover
from torchstone.sources.program.outline import Key
from torchstone.sources.program.program import Program, read_program


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a line stands in the program."""

    scope: str = ""
    callers: int = 0
    """Places that call the function it stands in."""
    every_step: bool = False
    """It is part of a training step."""
    from_entry: bool = False
    """A script that a person starts reaches it."""
    in_tests: bool = False


@dataclass(frozen=True, slots=True)
class ReachMap:
    """The program of a project, asked by line."""

    program: Program
    from_entry: frozenset[Key] = frozenset()

    def of(self, path: str, line: int) -> Reach:
        function = self.program.function_at(path, line)
        key = function.key if function is not None else Key(path, "")
        return Reach(
            scope=key.scope,
            callers=self.program.callers_of(key) if key.scope else 0,
            every_step=self.program.runs_in_every_step(path, line),
            from_entry=key in self.from_entry,
            in_tests=self.program.is_test(path),
        )


def map_reach(root: Path, entry_files: tuple[str, ...]) -> ReachMap:
    """One pass over the project."""
    files = {relative(file.path, root): file for file in discover([str(root)])[0]}
    program = read_program(files)
    return ReachMap(program, program.reached_from(entry_files))
