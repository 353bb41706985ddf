"""Files made to take memory or time without end, to break an assumption, or to reach into this process."""

from __future__ import annotations

import json
import os
import pickle
import resource
import shlex
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from torchstone.cli.main import run
from torchstone.core.errors import InputError
from torchstone.tensors.files import open_tensors, torch_records
from torchstone.tensors.files.answer import answer_for_file
from torchstone.tensors.options import TensorOptions

MEGABYTE = 1 << 20
TENSOR = (
    b"ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
    b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQK\x00(K\x02K\x02t(K\x02K\x01t\x89"
    b"ccollections\nOrderedDict\n)RtR"
)


def torch_file(path: Path, text: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x/data.pkl", text)
        archive.writestr("x/data/0", np.ones(4, np.float32).tobytes())
    return path


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def no_progress(place: int, count: int, name: str) -> None: ...


def test_a_memo_number_takes_no_memory(tmp_path: Path) -> None:
    text = b"\x80\x02]" + TENSOR + b"r" + struct.pack("<I", 1 << 27) + b"a."
    before = peak_memory()
    assert len(open_tensors(torch_file(tmp_path / "m.pt", text))) == 1
    assert peak_memory() - before < 200 * MEGABYTE


def test_containers_in_themselves_come_to_an_end(tmp_path: Path) -> None:
    itself = b"\x80\x02]q\x00(h\x00h\x00h\x00" + TENSOR + b"e."
    assert [e.name for e in open_tensors(torch_file(tmp_path / "m.pt", itself))] == ["3"]


def test_containers_twice_at_every_level_come_to_an_end(tmp_path: Path) -> None:
    levels = b"".join(b"](h%ch%ceq%c" % (i, i, i + 1) for i in range(28))
    text = b"\x80\x02]q\x00" + TENSOR + b"a" + levels + b"."
    assert len(open_tensors(torch_file(tmp_path / "m.pt", text))) == 1


def test_a_pickle_sets_no_attribute_of_ours(tmp_path: Path) -> None:
    first = torch_records.first_argument
    text = (
        b"\x80\x02]ctorch._utils\n_rebuild_parameter\nN}X\x0c\x00\x00\x00__defaults__(K\x01ts\x86ba"
    )
    open_tensors(torch_file(tmp_path / "m.pt", text + TENSOR + b"a."))
    assert first.__defaults__ == (None,)


def test_a_pickle_changes_no_record(tmp_path: Path) -> None:
    state = pickle.dumps([None, None, -7, (-1,), ()], protocol=2)[2:-1]
    (entry,) = open_tensors(torch_file(tmp_path / "m.pt", b"\x80\x02]" + TENSOR + state + b"ba."))
    assert entry.shape == (2, 2)


def test_a_long_array_in_a_gguf_header_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    length = 512 * MEGABYTE
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"k")
        file.write(struct.pack("<IIQ", 9, 0, length))
        file.truncate(length + 1000)
    before = peak_memory()
    with pytest.raises(InputError, match="without tensors"):
        open_tensors(path)
    assert peak_memory() - before < 200 * MEGABYTE


@pytest.mark.parametrize("shape", [[1 << 70, 0], [1 << 62, 0], [0, *[1 << 40] * 3], [1] * 100])
def test_shapes_that_no_tensor_has(
    tmp_path: Path, shape: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    size = 0 if 0 in shape else 4
    header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, size]}}).encode()
    path = tmp_path / "m.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(size))
    assert run(["tensor", str(path)]) == 2
    assert "'a' with a shape" in capsys.readouterr().err


def test_a_shape_of_booleans(tmp_path: Path) -> None:
    header = b"{'descr':'<f4','fortran_order':False,'shape':(True,)}"
    path = tmp_path / "m.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(4))
    with pytest.raises(InputError, match="shape"):
        open_tensors(path)


def test_an_index_that_is_a_device(tmp_path: Path) -> None:
    (tmp_path / "m.index.json").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="regular"):
        open_tensors(tmp_path / "m.index.json")


def test_an_index_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.index.json")
    with pytest.raises(InputError, match="regular"):
        open_tensors(tmp_path / "m.index.json")


def test_an_index_with_a_null_byte(tmp_path: Path) -> None:
    path = tmp_path / "m.index.json"
    path.write_text(json.dumps({"weight_map": {"w": "a\0b.pt"}}))
    with pytest.raises(InputError, match="outside"):
        open_tensors(path)


def test_a_file_without_tensors_says_so(tmp_path: Path) -> None:
    save_file({}, tmp_path / "m.safetensors")
    with pytest.raises(InputError, match="without tensors"):
        open_tensors(tmp_path / "m.safetensors")


def test_the_next_command_quotes_names(tmp_path: Path) -> None:
    name = "a; touch b $(c)"
    save_file({name: torch.ones(4, 4), "z": torch.ones(4)}, tmp_path / "m x.safetensors")
    report = answer_for_file(TensorOptions(str(tmp_path / "m x.safetensors")), "en", no_progress)
    assert report.answer is not None
    words = ["torchstone", "tensor", str(tmp_path / "m x.safetensors"), "--name", name]
    assert shlex.split(report.answer.next[0]) == words


def test_broken_values_come_before_readiness(tmp_path: Path) -> None:
    save_file(
        {"a": torch.full((4, 4), torch.nan), "b": torch.ones(4, 4)}, tmp_path / "m.safetensors"
    )
    report = answer_for_file(TensorOptions(str(tmp_path / "m.safetensors")), "en", no_progress)
    assert report.answer is not None
    said = (
        "1 tensor holds NaN or infinite values. Ready for fp8: 1 of 2 matrices with one scale each"
    )
    assert report.answer.headline.en == said


@pytest.mark.parametrize("kind", ["<c8", ">c16"])
def test_imaginary_parts_are_read(tmp_path: Path, kind: str) -> None:
    np.save(tmp_path / "c.npy", np.array([[1 + 300j, 2 - 5j]]).astype(kind))
    (entry,) = open_tensors(tmp_path / "c.npy")
    source = entry.source()
    assert source.shape == (1, 2, 2)
    assert source.sample_grid(100).reshape(-1).tolist() == [1, 300, 2, -5]
