"""A path becomes a list of stored tensors: one file, a folder, or an index of shards."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable
from pathlib import Path

from torchstone.core.errors import InputError, TorchstoneError, system_said
from torchstone.core.text import Text
from torchstone.tensors.files import gguf, npy, npz, safetensors, torch_file
from torchstone.tensors.files.stored import StoredTensor, UnreadableBytes, check_count, damaged

_READERS: dict[str, Callable[[Path], list[StoredTensor]]] = {
    ending: module.read_entries
    for module in (npy, npz, safetensors, torch_file, gguf)
    for ending in module.ENDINGS
}
ENDINGS = tuple(_READERS)
_INDEX = ".index.json"
_MOST_INDEX = 1 << 26
_MOST_AXES = 64  # of numpy, and of most operators of torch


def open_tensors(path: Path) -> list[StoredTensor]:
    """The tensors behind a path, in the order of the file."""
    try:
        found = _opened(path)
        check_count(path, len(found))
        for entry in found:
            _check_shape(entry)
    except OSError as error:
        raise InputError(
            str(path), system_said(error),
            Text("a readable file", "可读取的文件"), Text("check the path", "请检查路径"),
        ) from None  # fmt: skip
    if not found:
        raise InputError(
            str(path), Text("a file without tensors", "不含张量的文件"), Text("at least one tensor", "至少一个张量"),
            Text("pass the file that holds the weights", "请传入含有权重的文件"),
        )  # fmt: skip
    return found


def _opened(path: Path) -> list[StoredTensor]:
    if path.is_dir():
        return _from_folder(path)
    return _from_index(path) if path.name.endswith(_INDEX) else _from_file(path)


def _check_shape(entry: StoredTensor) -> None:
    """Torch can hold it: with a length of zero, the other lengths cost the file nothing."""
    if isinstance(entry.bytes, UnreadableBytes):
        return
    values = math.prod(max(length, 1) for length in entry.shape)
    if len(entry.shape) > _MOST_AXES or values * entry.dtype.itemsize >= 1 << 63:
        said = f"{entry.shape}" if len(entry.shape) <= _MOST_AXES else f"({len(entry.shape)} axes)"
        raise damaged(
            entry.path,
            Text(
                f"{entry.name!r} with a shape {said}"[:160],
                f"形状为 {said} 的 {entry.name!r}"[:160],
            ),
        )


def _check_regular(path: Path) -> None:
    """A pipe or a device may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(
            str(path), Text("no regular file", "非普通文件"), Text("a file or a folder", "文件或文件夹"),
            Text("pass the checkpoint itself", "请传入检查点文件"),
        )  # fmt: skip


def _from_file(path: Path) -> list[StoredTensor]:
    _check_regular(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            str(path), Text(f"a file ending in {path.suffix!r}", f"扩展名为 {path.suffix!r} 的文件"),
            Text(f"one of {' '.join(ENDINGS)}, {_INDEX}, or a folder",
                 f"{' '.join(ENDINGS)}、{_INDEX} 之一，或文件夹"),
            Text("convert the file, or rename it to what it is", "请转换文件，或改为正确的扩展名"),
        )  # fmt: skip
    try:
        return reader(path)
    except (TorchstoneError, OSError):
        raise
    except Exception as error:  # a hostile file may break any assumption; it ran nothing of its own
        said = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise damaged(
            path, Text(f"a file that cannot be read ({said})", f"无法读取的文件（{said}）")
        ) from error


def _from_folder(folder: Path) -> list[StoredTensor]:
    """Its index if it has one, else all of its tensor files."""
    names = sorted(os.listdir(folder))
    indices = [name for name in names if name.endswith(_INDEX)]
    if indices:
        preferred = [name for name in indices if "safetensors" in name] or indices
        return _from_index(folder / preferred[0])
    for endings in (
        safetensors.ENDINGS,
        gguf.ENDINGS,
        torch_file.ENDINGS,
        npy.ENDINGS,
        npz.ENDINGS,
    ):
        files = [name for name in names if Path(name).suffix.lower() in endings]
        if files:
            return [entry for name in files for entry in _from_file(folder / name)]
    raise InputError(
        str(folder), Text("a folder without tensor files", "没有张量文件的文件夹"), Text(f"{' '.join(ENDINGS)}", f"{' '.join(ENDINGS)}"),
        Text("pass the folder of the checkpoint", "请传入检查点所在文件夹"),
    )  # fmt: skip


def _from_index(path: Path) -> list[StoredTensor]:
    """Every tensor that the index names, from files in the same folder only."""
    _check_regular(path)
    if path.stat().st_size > _MOST_INDEX:
        raise damaged(
            path,
            Text(
                f"an index of {path.stat().st_size:,} bytes", f"{path.stat().st_size:,} 字节的索引"
            ),
        )
    try:
        table = json.loads(path.read_bytes())["weight_map"]
        wanted = {str(name): str(file) for name, file in table.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:140]
        raise damaged(path, Text(f"no weight_map ({said})", f"没有 weight_map（{said}）")) from None
    folder = path.parent.resolve()
    found: dict[str, StoredTensor] = {}
    for name in sorted(set(wanted.values())):
        if "\0" in name or not _allowed(folder, name, (folder / name).resolve()):
            raise InputError(
                str(path), Text(f"a shard {name!r} outside the folder", f"位于文件夹之外的分片 {name!r}"),
                Text("shards beside their index", "与索引同一文件夹中的分片"),
                Text("put the shards beside the index, not as links to elsewhere",
                     "请将分片放在索引旁，而非指向别处的链接"),
            )  # fmt: skip
        found.update((entry.name, entry) for entry in _from_file(folder / name))
    missing = [name for name in wanted if name not in found]
    if missing:
        raise damaged(
            path,
            Text(
                f"{len(missing)} tensors that no shard holds, such as {missing[0]!r}",
                f"{len(missing)} 个张量不在任何分片中，例如 {missing[0]!r}",
            ),
        )
    return [found[name] for name in wanted]


def _allowed(folder: Path, name: str, target: Path) -> bool:
    """Within the folder; or a link into the `blobs` of the Hugging Face cache that it belongs to."""
    if target.is_relative_to(folder):
        return True
    blobs = folder.parent.parent / "blobs"
    return Path(name).name == name and folder.parent.name == "snapshots" and target.parent == blobs
