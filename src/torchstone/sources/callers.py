"""Whether every call of a function stands inside a region.

Only files that hold one of the names in question are looked at, a bounded number of callers deep,
and a name that is called in too many places is simply not known.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from torchstone.sources.regions import Region, lexical

if TYPE_CHECKING:
    from torchstone.sources.discover import File
    from torchstone.sources.scene import Scene

_DEPTH = 3
_MOST = 60
_FILES = 12
_FEW = 40
_IMPLICIT = ("forward", "__call__")
WORDS = bytes(c if chr(c).isalnum() or c in b"_" or c > 127 else 32 for c in range(256))


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
Load = Callable[[str], "Scene | None"]
Find = Callable[[str, str], "str | None"]


def key_of(scene: Scene, function: ast.AST) -> Key:
    parent = scene.parent(function)
    owner = parent.name if isinstance(parent, ast.ClassDef) else ""
    return Key(scene.path, owner, getattr(function, "name", ""), scene.scope_name(function))


class Callers:
    """Questions about functions, noted in a first pass and answered together."""

    def __init__(self) -> None:
        self._questions: set[Key] = set()
        self._answers: dict[Key, Region | None] = {}
        self.answered = False

    def ask(self, scene: Scene, function: ast.AST) -> None:
        self._questions.add(key_of(scene, function))

    def region(self, scene: Scene, function: ast.AST) -> Region | None:
        return self._answers.get(key_of(scene, function))

    def answer(self, files: Mapping[str, File], load: Load, find: Find) -> None:
        self.answered = True
        known: Sites = {}
        pending = set(self._questions)
        for _ in range(_DEPTH):
            if not pending:
                break
            sites = _sites(pending, files, load, find)
            known.update(sites)
            pending = {
                site.caller
                for rows in sites.values()
                if rows and _open(rows)
                for site in rows
                if site.caller is not None and site.caller not in known
            }
        found: dict[tuple[Key, int], Region | None] = {}
        for key in self._questions:
            self._answers[key] = _common(key, known, _DEPTH, found)


def _sites(keys: set[Key], files: Mapping[str, File], load: Load, find: Find) -> Sites:
    """Every call of the functions; None where there are too many or one cannot be followed."""
    by_word: dict[str, list[Key]] = defaultdict(list)
    for key in keys:
        by_word[key.called_as].append(key)
    wanted = {word.encode() for word in by_word}
    few = len(wanted) <= _FEW  # then a search for each is cheaper than the set of all words
    homes: dict[str, list[str]] = defaultdict(list)
    for path, file in files.items():
        data = file.read()
        if isinstance(data, bytes):
            present = wanted if few else wanted.intersection(data.translate(WORDS).split())
            for needle in present:
                if needle + b"(" in data and re.search(rb"\b" + needle + rb"\(", data):
                    homes[needle.decode()].append(path)
    sites: Sites = {}
    asked: dict[str, list[str]] = defaultdict(list)
    for word, group in by_word.items():
        known = len(homes[word]) <= _FILES  # what is called everywhere is called outside, too
        sites.update((key, [] if known else None) for key in group)
        for path in homes[word] if known else ():
            asked[path].append(word)
    for path, words in asked.items():
        scene = load(path)
        if scene is not None:
            for word in words:
                _collect(scene, word, by_word[word], sites, find)
    return sites


def _open(rows: list[Site]) -> bool:
    """Whether callers of callers can still put every call inside a region."""
    return all(site.caller or site.region.autocast for site in rows) or all(
        site.caller or site.region.without_grad for site in rows
    )


def _collect(scene: Scene, word: str, keys: list[Key], sites: Sites, find: Find) -> None:
    """Add the calls that stand in one file."""
    made = None
    for key in keys:
        rows = sites[key]
        if rows is None:
            continue
        if key.owner and key.name in _IMPLICIT:
            made = _instance_calls(scene, word) if made is None else made
            calls = made
        elif key.owner:
            calls = [c for c in scene.calls.get(word, ()) if isinstance(c.func, ast.Attribute)]
        elif _same(scene, key, find):
            calls = [c for c in scene.calls.get(word, ()) if not scene.method(c)]
            if _escapes(scene, word):
                sites[key] = None
                continue
        else:
            calls = [c for c in scene.calls.get(word, ()) if _through_module(scene, c, key, find)]
        if len(rows) + len(calls) > _MOST:
            sites[key] = None
            continue
        for call in calls:
            region, function = lexical(scene, call)
            rows.append(Site(region, key_of(scene, function) if function is not None else None))


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
