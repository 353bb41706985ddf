"""Attributes that nobody defines, beside one that differs from them by a slip of the fingers."""

from __future__ import annotations

import io
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from torchstone.lint.facts.members import outline_of
from torchstone.lint.knowledge.torch_names import names_of, words_of_torch
from torchstone.sources.files import Files

_LEAST = 5  # shorter names are too often near to each other by chance
_OPTION = re.compile(rb"[\"']--([\w-]+)[\"']")
_BUILT_IN = frozenset(
    name
    for kind in (str, bytes, list, dict, set, int, float, io.TextIOWrapper, PurePath)
    for name in dir(kind)
    if not name.startswith("_")
)
_OF_DISTRIBUTIONS = frozenset(
    "rsample sample log_prob entropy stddev variance perplexity arg_constraints batch_shape event_shape".split()
)
"""What the objects of `torch.distributions` have, which the index leaves out."""
_Names = dict[tuple[str, int], list[str]]


def meant_by(project: Files, name: str, reads: int) -> str:
    """The defined name that an attribute, which a file reads so often, is a slip of; "" where it is defined,
    near to none, or its words are used elsewhere: then it is a name of another library."""
    if len(name) < _LEAST or name.startswith("_"):
        return ""
    known, near = _names_of(project)
    if name in known:
        return ""
    sizes = (len(name) - 1, len(name), len(name) + 1)
    found = {
        other for size in sizes for other in near.get((name[0], size), ()) if _slip(name, other)
    }
    if len(found) != 1:
        return ""
    other = found.pop()
    strange = set(name.split("_")) - set(other.split("_"))
    if len(strange) != 1 or len(word := strange.pop()) < _LEAST or word in words_of_torch():
        return ""
    spelt = word.encode("utf-8", "replace")
    return other if sum(data.count(spelt) for data in project.contents()) == reads else ""


def _names_of(project: Files) -> tuple[frozenset[str], _Names]:
    """Every name that the project, Python's own types or torch define or quote, and those defined by first
    letter and length: few slips change either by much."""
    kept: tuple[frozenset[str], _Names] | None = project.summaries.get("spelling")
    if kept is None:
        seen = outline_of(project)
        options = {word for data in project.contents() for word in _OPTION.findall(data)}
        words = seen.bound | seen.set_outside | seen.functions.keys()
        words |= {word.replace(b"-", b"_") for word in options}
        names = frozenset(word.decode("utf-8", "replace") for word in words)
        known = names | _BUILT_IN | _OF_DISTRIBUTIONS
        known = known.union(names_of("torch.Tensor"), names_of("torch.nn.Module"))
        known = known.union(word.decode("utf-8", "replace") for word in seen.quoted)
        kept = project.summaries["spelling"] = known, _by_start(names)
    return kept


def _by_start(names: Iterable[str]) -> _Names:
    table: _Names = defaultdict(list)
    for name in names:
        if len(name) >= _LEAST:
            table[name[0], len(name)].append(name)
    return table


def _slip(one: str, other: str) -> bool:
    """Whether one letter is wrong, too many or missing, or two are exchanged: inside of the name, for
    endings differ on purpose (`loss`, `losses`), and so do numbers and other spellings."""
    at = 0
    while at < len(one) and at < len(other) and one[at] == other[at]:
        at += 1
    rest, last = (one[at:], other[at:]), min(len(one), len(other)) - 1
    if at >= last:
        return False
    if len(one) == len(other):
        swapped = rest[0][:2] == rest[1][1::-1] and rest[0][2:] == rest[1][2:]
        wrong = rest[0][1:] == rest[1][1:] and {rest[0][0], rest[1][0]} != {"s", "z"}
        return (swapped or wrong) and rest[0][0].isalpha() and rest[1][0].isalpha()
    longer, shorter = sorted(rest, key=len, reverse=True)
    return longer[1:] == shorter and longer[0].isalpha() and longer[0] != "u"
