"""`.pt`, `.pth`, `.bin` and `.ckpt` files of torch.save, zip and legacy, without unpickling."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from torchstone.core.text import Text
from torchstone.tensors.files.npz import member_bytes
from torchstone.tensors.files.stored import (
    Bytes,
    FileBytes,
    StoredTensor,
    check_count,
    damaged,
    truncated,
)
from torchstone.tensors.files.torch_pickle import read_pickle, tensors_in
from torchstone.tensors.files.torch_records import StorageRecord
from torchstone.tensors.files.torch_tensors import storages_of, stored_tensor

ENDINGS = (".pt", ".pth", ".bin", ".ckpt")
_MOST_PICKLE = 1 << 28
_MAGIC = 0x1950A86A20F9469CFC6C


def read_entries(path: Path) -> list[StoredTensor]:
    """The tensors of a checkpoint; their bytes stay in the file."""
    with path.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"
    return _from_zip(path) if zipped else _from_legacy(path)


def _from_zip(path: Path) -> list[StoredTensor]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            place = next((name for name in members if name.endswith("/data.pkl")), "")
            if not place or members[place].file_size > _MOST_PICKLE:
                raise damaged(
                    path,
                    Text(
                        "a zip file without a data.pkl of a sensible size",
                        "没有正常大小 data.pkl 的 zip 文件",
                    ),
                )
            text = archive.read(place)
            order = members.get(place.removesuffix("data.pkl") + "byteorder")
            swapped = order is not None and archive.read(order)[:3] == b"big"
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise damaged(
            path, Text(f"no readable zip file ({error})", f"无法读取的 zip 文件（{error}）")
        ) from None
    folder = place.removesuffix("data.pkl") + "data/"

    def find(name: str, storage: StorageRecord) -> tuple[Bytes, int]:
        info = members.get(folder + storage.key)
        if info is None:
            raise damaged(path, Text(f"no data for {name!r}", f"缺少 {name!r} 的数据"))
        return member_bytes(info, path), info.file_size

    records = list(tensors_in(read_pickle(io.BytesIO(text), path)))
    check_count(path, len(records))
    return [stored_tensor(name, record, find, path, swapped) for name, record in records]


def _from_legacy(path: Path) -> list[StoredTensor]:
    """Magic, protocol, system, the object and the storage keys, five pickles; then raw storages."""
    with path.open("rb") as file:
        if read_pickle(file, path) != _MAGIC:
            raise damaged(
                path,
                Text(
                    "neither a zip file nor one of torch.save",
                    "既非 zip 文件，也非 torch.save 的文件",
                ),
            )
        read_pickle(file, path)
        read_pickle(file, path)
        records = list(tensors_in(read_pickle(file, path)))
        check_count(path, len(records))
        keys = read_pickle(file, path)
        if not isinstance(keys, list):
            raise damaged(path, Text("no list of storages", "缺少存储列表"))
        storages = {item.key: item for _, record in records for item in storages_of(record)}
        starts = _storage_starts(keys, storages, file.tell(), path)

    def find(name: str, storage: StorageRecord) -> tuple[Bytes, int]:
        if storage.key not in starts:
            raise damaged(path, Text(f"no data for {name!r}", f"缺少 {name!r} 的数据"))
        start, size = starts[storage.key]
        return FileBytes(path, start), size

    return [stored_tensor(name, record, find, path, False) for name, record in records]


def _storage_starts(
    keys: list[object], storages: Mapping[str, StorageRecord], place: int, path: Path
) -> dict[str, tuple[int, int]]:
    """Where each storage begins, and its bytes."""
    starts: dict[str, tuple[int, int]] = {}
    whole = path.stat().st_size
    for key in keys:
        record = storages.get(str(key))
        count = int.from_bytes(FileBytes(path, place).read(0, 8), "little")
        if record is None:
            raise damaged(
                path, Text(f"a storage {key!r} that no tensor has", f"没有张量使用的存储 {key!r}")
            )
        size = count * record.dtype.itemsize
        if place + 8 + size > whole:
            raise truncated(path)
        starts[str(key)] = (place + 8, size)
        place += 8 + size
    return starts
