"""`.npz` files: zip archives of `.npy` members, stored or deflated."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path

from torchstone.core.text import Text
from torchstone.tensors.files.npy import read_header, stored_array
from torchstone.tensors.files.stored import (
    Bytes,
    FileBytes,
    PackedBytes,
    StoredTensor,
    damaged,
    truncated,
)

ENDINGS = (".npz",)
_LOCAL_HEADER = 30
_UNPACKED = 1 << 28
"""Up to 256 MB are read in a second, whatever they were packed into."""
_SHRUNK = 100


def read_entries(path: Path) -> list[StoredTensor]:
    """One tensor per member."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [_member(archive, info, path) for info in archive.infolist()]
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise damaged(
            path, Text(f"no readable zip file ({error})", f"无法读取的 zip 文件（{error}）")
        ) from None


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> StoredTensor:
    with archive.open(info) as file:
        shape, order, kind, start = read_header(file, path)
    if info.file_size - start < math.prod(shape) * kind.itemsize:
        raise truncated(path)
    name = info.filename.removesuffix(".npy")
    return stored_array(name, shape, order, kind, member_bytes(info, path, start), path)


def _check_packing(info: zipfile.ZipInfo, path: Path) -> None:
    """Weights do not shrink a hundred times: what does is made to fill a disk or to take hours."""
    if info.file_size > max(_UNPACKED, _SHRUNK * info.compress_size):
        size, small = f"{info.file_size:,}", f"{info.compress_size:,}"
        raise damaged(
            path,
            Text(
                f"{info.filename!r}, {size} bytes packed into {small}",
                f"{info.filename!r}：{size} 字节被压缩为 {small} 字节",
            ),
        )


def member_bytes(info: zipfile.ZipInfo, path: Path, skip: int = 0) -> Bytes:
    """The bytes of a member after its first `skip`; a stored one is read in place."""
    if info.compress_type != zipfile.ZIP_STORED:
        _check_packing(info, path)
        return PackedBytes(path, info.filename, skip)
    with path.open("rb") as file:
        file.seek(info.header_offset)
        head = file.read(_LOCAL_HEADER)
    if len(head) < _LOCAL_HEADER or head[:4] != b"PK\x03\x04":
        raise damaged(
            path,
            Text(
                f"no zip member at byte {info.header_offset:,}",
                f"第 {info.header_offset:,} 字节处没有 zip 成员",
            ),
        )
    names = int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    start = info.header_offset + _LOCAL_HEADER + names
    if start + info.file_size > path.stat().st_size:
        raise truncated(path)
    return FileBytes(path, start + skip)
