"""Rewritten source does what the source does."""

from __future__ import annotations

import asyncio
import textwrap
from typing import Any

import pytest

from torchstone.dataflow.tracing.callees import Callees
from torchstone.dataflow.tracing.instrument import Instrumentation
from torchstone.dataflow.tracing.recorder import Recorder
from torchstone.dataflow.tracing.values import Values

PROGRAMS = {
    "order of an item write": """
        seen = []
        def note(x):
            seen.append(x)
            return x
        box = {}
        def place():
            seen.append("place")
            return box
        place()[note("key")] = note("value")
        result = (seen, box)
    """,
    "swap of items": """
        a = [1, 2, 3]
        a[0], a[2] = a[2], a[0]
        result = a
    """,
    "items, names and stars in one target": """
        a = [0, 0, 0]
        first, *a[1:], last = range(5)
        result = (first, a, last)
    """,
    "two targets": """
        a = [0, 0]
        a[0] = b = [7]
        result = (a, b, a[0] is b)
    """,
    "augmented names, attributes and items": """
        class Box: pass
        box = Box()
        box.n = 1
        box.n += 2
        d = {"k": [1]}
        d["k"] += [2]
        x = [1]
        y = x
        x += [2]
        s = 5
        s -= 2
        s **= 2
        result = (box.n, d, y, s)
    """,
    "slices of all kinds": """
        a = list(range(10))
        class Grid:
            def __getitem__(self, key):
                return key
        g = Grid()
        result = (a[1:5:2], a[::-1], g[1:2, ..., None], g[:, 3], g[()], g[1,])
    """,
    "walrus and comprehensions": """
        result = [y := 1, y ** 2, [z * y for z in range(3) if z % 2], {k: v for k, v in [(1, 2)]}]
    """,
    "closures that write": """
        def counter():
            n = 0
            def add(k=1):
                nonlocal n
                n += k
                return n
            return add
        c = counter()
        result = (c(), c(5), c())
    """,
    "super and private names": """
        class A:
            def __init__(self, x):
                self.__x = x
            def value(self):
                return self.__x * 2
        class B(A):
            def __init__(self, x):
                super().__init__(x + 1)
                self.__x = "b"
            def value(self):
                return (super().value(), self.__x)
        result = B(3).value()
    """,
    "generators that receive": """
        def talk():
            got = []
            while len(got) < 3:
                got.append((yield len(got)))
            return got
        g = talk()
        out = [next(g), g.send("a"), g.send("b")]
        try:
            g.send("c")
        except StopIteration as stop:
            out.append(stop.value)
        result = out
    """,
    "exceptions": """
        def fail(x):
            return 1 / x
        try:
            fail(0)
        except ZeroDivisionError as error:
            result = (type(error).__name__, str(error))
        finally:
            done = True
    """,
    "match": """
        def kind(x):
            match x:
                case [a, b] if a + b > 2:
                    return ("pair", a * b)
                case {"k": v}:
                    return v[0]
                case _:
                    return None
        result = [kind([1, 2]), kind({"k": [9]}), kind(3)]
    """,
    "chained comparisons and logic": """
        x = 5
        result = (1 < x < 9, x == 5 and not x > 9, -x, ~x, +x, x if x > 2 else 0)
    """,
    "annotations and defaults": """
        from typing import Optional
        n: list[int] = [1]
        def f(a: dict[str, int], b: Optional[int] = len(n) + 1) -> tuple[int, ...]:
            return (b, *a.values())
        result = (f({"a": 1}), f.__annotations__["a"], __annotations__["n"])
    """,
    "star arguments": """
        def f(*args, **kwargs):
            return args, kwargs
        result = f(*[1, 2], 3, *(4,), a=1, **{"b": 2})
    """,
    "lambdas and decorators": """
        import functools
        def twice(f):
            @functools.wraps(f)
            def inner(*a):
                return f(f(*a))
            return inner
        @twice
        def add(x):
            return x + 1
        result = (add(1), add.__name__, (lambda x, y=2: x * y)(3))
    """,
    "deletes and globals": """
        items = [1, 2, 3]
        del items[1]
        total = 0
        def add(x):
            global total
            total += x
        add(5)
        result = (items, total)
    """,
    "f-strings and strings": """
        x = [1, 2]
        result = f"{x[0]!r:>4} {len(x)}" + "a" * 2 + "%s" % x
    """,
}  # fmt: skip


def instrumentation() -> Instrumentation:
    callees = Callees(lambda name: name == "<program>", lambda name, module: True)
    return Instrumentation(Recorder(Values(), callees))


def both(source: str) -> tuple[Any, Any]:
    """The names that the source leaves, and those of its rewritten form, with hooks and without."""
    found = []
    for is_calm in (False, True):
        made = instrumentation()
        file = made.file("<program>", textwrap.dedent(source))
        assert file is not None
        for number in made.hooks if is_calm else ():
            made.calm(number, 1)
        for code in (file.plain, file.recording):
            names: dict[str, Any] = {"__name__": "program"}
            exec(code, names)
            found.append(names)
    assert found[3].get("result") == found[1].get("result")
    return found[0], found[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_result_is_the_same(name: str) -> None:
    plain, recorded = both(PROGRAMS[name])
    assert recorded["result"] == plain["result"]


def test_no_name_is_left_behind() -> None:
    plain, recorded = both("a = [1, 2]\na[0], a[1] = a[1], a[0]\nb = a[0] = 3\n")
    assert set(recorded) == set(plain)


def test_coroutines() -> None:
    _, names = both(
        """
        async def one(x):
            return x + 1
        async def many():
            return [await one(n) for n in range(3)] + [y async for y in numbers()]
        async def numbers():
            for n in range(2):
                yield n * 10
        """
    )
    assert asyncio.run(names["many"]()) == [1, 2, 3, 0, 10]


def test_lines_stay_where_they_are() -> None:
    file = instrumentation().file("<program>", "x = [1]\n\ny = x[\n    5\n]\n")
    assert file is not None
    with pytest.raises(IndexError) as caught:
        exec(file.recording, {})
    lines = [entry.lineno for entry in caught.traceback if str(entry.path) == "<program>"]
    assert lines[-1:] in ([3], [2], [])
    assert file.recording.co_filename == file.plain.co_filename


def test_source_that_cannot_be_compiled_is_left_alone() -> None:
    made = instrumentation()
    assert made.file("<program>", "def f(:\n") is None
    assert "SyntaxError" in made.skipped["<program>"]
