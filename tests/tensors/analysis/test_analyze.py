"""`analyze_tensor`: the seed's case, the axis that is found, what is measured, and odd inputs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from torchstone import analyze_tensor
from torchstone.core.errors import InputError, UsageError
from torchstone.tensors.formats import all_formats


def boxes(rows: int = 1000) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    large = torch.rand(rows, generator=generator) * 2200 - 1000
    small = torch.rand(rows, generator=generator) * 2.3 - 1.5
    large[0], large[1], small[0], small[1] = -1000, 1200, -1.5, 0.8
    return torch.stack([large, small], dim=1)


def test_the_case_of_the_specification() -> None:
    report = analyze_tensor(boxes(), name="bbox_pred", lang="zh")
    assert report["shape"] == (1000, 2)
    assert report["dim_stats"][0]["min"] == -1000
    assert report["dim_stats"][0]["max"] == 1200
    assert report["dim_stats"][1]["max"] == pytest.approx(0.8)
    assert set(report["dim_stats"]) == {0, 1}
    assert report["dim_ratio"] == pytest.approx(1500)
    assert report["risk_level"] == report.risk_level == "HIGH"
    assert "维度1数值范围小" in report["suggestion"]
    assert "reduce时建议用FP32" in report["suggestion"]
    assert report.axis == 1
    english = analyze_tensor(boxes(), lang="en").suggestion
    assert "dimension 1 has a small range: reduce in FP32" in english


def test_it_reads_as_mapping_object_text_and_page() -> None:
    report = analyze_tensor(boxes(), name="bbox_pred", lang="en")
    assert list(report)[:2] == ["name", "shape"]
    assert dict(report)["dim_ratio"] == report.dim_ratio
    with pytest.raises(KeyError):
        report["nothing"]
    assert str(report).startswith("✗ ranges along axis 1 differ by 1,500 ×")
    assert "800" not in str(report)  # one ratio, the one of `dim_ratio`
    assert "bbox_pred: [HIGH]" in report.to("text", detail=2)
    assert "<iframe" in report._repr_html_()
    assert json.loads(report.to_json())["findings"][0]["rule"] == "tensor-unbalanced-axis"


def test_the_axis_is_found_or_given() -> None:
    assert analyze_tensor(boxes().T).axis == 0
    assert analyze_tensor(boxes().T.reshape(2, 10, 100)).axis == 0
    assert analyze_tensor(boxes().reshape(10, 100, 2)).axis == 2
    assert analyze_tensor(boxes(), axis=0).axis == 0
    assert analyze_tensor(boxes(), axis=-1).axis == 1
    with pytest.raises(UsageError, match="axis 2"):
        analyze_tensor(boxes(), axis=2)


def test_a_balanced_tensor_is_left_alone() -> None:
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        report = analyze_tensor(torch.randn(256, 64, generator=generator))
        assert report.risk_level == "LOW", report
        assert not report.findings


def test_one_stray_negative_makes_no_ratio() -> None:
    x = torch.rand(1000, 4) + 1
    x[0, 2] = -1e-9
    assert analyze_tensor(x).dim_ratio < 2


def test_every_remedy_is_measured_and_better() -> None:
    report = analyze_tensor(boxes())
    remedies = {item.name: item for item in report.remedies}
    assert remedies["reduce in fp32"].lost < 0.001
    assert remedies["scale per axis"].lost < 0.03
    assert 0.03 < remedies["other format"].lost < remedies["other format"].before
    assert remedies["granularity"].lost < 0.1 * remedies["granularity"].before


def test_a_loss_scale_is_proposed_for_vanishing_gradients() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = torch.exp(2 * torch.randn(100_000, generator=generator)) * 1e-7
    report = analyze_tensor(gradients)
    scale = next(item for item in report.remedies if item.name == "loss scale")
    fp16 = next(item for item in report.formats if item.format == "fp16")
    assert fp16.flushed == scale.before > 0.01
    assert scale.lost < 0.001
    power = int(scale.action.en.split("2^")[1].split()[0])
    cast = (gradients * 2.0**power).half()
    assert float((cast == 0).double().mean()) == pytest.approx(scale.lost, abs=1e-6)
    assert cast.isfinite().all()
    assert report.risk_level == "MEDIUM"


def test_what_sqnr_hides_is_shown() -> None:
    """Outlier columns in int8: 99 % of the values are gone, and SQNR is still 30 dB."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(512, 512, generator=generator)
    x[:, :2] *= 1000
    report = analyze_tensor(x)
    int8 = next(item for item in report.formats if item.format == "int8")
    assert int8.flushed > 0.98
    assert int8.sqnr_db > 30
    assert int8.cosine > 0.999
    assert int8.median_error == 1
    assert int8.worst_column is not None
    assert int8.worst_column.sqnr_db < 1
    by_column = [f for f in report.what_if if (f.format, f.granularity) == ("int8", "column")]
    assert by_column[0].flushed < 0.02


def test_reductions_are_measured_against_fp64() -> None:
    report = analyze_tensor(boxes())
    errors = {(item.format, item.operation): item.error for item in report.reductions}
    x = boxes()
    wanted = (x.bfloat16().float().sum(1).bfloat16().double() - x.double().sum(1)).norm()
    assert errors["bf16", "sum"] == pytest.approx(float(wanted / x.double().sum(1).norm()), rel=0.5)
    assert errors["bf16", "sum"] > 4 * errors["fp16", "sum"]
    assert {"sum", "running sum", "mean", "norm", "softmax", "matmul"} == {
        item.operation for item in report.reductions
    }


ODD: dict[str, Any] = {
    "0-d": torch.tensor(3.0),
    "empty": torch.zeros(0),
    "empty matrix": torch.zeros(0, 5),
    "one": torch.ones(1, 1),
    "bool": torch.ones(3, 4, dtype=torch.bool),
    "int64": torch.arange(12).reshape(3, 4),
    "uint8": torch.arange(12, dtype=torch.uint8).reshape(3, 4),
    "fp64": torch.randn(3, 4, dtype=torch.float64),
    "fp64 beyond fp32": torch.tensor([[1e300, 1e-300], [1.0, 2.0]], dtype=torch.float64),
    "fp16": torch.randn(3, 4).half(),
    "bf16": torch.randn(3, 4).bfloat16(),
    "e4m3": torch.randn(3, 4).to(torch.float8_e4m3fn),
    "e5m2": torch.randn(3, 4).to(torch.float8_e5m2),
    "complex": torch.randn(3, 4, dtype=torch.complex64),
    "conj": torch.randn(3, 4, dtype=torch.complex64).conj(),
    "transposed": torch.randn(40, 30).T,
    "strided": torch.randn(40, 30)[::3, ::2],
    "expanded": torch.randn(1, 30).expand(40, 30),
    "sparse coo": torch.eye(5).to_sparse(),
    "sparse csr": torch.eye(5).to_sparse_csr(),
    "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "all nan": torch.full((3, 4), torch.nan),
    "all inf": torch.full((3, 4), torch.inf),
    "mixed": torch.tensor([[1.0, torch.nan], [torch.inf, 2.0]]),
    "all zero": torch.zeros(3, 4),
    "parameter": torch.nn.Parameter(torch.randn(3, 4)),
    "quantised": torch.quantize_per_tensor(torch.randn(3, 4), 0.1, 0, torch.qint8),
    "numpy": np.random.default_rng(0).random((3, 4)),
    "numpy big-endian": np.arange(12, dtype=">f4").reshape(3, 4),
    "numpy reversed": np.arange(12.0)[::-1],
    "numpy read-only": np.broadcast_to(np.float32(1), (3, 4)),
    "numpy longdouble": np.ones((3, 4), np.longdouble),
    "numpy scalar": np.float32(2.5),
}


@pytest.mark.parametrize("name", list(ODD))
def test_odd_tensors_are_reported_whole(name: str) -> None:
    report = analyze_tensor(ODD[name], name=name)
    assert len(report.formats) == len(all_formats())
    json.loads(report.to_json())
    for lang in ("en", "zh"):
        assert report.to("text", lang)
    assert name in report.to("html")


def test_broken_values_are_high_risk_and_left_out_of_the_errors() -> None:
    x = torch.randn(64, 64)
    x[3, 4], x[5, 6] = torch.nan, torch.inf
    report = analyze_tensor(x)
    assert (report.contents.nans, report.contents.infinities) == (1, 1)
    assert report.risk_level == "HIGH"
    assert report.findings[0].rule == "tensor-nonfinite"
    assert all(np.isfinite(item.sqnr_db) for item in report.formats)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("abc", "a str"),
        ([1.0, 2.0], "a list"),
        (None, "a NoneType"),
        (np.array([object()]), "an array of object"),
        (np.array(["a"]), "an array of <U1"),
        (torch.empty(3, device="meta"), "meta device"),
    ],
)
def test_what_is_no_tensor_is_refused(value: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        analyze_tensor(value, name="x")


def test_unknown_formats_and_granularities_are_refused() -> None:
    with pytest.raises(UsageError, match="fp17"):
        analyze_tensor(torch.ones(3), formats=["fp17"])
    with pytest.raises(UsageError, match="diagonal"):
        analyze_tensor(torch.ones(3), granularities=["diagonal"])


def test_exact_figures_come_from_every_value() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.exp(2 * torch.randn(700, 1000, generator=generator))
    report = analyze_tensor(
        x, formats=["bf16", "e4m3", "int8"], granularities=["tensor"], exact=True
    )
    for figures in report.formats:
        item = all_formats()[figures.format]
        from torchstone.tensors.formats import quantize

        back = quantize(x, item).values.double()
        noise = float(((back - x.double()) ** 2).sum() / (x.double() ** 2).sum())
        assert figures.sqnr_db == pytest.approx(-10 * np.log10(noise), abs=1e-6)
        relative = ((back - x.double()).abs() / x.double()).median()
        assert figures.median_error == pytest.approx(float(relative), rel=1e-3)


def test_a_large_strided_tensor_is_not_copied() -> None:
    """An expanded tensor of 2^30 values costs no memory, so neither may its analysis."""
    import resource

    x = torch.randn(1, 1 << 15).expand(1 << 9, 1 << 15)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    analyze_tensor(x, granularities=["tensor"], formats=["bf16"])
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 << 10  # KiB; the whole would be 64 MiB


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_two_indices_of_a_large_tensor_are_compared_position_by_position(axis: int) -> None:
    """Whichever indices are furthest apart, on the thinned-out grid or beside it."""
    shape = [70, 90, 110]
    for large, small in ((0, 1), (3, 64), (61, 2)):
        x = torch.ones(shape)
        x.select(axis, large).fill_(4096.0)
        x.select(axis, small).fill_(2.0**-3)
        report = analyze_tensor(x, axis=axis, granularities=("tensor",), formats=["bf16"])
        assert report.small_index_lost == 1.0
        assert report.risk_level == "HIGH"


@pytest.mark.parametrize("scale", [1e6, 1e-9, 1e300])
def test_what_leaves_the_range_is_no_imbalance(scale: float) -> None:
    torch.manual_seed(0)
    report = analyze_tensor(torch.randn(200, 8, dtype=torch.float64) * scale)
    assert all(item.rule != "tensor-unbalanced-axis" for item in report.report.findings)
    assert report.risk_level == "MEDIUM"
