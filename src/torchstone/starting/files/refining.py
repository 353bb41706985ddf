"""Made files in another form, after the program has said what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torchstone.starting.files.makers import is_time
from torchstone.starting.obstacles import Misfit
from torchstone.starting.supplies import MadeFile, Supply

_MOST_FIELDS = 12
"""Where a line has too few and the program does not say how many it wants."""


_CHANNELS = {
    ("", "3", "4"): "image:RGBA",
    ("", "3", "1"): "image:L",
    ("L", "1", "3"): "image",
}
"""Images as a layer or an array takes them: settings, channels that they had, channels that are wanted."""


def refine_files(supplies: Sequence[Supply], misfit: Misfit) -> tuple[MadeFile, ...]:
    """The latest files that can be refined, with all of the same form; nothing where none can."""
    files = [item for item in supplies if isinstance(item, MadeFile)]
    for item in reversed(files):
        form = _refined(item.form, misfit)
        if form and form != item.form:
            return tuple(replace(one, form=form) for one in files if one.form == item.form)
    return ()


def _refined(form: str, misfit: Misfit) -> str:
    kind, _, settings = form.partition(":")
    if kind == "table":
        return _table(settings, misfit)
    if kind == "fields":
        return _fields(settings, misfit)
    if kind == "image" and misfit.what == "size":
        return _CHANNELS.get((settings, misfit.given, misfit.wanted), "")
    if kind == "array" and misfit.what == "size":
        *sides, last = settings.split(",")
        return f"array:{','.join((*sides, misfit.wanted))}" if last == misfit.given else ""
    if kind == "numbers" and misfit.what == "fields":
        return f"numbers:{misfit.wanted or _MOST_FIELDS}"
    if kind == "text" and misfit.what == "number":
        return "fields:space|int|int"
    return ""


def _table(settings: str, misfit: Misfit) -> str:
    separator, *columns = settings.split("|")
    new = [name for name in misfit.wanted.split("\n") if name not in columns]
    if misfit.what == "column" and new:
        return f"table:{'|'.join((separator, *columns, *new))}"
    if misfit.what == "size":
        values = [name for name in columns if not is_time(name.lstrip("!#"))]
        times = [name for name in columns if name not in values]
        if len(values) != int(misfit.given):
            return ""
        wanted = int(misfit.wanted)
        more = [f"v{place}" for place in range(wanted - len(values))]
        return f"table:{'|'.join((separator, *times, *more, *values[:wanted]))}"
    if misfit.what == "fields" and misfit.given in ("", str(len(columns))):
        count = int(misfit.wanted or _MOST_FIELDS)
        more = [f"v{place}" for place in range(count - len(columns))]
        return (
            f"table:{'|'.join((separator, *columns[:count], *more))}"
            if count <= _MOST_FIELDS
            else ""
        )
    return ""


def _fields(settings: str, misfit: Misfit) -> str:
    separator, *kinds = settings.split("|")
    if misfit.what == "fields" and misfit.given in ("", str(len(kinds))):
        count = int(misfit.wanted or _MOST_FIELDS)
        if count > _MOST_FIELDS:
            return ""
        return f"fields:{'|'.join((separator, *[*kinds, *['int'] * count][:count]))}"
    if misfit.what == "number":
        refused = "path" if misfit.given.startswith("images/") else "words"
        others = ["int" if kind.startswith(refused) else kind for kind in kinds]
        return f"fields:{'|'.join((separator, *others))}"
    return ""
