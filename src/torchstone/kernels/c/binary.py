"""What a compiled library says of itself: data that could run as code is refused."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_PT_LOAD, _PT_GNU_STACK = 1, 0x6474E551
_WRITE, _EXECUTE = 2, 1
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_SHF_EXECINSTR = 4
_STT_OBJECT = 1
_STT_GNU_IFUNC = 10
_EARLY = (".init_array", ".preinit_array", ".fini_array", ".ctors", ".dtors", ".init", ".fini")
_CODE = frozenset({".text", ".init", ".fini", ".plt", ".plt.got", ".plt.sec", ".iplt"})
"""Executable sections that every linker makes."""


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    offset: int
    size: int
    entry_bytes: int


def executable_data(library: bytes) -> str:
    """Why a 64-bit ELF library is refused; empty when its data cannot run as code."""
    if library[:4] != b"\x7fELF" or len(library) < 64 or library[4] != 2:
        return ""  # other systems keep data from running by their own formats
    order = "<" if library[5] == 1 else ">"
    try:
        for kind, flags in _segments(library, order):
            if kind == _PT_GNU_STACK and flags & _EXECUTE:
                return "needs a stack that can be executed"
            if kind == _PT_LOAD and flags & _WRITE and flags & _EXECUTE:
                return "holds memory that can be both written and executed"
        sections = list(_sections(library, order))
        odd = [
            item.name for item in sections if item.flags & _SHF_EXECINSTR and item.name not in _CODE
        ]
        if odd:
            return f"puts code into the section {odd[0][:40]}"
        for name in _objects_in_code(library, order, sections):
            return f"puts the data {name[:40]} between its instructions"
    except (struct.error, IndexError, UnicodeDecodeError):
        return "is no library that can be read"
    return ""


def early_code(compiled: bytes) -> str:
    """Why an object file is refused: something in it would run before it is called; else empty."""
    if compiled[:4] != b"\x7fELF" or len(compiled) < 64 or compiled[4] != 2:
        return ""
    order = "<" if compiled[5] == 1 else ">"
    try:
        sections = list(_sections(compiled, order))
        early = [item.name for item in sections if item.size and item.name.startswith(_EARLY)]
        if early:
            return f"runs code before it is called, or after (section {early[0][:40]}): make no global objects"
        for section in (item for item in sections if item.kind == _SHT_SYMTAB):
            for at in range(section.offset, section.offset + section.size, section.entry_bytes):
                if compiled[at + 4] & 0xF == _STT_GNU_IFUNC:
                    return "chooses a function when it is loaded"
    except (struct.error, IndexError, UnicodeDecodeError):
        return "is no object file that can be read"
    return ""


def _segments(data: bytes, order: str) -> Iterator[tuple[int, int]]:
    (offset,) = struct.unpack_from(order + "Q", data, 32)
    size, count = struct.unpack_from(order + "HH", data, 54)
    for number in range(count):
        yield struct.unpack_from(order + "II", data, offset + number * size)


def _sections(data: bytes, order: str) -> Iterator[_Section]:
    (offset,) = struct.unpack_from(order + "Q", data, 40)
    size, count, names = struct.unpack_from(order + "HHH", data, 58)
    rows = [struct.unpack_from(order + "IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    for row in rows:
        name = _text(data, rows[names][4] + row[0])
        yield _Section(name, row[1], row[2], row[4], row[5], row[9])


def _objects_in_code(data: bytes, order: str, sections: list[_Section]) -> Iterator[str]:
    """Variables that lie in an executable section."""
    for section in sections:
        if section.kind not in (_SHT_SYMTAB, _SHT_DYNSYM) or not section.entry_bytes:
            continue
        for position in range(section.offset, section.offset + section.size, section.entry_bytes):
            name, info, _, place, _, _ = struct.unpack_from(order + "IBBHQQ", data, position)
            if info & 0xF == _STT_OBJECT and 0 < place < len(sections):
                if sections[place].flags & _SHF_EXECINSTR:
                    kind = ".strtab" if section.kind == _SHT_SYMTAB else ".dynstr"
                    strings = next(item for item in sections if item.name == kind)
                    yield _text(data, strings.offset + name)


def _text(data: bytes, position: int) -> str:
    return data[position : data.index(b"\0", position)].decode()
