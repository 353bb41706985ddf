"""Every format read back as it was written, whole and in pieces, and never trusted."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from torchstone.cli.main import run
from torchstone.core.errors import InputError
from torchstone.tensors.files import open_tensors, stored
from torchstone.tensors.files.stored import FileSource


def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "layers.0.weight": torch.randn(24, 40),
        "layers.0.half": torch.randn(5, 7).half(),
        "layers.1.weight": torch.randn(24, 40).bfloat16(),
        "layers.1.fp8": torch.randn(4, 8).to(torch.float8_e4m3fn),
        "steps": torch.arange(3),
        "empty": torch.zeros(0, 4),
        "scalar": torch.tensor(2.5),
    }


def same(path: Path, wanted: dict[str, torch.Tensor]) -> None:
    found = {entry.name: entry.load() for entry in open_tensors(path)}
    assert set(found) == set(wanted)
    for name, tensor in wanted.items():
        assert found[name].dtype == tensor.dtype, name
        assert torch.equal(found[name].float(), tensor.float()), name


def test_safetensors(tmp_path: Path) -> None:
    save_file(weights(), tmp_path / "m.safetensors")
    same(tmp_path / "m.safetensors", weights())


@pytest.mark.parametrize("zipped", [True, False])
def test_torch_files(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "m.pt"
    base = torch.randn(6, 8)
    wanted = {**weights(), "transposed": base.T, "slice": base[1:3, ::2]}
    if not zipped:  # legacy files know no fp8
        wanted.pop("layers.1.fp8")
    torch.save(OrderedDict(wanted), path, _use_new_zipfile_serialization=zipped)
    same(path, wanted)


def test_nested_checkpoints_parameters_and_other_data(tmp_path: Path) -> None:
    import argparse

    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(1, 3)).sum().backward()
    optimizer.step()
    path = tmp_path / "c.ckpt"
    torch.save(
        {"state_dict": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3,
         "args": argparse.Namespace(lr=1.0), "own": model.weight, "np": np.float64(3)}, path,
    )  # fmt: skip
    names = {entry.name for entry in open_tensors(path)}
    assert {"state_dict.weight", "state_dict.bias", "own", "optimizer.state.0.exp_avg"} <= names


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<f4", ">f4", "<f8", "<f2", "<i4", "|b1", "<c8"])
def test_npy(tmp_path: Path, order: Any, kind: str) -> None:
    values = np.asarray(np.arange(12).reshape(3, 4), dtype=kind, order=order)
    np.save(tmp_path / "a.npy", values)
    (entry,) = open_tensors(tmp_path / "a.npy")
    wanted = values.T if order == "F" else values
    assert np.array_equal(entry.load().numpy(), wanted)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    values = {"a": np.random.default_rng(0).random((30, 5)), "b": np.ones(7, np.float32)}
    save(tmp_path / "z.npz", **values)
    found = {entry.name: entry.load().numpy() for entry in open_tensors(tmp_path / "z.npz")}
    assert all(np.array_equal(found[name], values[name]) for name in values)


def test_gguf(tmp_path: Path) -> None:
    import gguf

    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_array("tokens", ["a", "b", "c"])
    writer.add_uint32("n", 7)
    plain = np.random.default_rng(0).standard_normal((6, 64)).astype(np.float32)
    writer.add_tensor("plain", plain)
    writer.add_tensor("half", plain.astype(np.float16))
    for kind in (gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_0):
        packed = gguf.quants.quantize(plain, kind)
        writer.add_tensor(kind.name, packed, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = {entry.name: entry for entry in open_tensors(tmp_path / "m.gguf")}
    assert np.array_equal(found["plain"].load().numpy(), plain)
    assert np.array_equal(found["half"].load().numpy(), plain.astype(np.float16))
    for name in ("Q8_0", "Q4_0"):
        kind = gguf.GGMLQuantizationType[name]
        wanted = gguf.quants.dequantize(gguf.quants.quantize(plain, kind), kind)
        assert found[name].shape == (6, 64)
        assert np.array_equal(found[name].load().numpy(), wanted)
        assert np.array_equal(found[name].values(70, 9).numpy(), wanted.reshape(-1)[70:79])


def test_shards_and_folders(tmp_path: Path) -> None:
    parts = list(weights().items())
    save_file(dict(parts[:3]), tmp_path / "model-1.safetensors")
    save_file(dict(parts[3:]), tmp_path / "model-2.safetensors")
    table = {name: f"model-{1 if i < 3 else 2}.safetensors" for i, (name, _) in enumerate(parts)}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": table}))
    same(index, weights())
    same(tmp_path, weights())
    index.unlink()
    same(tmp_path, weights())


def test_links_of_the_hugging_face_cache_are_followed(tmp_path: Path) -> None:
    snapshot = tmp_path / "models--a" / "snapshots" / "rev"
    blobs = tmp_path / "models--a" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    save_file({"w": torch.ones(2)}, blobs / "abc")
    (snapshot / "m.safetensors").symlink_to(blobs / "abc")
    index = snapshot / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": "m.safetensors"}}))
    same(index, {"w": torch.ones(2)})


@pytest.mark.parametrize("packed", [False, True])
def test_large_tensors_are_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """The same report whether a tensor is loaded or read in pieces."""
    values = np.random.default_rng(0).standard_normal((300, 64)).astype(np.float32)
    values[:, 3] *= 1000
    (np.savez_compressed if packed else np.savez)(tmp_path / "z.npz", a=values)
    (entry,) = open_tensors(tmp_path / "z.npz")
    from torchstone.tensors.analysis.analyze import analyze_source
    from torchstone.tensors.formats import find_formats

    def report() -> Any:
        return analyze_source(
            entry.source(),
            "a",
            None,
            find_formats(["bf16", "e4m3"]),
            ("tensor", "row"),
            False,
            "en",
        )

    whole = report()
    monkeypatch.setattr(stored, "WHOLE", 1000)
    pieces = report()
    assert isinstance(entry.source(), FileSource)
    assert (pieces.axis, pieces.dim_ratio, pieces.risk_level) == (
        whole.axis,
        whole.dim_ratio,
        whole.risk_level,
    )
    assert [f.flushed for f in pieces.formats] == [f.flushed for f in whole.formats]
    assert pieces.contents == whole.contents


# -- files that lie, and files that want to run code


class Runs:
    def __init__(self, *what: Any) -> None:
        self.what = what

    def __reduce__(self) -> Any:
        return self.what


def hostile_pickles(marker: Path) -> dict[str, bytes]:
    command = f"touch {marker}"
    calls: dict[str, Any] = {
        "os.system": Runs(os.system, (command,)),
        "eval": Runs(eval, (f"__import__('os').system({command!r})",)),
        "nested": {"weights": [1.0, Runs(os.system, (command,))]},
        "getattr": Runs(getattr, ("text", "upper")),
    }
    return {name: pickle.dumps(value) for name, value in calls.items()}


@pytest.mark.parametrize("name", ["os.system", "eval", "nested", "getattr"])
def test_a_pickle_that_wants_to_run_code_runs_nothing(tmp_path: Path, name: str) -> None:
    marker = tmp_path / "ran"
    data = hostile_pickles(marker)[name]
    zipped = tmp_path / "z.pt"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("archive/data.pkl", data)
    bare = tmp_path / "b.pt"
    bare.write_bytes(data)
    legacy = tmp_path / "l.pt"
    legacy.write_bytes(
        pickle.dumps(0x1950A86A20F9469CFC6C) + pickle.dumps(1001) + pickle.dumps({}) + data
    )
    for path in (zipped, bare, legacy):
        with pytest.raises(InputError, match="asks for"):
            open_tensors(path)
    assert not marker.exists()


def test_a_whole_module_is_refused_by_name(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), tmp_path / "m.pt")
    with pytest.raises(InputError, match=r"torch\.nn\.modules\.linear\.Linear"):
        open_tensors(tmp_path / "m.pt")


def test_a_tensor_larger_than_its_storage_is_refused(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(4).as_strided((3, 2), (1, 1))}, tmp_path / "m.pt")
    with pytest.raises(InputError, match="many times"):
        open_tensors(tmp_path / "m.pt")[0].source()


def header(table: Any, data: bytes = b"\0" * 16) -> bytes:
    text = table if isinstance(table, bytes) else json.dumps(table).encode()
    return struct.pack("<Q", len(text)) + text + data


W = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
LIES = {
    "nothing": b"",
    "no header": b"\1\2\3",
    "header beyond the file": struct.pack("<Q", 1 << 40) + b"{}",
    "no json": header(b"{nope"),
    "a list": header([1]),
    "twice": header(b'{"a": 1, "a": 2}'),
    "unknown dtype": header({"w": {**W, "dtype": "F99"}}),
    "negative": header({"w": {**W, "shape": [-4]}}),
    "not a number": header({"w": {**W, "shape": ["4"]}}),
    "true": header({"w": {**W, "shape": [True]}}),
    "too long": header({"w": {**W, "shape": [5]}}),
    "wraps": header({"w": {**W, "shape": [1 << 32, 1 << 32]}}),
    "overlap": header({"w": W, "v": W}),
    "gap": header({"w": {**W, "shape": [2], "data_offsets": [8, 16]}}),
    "truncated": header({"w": W}, b"\0" * 8),
    "too much": header({"w": W}, b"\0" * 32),
    "no offsets": header({"w": {"dtype": "F32", "shape": [4]}}),
    "deep": header(b"[" * 100_000),
}


@pytest.mark.parametrize("name", list(LIES))
def test_lying_safetensors_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(LIES[name])
    with pytest.raises(InputError):
        open_tensors(path)


@pytest.mark.parametrize(
    "target", ["../out.safetensors", "/etc/passwd", "a/../../out.safetensors", "link.safetensors"]
)
def test_an_index_may_not_leave_its_folder(tmp_path: Path, target: str) -> None:
    save_file({"w": torch.ones(2)}, tmp_path / "out.safetensors")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link.safetensors").symlink_to(tmp_path / "out.safetensors")
    (folder / "m.index.json").write_text(json.dumps({"weight_map": {"w": target}}))
    with pytest.raises(InputError, match="outside the folder"):
        open_tensors(folder / "m.index.json")


def npy_bytes(shape: str, kind: str = "'<f4'") -> bytes:
    text = f"{{'descr': {kind}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def test_lying_arrays_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    lies = {
        "huge": npy_bytes("(1000000, 1000000)"),
        "negative": npy_bytes("(-4,)"),
        "code": npy_bytes("(__import__('os').getpid(),)"),
        "object": buffer.getvalue(),
        "text": npy_bytes("(1,)", "'<U4'") + b"\0" * 16,
        "nothing": b"",
    }
    for name, data in lies.items():
        path = tmp_path / f"{name}.npy"
        path.write_bytes(data)
        with pytest.raises(InputError):
            open_tensors(path)


def test_lying_gguf_files_are_refused(tmp_path: Path) -> None:
    lies = {
        "magic": b"GGML" + b"\0" * 20,
        "short": b"GGUF",
        "version": b"GGUF" + struct.pack("<IQQ", 99, 1, 0),
        "many": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0),
        "string": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62),
        "beyond": b"GGUF"
        + struct.pack("<IQQQ", 3, 1, 0, 1)
        + b"w"
        + struct.pack("<IQIQ", 1, 1 << 50, 0, 0),
        "type": b"GGUF"
        + struct.pack("<IQQQ", 3, 1, 0, 1)
        + b"w"
        + struct.pack("<IQIQ", 1, 32, 999, 0),
    }
    for name, data in lies.items():
        path = tmp_path / f"{name}.gguf"
        path.write_bytes(data)
        with pytest.raises(InputError):
            open_tensors(path)


@pytest.mark.parametrize("ending", [".pt", ".npz", ".safetensors", ".gguf", ".npy", ".txt", ""])
def test_rubbish_is_one_line_and_exit_2(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"rubbish{ending}"
    path.write_bytes(np.random.default_rng(0).bytes(500))
    page = tmp_path / "page.html"
    assert run(["tensor", str(path), "-o", str(page)]) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert str(path) in said
    assert not page.exists()
    assert run(["tensor", str(tmp_path / "missing.npy")]) == 2
    assert run(["tensor", "/dev/null"]) == 2


@pytest.mark.parametrize("ending", [".pt", ".npz", ".safetensors", ".gguf"])
def test_truncated_and_altered_files_never_raise_anything_else(tmp_path: Path, ending: str) -> None:
    good = tmp_path / f"good{ending}"
    if ending == ".pt":
        torch.save(weights(), good)
    elif ending == ".npz":
        np.savez_compressed(good, a=np.random.default_rng(0).random((30, 5)))
    elif ending == ".safetensors":
        save_file(weights(), good)
    else:
        import gguf

        writer = gguf.GGUFWriter(good, "llama")
        writer.add_tensor("w", np.ones((4, 64), np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    data = good.read_bytes()
    chance = np.random.default_rng(1)
    bad = tmp_path / f"bad{ending}"
    for _ in range(150):
        altered = bytearray(data)
        for place in chance.integers(0, len(data), 3):
            altered[place] = chance.integers(0, 256)
        bad.write_bytes(bytes(altered)[: chance.integers(1, len(data) + 1)])
        try:
            for entry in open_tensors(bad):
                entry.load()
        except InputError:
            pass


# -- the command


def test_the_command_on_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    parts = {
        f"model.layers.{i}.{n}.weight": torch.randn(64, 64) for i in range(3) for n in ("q", "up")
    }
    parts["model.layers.1.q.weight"][5, 5] = 1e6
    parts["model.layers.2.q.weight"][5] *= 1e5
    parts["model.layers.2.up.weight"][0, 0] = float("nan")
    save_file(parts, tmp_path / "m.safetensors")
    assert run(["tensor", str(tmp_path / "m.safetensors"), "--lang", "en"]) == 1
    assert (
        "1 tensor holds NaN or infinite values. Ready for fp8: 3 of 6 matrices"
        in capsys.readouterr().out
    )
    assert run(["tensor", str(tmp_path / "m.safetensors"), "--lang", "en", "-v"]) == 1
    said = capsys.readouterr().out
    first = next(line for line in said.splitlines() if line.strip().startswith("HIGH"))
    assert "model.layers.2.up.weight" in first or "model.layers.1.q.weight" in first
    assert "1 of 4,096 values are NaN or infinite" in said
    assert run(["tensor", str(tmp_path / "m.safetensors"), "-o", str(tmp_path / "m.html")]) == 1
    page = (tmp_path / "m.html").read_text("utf-8")
    assert "model.layers.1" in page
    assert "riskiest" in page


def test_one_tensor_of_a_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_file(weights(), tmp_path / "m.safetensors")
    assert (
        run(
            [
                "tensor",
                str(tmp_path / "m.safetensors"),
                "--name",
                "layers.1.weight",
                "--lang",
                "en",
                "-v",
            ]
        )
        == 0
    )
    assert "What each format does" in capsys.readouterr().out
    assert run(["tensor", str(tmp_path / "m.safetensors"), "--name", "layers"]) == 2
    assert run(["tensor"]) == 2


def test_memory_stays_bounded(tmp_path: Path) -> None:
    """A sparse file of 800 MB, more than is loaded at once, grows the process by little."""
    import subprocess
    import sys

    path = tmp_path / "big.safetensors"
    table = json.dumps(
        {"w": {"dtype": "F16", "shape": [40_000, 10_000], "data_offsets": [0, 800_000_000]}}
    )
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(table)) + table.encode())
        file.truncate(8 + len(table) + 800_000_000)
    code = (
        "import re; from torchstone.cli.main import run;"
        f"code = run(['tensor', {str(path)!r}, '--quiet', '--format', 'json', '-o', {str(tmp_path / 'o.json')!r}]);"
        # not getrusage: its maximum is also that of the process it was forked from
        "kib = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]);"
        "print(code, kib // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    code_said, mebibytes = done.stdout.split()
    assert code_said == "0", done.stderr
    assert int(mebibytes) < 1200
