"""The C pass and the torch fallback give the same counts, for every format and every odd value."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from torchstone.watch.read.device_reader import DeviceReader
from torchstone.watch.read.fused import Fused
from torchstone.watch.read.host_reader import HostReader
from torchstone.watch.read.reading import (
    Query,
    numpy_step,
    plain,
    torch_rows,
    torch_samples,
)
from torchstone.watch.read.tensor_summary import summarise

LEVELS = np.array([1, 102, 113, 102, 110, 113, 117, 121], np.uint8)


def _query(count: int, histogram: bool = True) -> Query:
    return Query(LEVELS, np.full(count, 65520.0), histogram)


def _odd_tensors(dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    base = torch.randn(9000, generator=generator) * 10.0 ** torch.randint(
        -30, 5, (9000,), generator=generator
    )
    special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-45, 65520.0,
                            65519.0, 2.0**-25, 2.0**-24, 3e38, -3e38])  # fmt: skip
    tensors = [
        base, torch.zeros(5000), special, torch.cat([base[:4095], special]), torch.empty(0),
        torch.randn(1, generator=generator), torch.full((8192,), 1e-42), torch.full((77,), 3e38),
        torch.randn(64, 33, generator=generator).t(), torch.randn(3, 4, 5, 6)[:, ::2],
        torch.randn(2, 8, 5, 5).to(memory_format=torch.channels_last),
    ]  # fmt: skip
    return [item.to(dtype) for item in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_fallback_agrees(dtype: torch.dtype, built: Fused) -> None:
    tensors = _odd_tensors(dtype)
    [reading] = HostReader(tensors, built).read(0, tensors, _query(len(tensors)))
    rows, histograms = torch_rows(tensors, _query(len(tensors)))
    for name in ("nan", "infinite", "zero", "beyond", "below", "largest"):
        np.testing.assert_array_equal(reading.rows[name], rows[name], err_msg=name)
    np.testing.assert_allclose(reading.rows["sum_of_squares"], rows["sum_of_squares"], rtol=1e-5)
    assert reading.histograms is not None
    np.testing.assert_array_equal(reading.histograms, histograms)


def test_samples_and_steps_agree(built: Fused) -> None:
    tensors = [plain(t) for t in _odd_tensors(torch.float32)]
    reader = HostReader(tensors, built)
    before = reader.sample(tensors)
    np.testing.assert_array_equal(before, torch_samples(tensors))
    moved = [t + (torch.arange(t.numel()).reshape(t.shape) % 3 == 0) * 0.5 for t in tensors]
    after = reader.sample(moved)
    last = np.zeros((2 * len(tensors), before.shape[1]), np.float32)
    for gradients in (before, -before):  # the second time there is a past
        c = reader.step(before, after, gradients)
        python = numpy_step(reader.sizes, before, after, gradients, last)
    for name in ("changed", "pushed", "absorbed", "not_finite", "digest"):
        np.testing.assert_array_equal(c[name], python[name], err_msg=name)
    finite = np.isfinite(python["update_squares"])
    for name in ("update_squares", "gradient_squares", "along", "again", "straight"):
        np.testing.assert_allclose(c[name][finite], python[name][finite], rtol=1e-6, err_msg=name)
    assert python["again"][finite].any()
    assert python["straight"][finite].any()


def test_weights_are_sampled_again_only_where_they_changed(built: Fused) -> None:
    weights = [torch.randn(64, 8), torch.randn(3), torch.randn(100).bfloat16()]
    reader = HostReader(weights, built)
    first = reader.sample(weights)
    assert all(reader.sample_again(weights, first, update) is first for update in range(4))
    weights[1][2] += 1  # a small tensor is compared as a whole
    second = reader.sample_again(weights, first, 0)
    np.testing.assert_array_equal(second, torch_samples(weights))
    weights[0].view(-1)[16 * 5] += 1  # the sixth of its samples has its turn with its quarter
    assert [reader.sample_again(weights, second, update) is second for update in range(4)] == [
        True, False, True, True,
    ]  # fmt: skip
    third = reader.sample_again(weights, second, 1)
    moved = [weights[0].clone(), *weights[1:]]
    assert reader.sample_again(moved, third, 0) is not third, "elsewhere, so looked at"


@pytest.mark.parametrize("shape", [(1,), (7, 100), (4096, 3), (2048, 2)])
def test_a_glance_is_the_same_in_c_and_in_numpy(
    shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = torch.randn(shape).relu() - 0.3 * (torch.rand(shape) < 0.2)
    seen = summarise(values, 512)
    monkeypatch.setattr("torchstone.watch.read.tensor_summary.load_fused", lambda: "no compiler")
    told = summarise(values, 512)
    assert seen[0] == told[0] == len(values.flatten()[:: max(1, values.numel() // 512) | 1])
    assert (seen.zeros, seen.negative) == (told.zeros, told.negative)
    assert seen.squares == pytest.approx(told.squares)


def test_the_sum_of_squares_comes_with_the_pass(built: Fused) -> None:
    tensors = [torch.randn(5000), torch.randn(7)]
    query = _query(2)
    [reading] = HostReader(tensors, built).read(0, tensors, query)
    assert reading.whole == pytest.approx(sum(float(t.double().square().sum()) for t in tensors))
    tensors[1][3] = float("inf")
    [bad] = HostReader(tensors, built).read(0, tensors, query)
    assert np.isnan(bad.whole)
    bad.squares = None  # as where it comes from a device
    assert np.isnan(bad.whole)


def test_missing_gradients_leave_empty_rows(built: Fused) -> None:
    tensors = [torch.ones(10), torch.ones(20)]
    [reading] = HostReader(tensors, built).read(0, [None, torch.ones(20)], _query(2))
    assert reading.present.tolist() == [False, True]
    assert reading.rows["sum_of_squares"].tolist() == [0.0, 20.0]


def test_without_a_compiler_there_may_be_no_gradient_at_all() -> None:
    reader = HostReader([torch.ones(3), torch.ones(2)], "no compiler")
    for update, histogram in ((0, True), (1, False)):
        [reading] = reader.read(update, [None, None], _query(2, histogram))
        assert not reading.present.any()
        assert reading.whole == 0.0


def test_without_a_compiler_norms_are_read_by_torch() -> None:
    tensors = [torch.full((4,), 3.0), torch.tensor([float("nan")])]
    reader = HostReader(tensors, "no compiler")
    assert reader.reason == "no compiler"
    [reading] = reader.read(1, tensors, _query(2, histogram=False))
    assert not reading.counted
    assert reading.rows["sum_of_squares"][0] == pytest.approx(36.0)
    assert reading.rows["nan"].tolist() == [0, 1]
    [counted] = reader.read(50, tensors, _query(2))
    assert counted.counted
    assert counted.rows["zero"].tolist() == [0, 0]


class _NoWaiting(torch.overrides.TorchFunctionMode):
    """Refuses what would make the host wait for a device."""

    def __torch_function__(self, function, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if getattr(function, "__name__", "") in {"item", "tolist", "__bool__", "nonzero", "cpu"}:
            raise AssertionError(f"{function.__name__} waits for the device")
        return function(*args, **(kwargs or {}))


def test_the_device_reader_never_waits_and_arrives_late() -> None:
    tensors = [torch.ones(100), torch.full((10,), 2.0), torch.tensor([float("inf")])]
    reader = DeviceReader(tensors, every=4)
    with _NoWaiting():
        arrived = [
            reader.read(update, [t * (update + 1) for t in tensors], _query(3))
            for update in range(8)
        ]
    assert [len(item) for item in arrived] == [0, 0, 0, 4, 0, 0, 0, 4]
    late = arrived[3]
    assert [item.update for item in late] == [0, 1, 2, 3]
    assert np.sqrt(late[2].rows["sum_of_squares"][0]) == pytest.approx(30.0)
    assert late[0].rows["infinite"].tolist() == [0, 0, 1]
    assert late[3].histograms is not None
