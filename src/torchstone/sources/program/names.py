"""Dotted names across the files of a project."""

from __future__ import annotations

from torchstone.sources.program.outline import Outline
from torchstone.sources.project import Project


class Names:
    """Finds what a dotted name stands for; each question is answered once."""

    def __init__(
        self, project: Project, files: dict[str, str], outlines: dict[str, Outline]
    ) -> None:
        self._project, self._outlines = project, outlines
        self._files = files
        """Name in reports of every file, by its path in the program."""
        self._by_place = {project.path_named(name): path for path, name in files.items()}
        self._known: dict[tuple[str, str], tuple[str, str] | None] = {}

    def definition(self, full: str, outline: Outline) -> tuple[str, str] | None:
        """The file and the scope in it that a name means as seen from a file; the scope of a module
        is empty; None for what is not of the project."""
        key = (full, outline.path)
        if key not in self._known:
            self._known[key] = self._find(full, outline)
        return self._known[key]

    def _find(self, full: str, outline: Outline) -> tuple[str, str] | None:
        importer = self._files[outline.path]
        name = self._project.resolve(full, importer)
        own = outline.module
        if own and name.startswith(f"{own}."):
            scope = name.removeprefix(f"{own}.")
            if self._has(outline.path, scope):
                return outline.path, scope
        parts = name.split(".")
        for cut in range(len(parts), 0, -1):
            place = self._project.find(".".join(parts[:cut]), importer)
            path = self._by_place.get(place) if place else None
            if path is not None:
                return path, ".".join(parts[cut:])
        return None

    def _has(self, path: str, scope: str) -> bool:
        outline = self._outlines[path]
        return scope in outline.functions or scope in outline.classes
