"""The kept figures of kernels are those that the entries launch."""

from __future__ import annotations

import pytest
from benchmarks.flow.count_kernels import count_entry

from torchstone.dataflow.migration import catalogue
from torchstone.dataflow.migration.proof.kernels import kernel_counts

MOST = {
    "cv2.resize": 11, "cv2.cvtColor": 51, "cv2.GaussianBlur": 7, "cv2.warpAffine": 22, "cv2.warpPerspective": 31,
    "cv2.flip": 1, "cv2.normalize": 21, "cv2.copyMakeBorder": 2, "cv2.erode": 6, "cv2.dilate": 9,
}  # fmt: skip
"""Launches that no call of the functions of public pipelines needs more than."""


@pytest.mark.parametrize("name", sorted(MOST))
def test_counts_are_those_of_the_entry(name: str) -> None:
    kept = kernel_counts()[name]
    for case, found in count_entry(catalogue()[name], draws=24, most=3).items():
        assert kept[case].low <= found.low <= found.high <= kept[case].high, case
        assert found.uploads <= kept[case].uploads
        assert found.fused <= kept[case].fused
    assert kept[""].high <= MOST[name]


def test_every_entry_has_figures() -> None:
    missing = set(catalogue()) - set(kernel_counts())
    assert {name.partition(".")[0] for name in missing} <= {
        "librosa"
    }  # not installed where they were made
