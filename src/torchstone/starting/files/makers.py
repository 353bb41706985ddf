"""Bytes of files by form. Values are drawn from a fixed seed, so that every run sees the same."""

from __future__ import annotations

import io
import json
import math
import pickle
import random
import re
import struct
import wave
import zipfile
import zlib
from array import array
from collections.abc import Callable

SIDE = 256
"""Pixels of made images: crops of 224 fit, and decoding one takes a millisecond."""
ROWS = 256
"""Rows of made tables: longer than common windows and batches."""
TOKENS = 1 << 18
"""Numbers in a made array of tokens: longer than common contexts."""
_WORDS = (
    "the a of to and in model data train test small large red blue green house tree river city man "
    "woman child runs sees makes takes gives new old good bad first last long short day night year"
).split()


def make_bytes(form: str, content: str = "") -> bytes:
    """The contents of a file of this form: `name` or `name:settings`."""
    name, _, settings = form.partition(":")
    return MAKERS[name](content or settings)


def make_image(settings: str) -> bytes:
    """A PNG of random colours; `mask` for one of the numbers 0 and 1 in each pixel, `L` for grey."""
    channels = {"mask": 1, "L": 1, "RGBA": 4}.get(settings, 3)
    draw = random.Random(0)
    lines = (draw.randbytes(SIDE * channels) for _ in range(SIDE))
    if settings == "mask":
        lines = (bytes(value & 1 for value in line) for line in lines)
    rows = b"".join(b"\0" + line for line in lines)
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows, 1)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def make_text(settings: str) -> bytes:
    """Lines of words, as many as the settings say."""
    draw = random.Random(0)
    lines = [
        " ".join(draw.choices(_WORDS, k=draw.randint(5, 15))) for _ in range(int(settings or ROWS))
    ]
    return ("\n".join(lines) + "\n").encode()


def make_table(settings: str) -> bytes:
    """A table with a header: the separator, then the columns, all separated by `|`. Names of times
    give dates by the hour, a name with a `#` before it a small whole number, others numbers."""
    separator, *columns = settings.split("|")
    separator = {"tab": "\t", "space": " ", "": ","}.get(separator, separator)
    has_header = bool(columns) and not columns[0].startswith("!")
    columns = [name.lstrip("!") for name in columns] or ["a", "b", "c"]
    draw = random.Random(0)
    lines = [separator.join(name.lstrip("#") for name in columns)] if has_header else []
    rows = ROWS * 80 if any(map(is_time, columns)) else ROWS  # series are cut into windows
    lines += (separator.join(_cell(name, row, draw) for name in columns) for row in range(rows))
    return ("\n".join(lines) + "\n").encode()


def is_time(name: str) -> bool:
    """Whether a column of this name holds times."""
    return name.lower() in ("date", "time", "timestamp", "datetime")


def _cell(name: str, row: int, draw: random.Random) -> str:
    if is_time(name):
        day, hour = divmod(row, 24)
        year, day = divmod(day, 336)
        return f"{2016 + year}-{day // 28 + 1:02d}-{day % 28 + 1:02d} {hour:02d}:00:00"
    if name.startswith("#"):
        return str(draw.randint(0, 9))
    if (
        re.search(r"(^|_)(id|label|class|target|rating|category)s?(_|$)", name.lower())
        and name != "label"
    ):
        return str(row % 8)
    if any(
        part in name.lower()
        for part in ("text", "title", "sentence", "caption", "review", "question")
    ):
        return " ".join(draw.choices(_WORDS, k=8))
    if name == "filename":
        return f"images/{row % 8:04d}.png"
    if name == "label":
        return f"class{row % 8}"  # of eight classes, each with many samples
    return f"{draw.gauss(0, 1):.4f}"


def make_lines(content: str) -> bytes:
    """The elements of a list, one a line."""
    return "".join(json.dumps(row) + "\n" for row in json.loads(content)).encode()


def make_pickle(content: str) -> bytes:
    """A pickle of lists, objects, numbers and texts."""
    return pickle.dumps(json.loads(content))


def make_fields(settings: str) -> bytes:
    """Lines of fields: the separator, then a kind for each field. Paths are of eight different files."""
    separator, *kinds = settings.split("|")
    separator = {"tab": "\t", "space": " ", "": ","}.get(separator, separator)
    draw = random.Random(0)
    lines = []
    for row in range(ROWS):
        fields = [_field(kind, row, draw) for kind in kinds]
        lines.append(separator.join(fields))
    return ("\n".join(lines) + "\n").encode()


def _field(kind: str, row: int, draw: random.Random) -> str:
    if kind.startswith("path"):
        return f"images/{row % 8:04d}{kind.removeprefix('path')}"
    if kind == "words":
        return " ".join(draw.choices(_WORDS, k=8))
    return str(row % 8)


def make_numbers(settings: str) -> bytes:
    """Lines of small numbers, as many in each as the settings say."""
    draw = random.Random(0)
    count = int(settings or 2)
    rows = (" ".join(str(draw.randint(0, 9)) for _ in range(count)) for _ in range(ROWS))
    return ("\n".join(rows) + "\n").encode()


def make_arrays(settings: str) -> bytes:
    """A `.npz` file: `name=dtype,side,...`, separated by `;`."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for part in settings.split(";"):
            name, _, form = part.partition("=")
            file.writestr(f"{name}.npy", make_array(form))
    return buffer.getvalue()


def make_mark(settings: str) -> bytes:
    """Of a file whose library gets a made value instead of reading it."""
    del settings
    return b"made\n"


def make_array(settings: str) -> bytes:
    """A `.npy` file: `dtype,side,side`."""
    dtype, *sides = settings.split(",") if settings else ("<f4", str(ROWS), "8")
    shape = tuple(int(side) for side in sides)
    size = math.prod(shape)
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape})
    head = text + " " * (-(len(text) + 11) % 64) + "\n"
    packed = struct.pack("<H", len(head))
    return b"\x93NUMPY\x01\x00" + packed + head.encode() + _numbers(dtype, size)


def _numbers(dtype: str, size: int) -> bytes:
    draw = random.Random(0)
    code = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "<u2": "H", "|u1": "B"}[dtype]
    if code in "fd":
        return array(code, (draw.gauss(0, 1) for _ in range(size))).tobytes()
    return array(code, (value & 7 for value in draw.randbytes(size))).tobytes()


def make_tokens(settings: str) -> bytes:
    """Bare numbers without a header, as `numpy.memmap` reads them."""
    return _numbers(settings or "<u2", TOKENS)


def make_sound(settings: str) -> bytes:
    """Two seconds at 16 kHz, or at the rate of the settings."""
    rate = int(settings or 16000)
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        tone = (int(8000 * math.sin(index * 0.17)) for index in range(2 * rate))
        file.writeframes(b"".join(struct.pack("<h", value) for value in tone))
    return buffer.getvalue()


MAKERS: dict[str, Callable[[str], bytes]] = {
    "image": make_image,
    "text": make_text,
    "table": make_table,
    "json": lambda content: content.encode(),
    "lines": make_lines,
    "pickle": make_pickle,
    "fields": make_fields,
    "numbers": make_numbers,
    "arrays": make_arrays,
    "checkpoint": make_mark,
    "groups": make_mark,
    "array": make_array,
    "tokens": make_tokens,
    "sound": make_sound,
}
