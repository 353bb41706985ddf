"""`.pt` files with tensors that are more than an array: read where they can be, listed where not."""

from __future__ import annotations

import resource
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch

from torchstone.cli.main import run
from torchstone.core.errors import InputError
from torchstone.tensors.files import StoredTensor, open_tensors
from torchstone.tensors.files.answer import answer_for_file
from torchstone.tensors.options import TensorOptions

pytestmark = pytest.mark.filterwarnings("ignore")
WEIGHT = torch.linspace(-3, 3, 32).reshape(8, 4)
SCALES, ZEROS = torch.linspace(0.01, 0.1, 8), torch.arange(8)


def no_progress(place: int, count: int, name: str) -> None: ...


def saved(path: Path, **tensors: torch.Tensor) -> dict[str, StoredTensor]:
    torch.save(tensors, path / "m.pt")
    return {entry.name: entry for entry in open_tensors(path / "m.pt")}


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("kind", [torch.qint8, torch.quint8, torch.qint32])
def test_quantised_tensors_are_dequantised(tmp_path: Path, kind: torch.dtype, legacy: bool) -> None:
    tensors = {
        "whole": torch.quantize_per_tensor(WEIGHT, 0.05, 3, kind),
        "rows": torch.quantize_per_channel(WEIGHT, SCALES, ZEROS, 0, kind),
        "columns": torch.quantize_per_channel(WEIGHT.T.contiguous(), SCALES, ZEROS, 1, kind),
        "turned": torch.quantize_per_channel(
            WEIGHT.reshape(8, 2, 2, 1).to(memory_format=torch.channels_last), SCALES, ZEROS, 0, kind
        ),
        "plain": WEIGHT,
    }
    path = tmp_path / "m.pt"
    torch.save(tensors, path, _use_new_zipfile_serialization=not legacy)
    found = {entry.name: entry for entry in open_tensors(path)}
    assert set(found) == set(tensors)
    for name, entry in found.items():
        wanted = tensors[name]
        wanted = wanted.dequantize() if wanted.is_quantized else wanted
        torch.testing.assert_close(entry.load(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse_tensors_are_read_as_their_stored_values(tmp_path: Path, layout: str) -> None:
    dense = torch.eye(4) * torch.arange(1.0, 5.0)
    layouts = {"coo": torch.sparse_coo, "csr": torch.sparse_csr, "csc": torch.sparse_csc}
    made = dense.to_sparse(
        layout=layouts.get(layout, torch.sparse_bsr), blocksize=(2, 2) if layout == "bsr" else None
    )
    entry = saved(tmp_path, sparse=made, plain=WEIGHT)["sparse"]
    values = entry.load()
    assert sorted(values[values != 0].tolist()) == [1.0, 2.0, 3.0, 4.0]
    assert entry.source().dtype == f"float32 sparse_{layout} of 4×4"


def test_an_expanded_tensor_is_read_once(tmp_path: Path) -> None:
    found = saved(tmp_path, row=torch.arange(3.0).expand(5, 3), one=torch.ones(()).expand(4, 4))
    assert found["row"].load().tolist() == [[0.0, 1.0, 2.0]]
    assert found["row"].source().dtype == "float32 expanded to 5×3"
    assert found["one"].count == 1


def test_a_hostile_stride_takes_no_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    huge = torch.ones(1).expand(1 << 20, 1 << 20)
    windows = torch.arange(4000.0).as_strided((2000, 2000), (1, 1))
    saved(tmp_path, huge=huge, windows=windows, plain=WEIGHT)
    report = answer_for_file(TensorOptions(str(tmp_path / "m.pt")), "en", no_progress)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024
    assert [gap.subject for gap in report.gaps] == ["windows"]
    assert "many times" in report.gaps[0].reason.say("en")


def test_what_cannot_be_read_is_listed_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = saved(tmp_path, meta=torch.empty(3, 4, device="meta"), a=WEIGHT, b=WEIGHT)
    assert np.allclose(found["a"].load(), WEIGHT)
    file = shlex.quote(str(tmp_path / "m.pt"))
    assert run(shlex.split(f"tensor {file}")) == 3
    out = capsys.readouterr().out
    assert "meta device" in out
    assert "1 of 3 tensors could not be read: meta" in out
    assert "Ready for fp8: 2 of 2" in out
    assert run(shlex.split(f"tensor {file} --name meta")) == 2
    with pytest.raises(InputError, match="meta device"):
        found["meta"].source()


def test_a_large_transposed_tensor_is_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    from torchstone.tensors.files import stored

    entry = saved(tmp_path, turned=WEIGHT.T)["turned"]
    limit, stored.WHOLE = stored.WHOLE, 16
    try:
        assert entry.source().shape == (8, 4)
    finally:
        stored.WHOLE = limit
    assert torch.equal(entry.load(), WEIGHT.T)


def test_a_conjugate_view_of_a_new_type_keeps_its_type(tmp_path: Path) -> None:
    found = saved(tmp_path, f8=WEIGHT.to(torch.float8_e4m3fn), conj=torch.ones(2, 2) + 1j)
    assert found["f8"].dtype == torch.float8_e4m3fn
    assert found["conj"].source().shape == (2, 2, 2)
