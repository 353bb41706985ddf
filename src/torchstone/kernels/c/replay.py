"""Recorded calls of a C candidate, packed for a driver that repeats them under the sanitizers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from torchstone.kernels.c.source import CSource
from torchstone.kernels.messages.facts import RecordedCall


def driver_source(source: CSource) -> str:
    """main() that reads calls from a file: buffers are allocated exactly as large as they are.

    Its own names, written with `@`, are none of the candidate's, whose functions may be called `n`.
    """
    own = "own_"
    while own in source.text:
        own += "_"
    declared = "\n".join(
        f"void {name}({', '.join(_declared(kind) for kind in types) or 'void'});"
        for name, types in source.prototypes.items()
    )
    cases = []
    for number, (name, types) in enumerate(source.prototypes.items()):
        given = ", ".join(
            f"(void *)@p[{i}]"
            if kind.endswith("*")
            else f"({kind})(@is_float[{i}] ? @d[{i}] : @n[{i}])"
            for i, kind in enumerate(types)
        )
        cases.append(f"case {number}: {name}({given}); break;")
    text = f"""#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
{declared}
static void @take(void *@to, size_t @size, FILE *@from) {{
  if (@size && fread(@to, 1, @size, @from) != @size) _Exit(3);
}}
int main(void) {{
  FILE *@file = fopen("calls.bin", "rb");
  if (!@file) return 3;
  int64_t @calls, @function, @count, @buffers;
  @take(&@calls, 8, @file);
  for (int64_t @call = 0; @call < @calls; @call++) {{
    void *@owned[64]; char *@p[64]; double @d[64]; int64_t @n[64]; int @is_float[64];
    @take(&@function, 8, @file); @take(&@buffers, 8, @file);
    for (int64_t @i = 0; @i < @buffers; @i++) {{
      int64_t @size; @take(&@size, 8, @file);
      @owned[@i] = malloc(@size ? @size : 1); @take(@owned[@i], @size, @file);
    }}
    @take(&@count, 8, @file);
    for (int64_t @i = 0; @i < @count; @i++) {{
      int64_t @kind; @take(&@kind, 8, @file); @is_float[@i] = @kind == 1;
      if (@kind == 2) {{ int64_t @which, @offset; @take(&@which, 8, @file); @take(&@offset, 8, @file);
        @p[@i] = (char *)@owned[@which] + @offset; }}
      else if (@kind == 1) @take(&@d[@i], 8, @file);
      else @take(&@n[@i], 8, @file);
    }}
    switch (@function) {{ {" ".join(cases)} }}
    for (int64_t @i = 0; @i < @buffers; @i++) free(@owned[@i]);
  }}
  return 0;
}}
"""
    return text.replace("@", own)


def _declared(kind: str) -> str:
    """A type of a parameter as the driver declares it."""
    return kind.replace("*", " *")


def pack_calls(source: CSource, records: list[RecordedCall], buffers: Sequence[bytes]) -> bytes:
    """Recorded calls as the driver reads them; arguments that overlap share a buffer."""
    names = list(source.prototypes)
    parts = [struct.pack("<q", len(records))]
    for record in records:
        memory = [item for item in record.arguments if item.is_memory]
        spans = [(item.start, item.start + item.size, item.buffer) for item in memory]
        merged = _merged(spans, buffers)
        parts.append(struct.pack("<qq", names.index(record.function), len(merged)))
        for _, data in merged:
            parts += [struct.pack("<q", len(data)), bytes(data)]
        parts.append(struct.pack("<q", len(record.arguments)))
        for item in record.arguments:
            if item.is_memory:
                which = next(i for i, (low, data) in enumerate(merged)
                             if low <= item.start <= low + len(data)
                             and (item.start + item.size <= low + len(data)))  # fmt: skip
                parts.append(struct.pack("<qqq", 2, which, item.start - merged[which][0]))
            elif isinstance(item.scalar, float):
                parts.append(struct.pack("<qd", 1, item.scalar))
            else:
                parts.append(struct.pack("<qq", 0, item.scalar))
    return b"".join(parts)


def in_a_row(packed: Sequence[bytes]) -> bytes:
    """Several packs of calls as one."""
    size = struct.calcsize("<q")
    count = sum(struct.unpack("<q", item[:size])[0] for item in packed)
    return b"".join([struct.pack("<q", count), *(item[size:] for item in packed)])


def _merged(
    spans: list[tuple[int, int, int]], buffers: Sequence[bytes]
) -> list[tuple[int, bytearray]]:
    """Buffers by address, overlapping ones made into one."""
    found: list[tuple[int, bytearray]] = []
    for low, high, which in sorted(set(spans)):
        data = buffers[which]
        if found and low < found[-1][0] + len(found[-1][1]):
            base, whole = found[-1]
            whole.extend(b"\0" * max(0, high - base - len(whole)))
            whole[low - base : high - base] = data
        else:
            found.append((low, bytearray(data)))
    return found
