"""The parsed files that stay at hand for questions of others."""

from __future__ import annotations

from collections import OrderedDict

from torchstone.sources.scene import Scene

# characters of source; with its tree each takes some 40 bytes
_ASKED_FOR = 10_000_000  # a file that others asked about is likely to be asked about again
_ONLY_READ = 1_000_000  # of the rest most never are: tests, scripts, models that stand alone


class Kept:
    """Files as scenes, None for those that do not parse; the last that were asked for, and fewer of
    those that were only read."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, Scene | None] = OrderedDict()
        self._read: OrderedDict[str, Scene | None] = OrderedDict()
        self._ever: set[str] = set()
        self._sizes = {id(self._asked): 0, id(self._read): 0}

    def get(self, path: str) -> Scene | None:
        """A file if it is at hand; this is no question of another."""
        return self._asked.get(path) or self._read.get(path)

    def ask(self, path: str) -> bool:
        """Note that another file asks about this one; whether it is at hand."""
        self._ever.add(path)
        if path in self._read:
            scene = self._read.pop(path)
            self._sizes[id(self._read)] -= _size(scene)
            self._put(self._asked, path, scene, _ASKED_FOR)
        elif path in self._asked:
            self._asked.move_to_end(path)
        return path in self._asked

    def put(self, path: str, scene: Scene | None) -> None:
        if path in self._ever:
            self._put(self._asked, path, scene, _ASKED_FOR)
        else:
            self._put(self._read, path, scene, _ONLY_READ)

    def _put(
        self,
        group: OrderedDict[str, Scene | None],
        path: str,
        scene: Scene | None,
        most: int,
    ) -> None:
        key = id(group)
        if path not in group:
            self._sizes[key] += _size(scene)
        group[path] = scene
        while self._sizes[key] > most and len(group) > 1:
            _, gone = group.popitem(last=False)
            self._sizes[key] -= _size(gone)

    def clear(self) -> None:
        self._asked.clear()
        self._read.clear()
        self._sizes = dict.fromkeys(self._sizes, 0)


def _size(scene: Scene | None) -> int:
    return len(scene.source.text) if scene else 0
