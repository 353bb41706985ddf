"""Whether every call of a function stands inside a region.

Only files that call the name in question are looked at, a bounded number of callers deep, and a name that
is called in too many places is simply not known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from torchstone.sources.regions import Region, lexical
from torchstone.sources.scene import Scene
from torchstone.sources.targets import target_of

_DEPTH = 3
_MOST = 60
_FILES = 12
_IMPLICIT = ("forward", "__call__")


class Key(NamedTuple):
    """One function of the project."""

    path: str
    owner: str
    """The class, for a method."""
    name: str
    scope: str

    @property
    def called_as(self) -> str:
        """The word that stands where it is called: a module's forward runs through its class."""
        return self.owner if self.owner and self.name in _IMPLICIT else self.name


class Site(NamedTuple):
    """One call: the region it stands in, and the function around it."""

    region: Region
    caller: Key | None


Sites = dict[Key, list[Site] | None]
Homes = Callable[[str], list[str]]
Load = Callable[[str], Scene | None]
Find = Callable[[str, str], str | None]


def key_of(scene: Scene, function: ast.AST) -> Key:
    parent = scene.parent(function)
    owner = parent.name if isinstance(parent, ast.ClassDef) else ""
    return Key(scene.path, owner, getattr(function, "name", ""), scene.scope_name(function))


class Callers:
    """The calls of functions, looked up when a rule asks and then kept."""

    def __init__(self, homes: Homes, load: Load, find: Find) -> None:
        self._homes, self._load, self._find = homes, load, find
        self._sites: Sites = {}
        self._answers: dict[Key, Region | None] = {}

    def region(self, scene: Scene, function: ast.AST) -> Region | None:
        """The region that every call of a function stands in; None when that is not known."""
        key = key_of(scene, function)
        if key not in self._answers:
            self._look_up(key)
            self._answers[key] = _common(key, self._sites, _DEPTH, {})
        return self._answers[key]

    def _look_up(self, key: Key) -> None:
        """Find the calls of a function, and of its callers as far as they can have a say."""
        pending = {key}
        for _ in range(_DEPTH):
            for item in pending - self._sites.keys():
                self._sites[item] = self._calls_of(item)
            pending = {
                site.caller
                for item in pending
                if (rows := self._sites[item]) and _open(rows)
                for site in rows
                if site.caller is not None
            }

    def _calls_of(self, key: Key) -> list[Site] | None:
        """Every call of a function; None where there are too many or one cannot be followed."""
        homes = self._homes(key.called_as)
        if len(homes) > _FILES:  # what is called everywhere is called outside, too
            return None
        rows: list[Site] = []
        for path in homes:
            scene = self._load(path)
            found = _calls_in(scene, key, self._find) if scene is not None else []
            if found is None or len(rows) + len(found) > _MOST:
                return None
            for call in found:
                assert scene is not None
                target = target_of(scene, call) if key.owner else None
                if target is not None and key_of(*target) != key:
                    continue  # the object's class has a method of its own
                region, function = lexical(scene, call)
                rows.append(Site(region, key_of(scene, function) if function is not None else None))
        return rows


def _open(rows: list[Site]) -> bool:
    """Whether callers of callers can still put every call inside a region."""
    return all(site.caller or site.region.autocast for site in rows) or all(
        site.caller or site.region.without_grad for site in rows
    )


def _calls_in(scene: Scene, key: Key, find: Find) -> list[ast.Call] | None:
    """The calls of a function in one file; None when it is handed on there as a value."""
    word = key.called_as
    if key.owner and key.name in _IMPLICIT:
        return _instance_calls(scene, word)
    calls = scene.calls.get(word, [])
    if key.owner:
        return [call for call in calls if isinstance(call.func, ast.Attribute)]
    if not _same(scene, key, find):
        return [call for call in calls if _through_module(scene, call, key, find)]
    return None if _escapes(scene, word) else [call for call in calls if not scene.method(call)]


def _same(scene: Scene, key: Key, find: Find) -> bool:
    """Whether the bare name means the function in question in this file."""
    if scene.path == key.path:
        return True
    target = scene.imports.aliases.get(key.name, "")
    module, _, last = target.rpartition(".")
    return last == key.name and _is_home(find(module, scene.path), key)


def _through_module(scene: Scene, call: ast.Call, key: Key, find: Find) -> bool:
    """`helpers.loss(x)` after `import helpers`."""
    module, _, last = scene.qualified(call.func).rpartition(".")
    return bool(module) and last == key.name and _is_home(find(module, scene.path), key)


def _is_home(path: str | None, key: Key) -> bool:
    return path is not None and (path == key.path or path.endswith("/" + key.path.lstrip("./")))


def _instance_calls(scene: Scene, class_name: str) -> list[ast.Call]:
    """Calls of whatever was bound to `Class(...)` in a file: `net = Net()` … `net(x)`."""
    bound: set[str] = set()
    for made in scene.calls.get(class_name, ()):
        statement = scene.statement(made)
        if isinstance(statement, ast.Assign):
            bound.update(scene.dotted(target) for target in statement.targets)
    bound.discard("")
    return (
        [call for call in scene.all(ast.Call) if scene.dotted(call.func) in bound] if bound else []
    )


def _escapes(scene: Scene, name: str) -> bool:
    """Whether a function is handed on as a value, so that not every call of it can be seen."""
    handed: set[str] | None = scene.cache.get("handed on")
    if handed is None:
        parents = scene.tree.parents
        handed = {
            node.id
            for node in scene.all(ast.Name)
            if isinstance(node.ctx, ast.Load)
            and not (isinstance(up := parents.get(node), ast.Call) and up.func is node)
        }
        scene.cache["handed on"] = handed
    return name in handed


def _common(
    key: Key, known: Sites, depth: int, found: dict[tuple[Key, int], Region | None]
) -> Region | None:
    """What holds at every call, callers of callers included; each pair is worked out once."""
    if (key, depth) not in found:
        found[key, depth] = _shared(key, known, depth, found)
    return found[key, depth]


def _shared(
    key: Key, known: Sites, depth: int, found: dict[tuple[Key, int], Region | None]
) -> Region | None:
    rows = known.get(key)
    if not rows or not depth:
        return None
    regions = [_with_outer(site, known, depth - 1, found) for site in rows]
    casts = [region.autocast for region in regions]
    cast = casts[0] if all(casts) else None
    if cast is not None:
        same = all((c.device, c.dtype) == (cast.device, cast.dtype) for c in casts if c)
        cast = replace(cast, certain=all(c.certain for c in casts if c), node=None)
        cast = cast if same else replace(cast, device="", dtype="")
    return Region(
        autocast=cast,
        no_grad=all(region.without_grad for region in regions),
        inference_mode=all(region.inference_mode for region in regions),
        via=key.scope,
    )


def _with_outer(
    site: Site, known: Sites, depth: int, found: dict[tuple[Key, int], Region | None]
) -> Region:
    region = site.region
    if site.caller is None or (region.autocast is not None and region.without_grad):
        return region
    outer = _common(site.caller, known, depth, found)
    if outer is None:
        return region
    return replace(
        region,
        autocast=region.autocast or (None if region.autocast_off else outer.autocast),
        no_grad=region.no_grad or outer.no_grad,
        inference_mode=region.inference_mode or outer.inference_mode,
    )
