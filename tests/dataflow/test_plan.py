"""A plan is checked when it is read; calls find their device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchstone.core.errors import InputError
from torchstone.dataflow.plan import (
    ContextIndex,
    MigrationPlan,
    context_key,
    load_plan,
    normalize_context_key,
    plan_from_data,
)

MAP = {
    "main/prepare/cv2.resize": "cuda:0",
    "cv2.flip": "cuda:1",
    "blur": "cpu",
    "a/load/cv2.dilate": "cuda:0",
    "b/load/cv2.dilate": "cpu",
    "load/cv2.erode@7": "cuda:0",
    "load/cv2.erode@9": "cpu",
}


@pytest.mark.parametrize(
    ("path", "function", "device"),
    [
        (["main", "prepare"], "cv2.resize", "cuda:0"),
        (["<module>", "main", "prepare"], "cv2.resize", "cuda:0"),
        (["prepare"], "cv2.resize", "cuda:0"),
        (["main#3", "prepare#1"], "cv2.resize", "cuda:0"),
        (["train", "prepare"], "cv2.resize", "cuda:0"),
        (["other"], "cv2.resize", "cuda:0"),
        (["x", "a", "load"], "cv2.dilate", "cuda:0"),
        (["b", "load"], "cv2.dilate", "cpu"),
        (["c", "load"], "cv2.dilate", None),
        (["load"], "cv2.erode", None),
        (["load"], "cv2.erode:9", "cpu"),
        (["main", "load"], "cv2.erode:7", "cuda:0"),
        (["other"], "cv2.unknown", None),
        (["anything"], "cv2.flip", "cuda:1"),
        ([], "cv2.blur", "cpu"),
    ],
)
def test_exact_suffix_and_name(path: list[str], function: str, device: str | None) -> None:
    """Where entries fit equally well and disagree, the call stays."""
    name, _, line = function.partition(":")
    match = ContextIndex(MAP).find(path, name, int(line or 0))
    assert (match and match.device) == device


def test_only_a_path_that_is_wholly_there_is_a_whole_match() -> None:
    index = ContextIndex(MAP)
    for path, is_whole in ((["top", "main", "prepare"], True), (["x", "prepare"], False)):
        match = index.find(path, "cv2.resize")
        assert match is not None
        assert match.is_whole is is_whole


def test_keys() -> None:
    assert context_key(["a", "b"], "cv2.resize", 3) == "a/b/cv2.resize@3"
    assert normalize_context_key("a#1/b#22/cv2.resize#3@7") == "a/b/cv2.resize@7"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"schema": "torchstone/flow-plan/9", "context_device_map": {}},
        {"context_device_map": {"a": 3}},
        {"context_device_map": {"a": "../../etc"}},
        {"context_device_map": {"": "cpu"}},
    ],
)
def test_a_plan_that_is_none_is_refused(data: object) -> None:
    with pytest.raises(InputError):
        plan_from_data(data)


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(MigrationPlan(MAP).to_data()))
    assert load_plan(path).context_device_map == MAP
    path.write_text("{")
    for wrong in (path, tmp_path, tmp_path / "none"):
        with pytest.raises(InputError):
            load_plan(wrong)
