"""`.pt`, `.pth`, `.bin` and `.ckpt` files of torch.save, zip and legacy, without unpickling."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from torchstone.tensors.files.npz import member_bytes
from torchstone.tensors.files.stored import Bytes, FileBytes, StoredTensor, damaged, truncated
from torchstone.tensors.files.torch_pickle import (
    StorageRecord,
    TensorRecord,
    read_pickle,
    tensors_in,
)

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
                raise damaged(path, "a zip file without a data.pkl of a sensible size")
            text = archive.read(place)
            order = members.get(place.removesuffix("data.pkl") + "byteorder")
            swapped = order is not None and archive.read(order)[:3] == b"big"
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise damaged(path, f"no readable zip file ({error})") from None
    folder = place.removesuffix("data.pkl") + "data/"
    records = list(tensors_in(read_pickle(io.BytesIO(text), path)))
    found = []
    for name, record in records:
        info = members.get(folder + record.storage.key)
        if info is None:
            raise damaged(path, f"no data for {name!r}")
        size = record.storage.dtype.itemsize
        _check(name, record, info.file_size // max(size, 1) * size, path)
        data = member_bytes(info, path, record.offset * record.dtype.itemsize)
        found.append(_stored(name, record, data, path, swapped))
    return found


def _from_legacy(path: Path) -> list[StoredTensor]:
    """Magic, protocol, system, the object and the storage keys, five pickles; then raw storages."""
    with path.open("rb") as file:
        if read_pickle(file, path) != _MAGIC:
            raise damaged(path, "neither a zip file nor one of torch.save")
        read_pickle(file, path)
        read_pickle(file, path)
        records = list(tensors_in(read_pickle(file, path)))
        keys = read_pickle(file, path)
        if not isinstance(keys, list):
            raise damaged(path, "no list of storages")
        storages = {record.storage.key: record.storage for _, record in records}
        starts = _storage_starts(keys, storages, file.tell(), path)
    found = []
    for name, record in records:
        if record.storage.key not in starts:
            raise damaged(path, f"no data for {name!r}")
        start, size = starts[record.storage.key]
        _check(name, record, size, path)
        data = FileBytes(path, start + record.offset * record.dtype.itemsize)
        found.append(_stored(name, record, data, path, False))
    return found


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
            raise damaged(path, f"a storage {key!r} that no tensor has")
        size = count * record.dtype.itemsize
        if place + 8 + size > whole:
            raise truncated(path)
        starts[str(key)] = (place + 8, size)
        place += 8 + size
    return starts


def _check(name: str, record: TensorRecord, size: int, path: Path) -> None:
    """The tensor lies within its storage, and has no more values than it."""
    count = 1
    for length in record.shape:
        count *= length
    reach = sum((n - 1) * s for n, s in zip(record.shape, record.stride, strict=True)) + 1
    values = size // record.dtype.itemsize
    if count and (record.offset + reach > values or count > values):
        raise damaged(
            path,
            f"{name!r} of shape {record.shape} and stride {record.stride} over {values:,} values",
        )


def _stored(
    name: str, record: TensorRecord, data: Bytes, path: Path, swapped: bool
) -> StoredTensor:
    plain: list[int] = []
    step = 1
    for length in reversed(record.shape):
        plain.insert(0, step)
        step *= length
    same = all(
        have == want or length == 1
        for have, want, length in zip(record.stride, plain, record.shape, strict=True)
    )
    stride = None if same else record.stride
    return StoredTensor(
        name, record.shape, record.dtype, data, path, swapped=swapped, stride=stride
    )
