"""Calls, arrays and programs out of the ordinary get what the original gives, or the original."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from torchstone.dataflow import EnhancedTracer, PipelineMigrator

FUNCTIONS = "cv2.resize cv2.flip cv2.threshold numpy.add numpy.mean numpy.std numpy.log numpy.stack"
PLAN = {"context_device_map": dict.fromkeys(FUNCTIONS.split(), "cuda:0")}
IMAGE = np.random.default_rng(0).integers(0, 256, (12, 10, 3), np.uint8)
GREY = np.ascontiguousarray(IMAGE[..., 0])


def applied(**options):
    return PipelineMigrator.from_plan(PLAN, **{"allow_rounding": True, **options})


@pytest.mark.parametrize(
    "array",
    [np.asmatrix(GREY), np.ma.masked_array(GREY, GREY > 99)],
    ids=["matrix", "masked"],
)
@pytest.mark.parametrize("name", ["add", "mean", "std", "stack"])
def test_subclasses_of_arrays_are_asked_themselves(name: str, array: np.ndarray) -> None:
    def compute():
        if name == "stack":
            return np.stack([array]) if isinstance(array, np.ma.MaskedArray) else None
        return getattr(np, name)(array, *([array] if name == "add" else []))

    expected = compute()
    with applied(verify_rate=0) as migrator:
        got = compute()
        assert migrator.get_stats()["calls_migrated"] == 0
    assert type(got) is type(expected)
    assert np.array_equal(got, expected)


def test_numpy_raises_where_it_is_told_to() -> None:
    with applied(verify_rate=0), np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        np.log(np.zeros(4))


def test_a_spread_overflows_where_numpys_does() -> None:
    large = np.full((4, 4), 1e38, np.float32)
    with np.errstate(all="ignore"):
        expected = np.std(large, axis=0)
        with applied(verify_rate=0) as migrator:
            got = np.std(large, axis=0)
            assert migrator.get_stats()["calls_migrated"] == 1
    assert np.array_equal(got, expected, equal_nan=True)


def test_a_threshold_given_as_a_whole_number_comes_back_as_cv2_gives_it() -> None:
    image = IMAGE.astype(np.float32)
    expected = cv2.threshold(image, 3, 255, cv2.THRESH_BINARY)
    with applied(verify_rate=0):
        got = cv2.threshold(image, 3, 255, cv2.THRESH_BINARY)
    assert type(got[0]) is type(expected[0]) is float
    assert np.array_equal(got[1], expected[1])


def test_what_others_put_in_the_place_of_a_function_stays_theirs() -> None:
    original = cv2.resize
    migrator = applied()
    migrator.apply()
    ours = cv2.resize
    try:
        cv2.resize = theirs = lambda *args, **kwargs: ours(*args, **kwargs)
        migrator.restore()
        assert cv2.resize is theirs
        before = migrator.get_stats()["calls_migrated"]
        assert cv2.resize(IMAGE, (4, 4)).shape == (4, 4, 3)
        assert migrator.get_stats()["calls_migrated"] == before
    finally:
        cv2.resize = original


def test_a_function_that_was_taken_while_the_plan_was_applied_is_the_original_afterwards() -> None:
    with applied() as migrator:
        taken = cv2.flip
        taken(IMAGE, 1)
    moved = migrator.get_stats()["calls_migrated"]
    assert np.array_equal(taken(IMAGE, 1), cv2.flip(IMAGE, 1))
    assert migrator.get_stats()["calls_migrated"] == moved == 1


KEPT = {
    **PLAN,
    "operators": [
        {
            "context": "cv2.resize",
            "function": "cv2.resize",
            "device": "cuda:0",
            "keep_on_device": True,
        }
    ],
}


def written_in_every_way() -> list[np.ndarray]:
    image = cv2.resize(IMAGE, (8, 6))
    assert isinstance(image, np.ndarray)
    part = image[1:3]
    image[..., 0] = (image[..., 0] + 7) % 180
    image -= 3
    part[:] = 9
    np.copyto(image[4:], 1)
    cv2.rectangle(image, (1, 1), (5, 4), (255, 0, 0))
    other = cv2.resize(IMAGE, (8, 6))
    other.fill(4)
    np.add(other, 1, out=other)
    return [np.asarray(image), np.asarray(part), np.asarray(other), cv2.pyrDown(other)]


def test_arrays_that_stay_on_the_device_can_be_written_to() -> None:
    expected = written_in_every_way()
    with PipelineMigrator.from_plan(KEPT) as migrator:
        got = written_in_every_way()
        assert migrator.get_stats()["calls_migrated"] >= 2
    assert all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))


class Shrink:
    def __call__(self, image):
        return cv2.resize(image, (4, 4))


class Chain:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, image):
        for step in self.steps:
            image = step(image)
        return image


def test_the_plan_finds_calls_inside_objects_that_are_called() -> None:
    pipeline = Chain(Chain(Shrink()))
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        pipeline(IMAGE)
    (node,) = [node for node in tracer.dag_builder.dag.operators() if node.name == "cv2.resize"]
    assert node.context.endswith("Chain.__call__/Chain.__call__/Shrink.__call__/cv2.resize")
    plan = {"context_device_map": {node.context: "cuda:0"}}
    with PipelineMigrator.from_plan(plan) as migrator:
        shrunk = pipeline(IMAGE)
        assert migrator.get_stats()["calls_migrated"] == 1
    assert shrunk.shape == (4, 4, 3)


def grey_of(image):
    return cv2.resize(image, (4, 4))


def test_only_the_traced_call_keeps_its_result_on_the_device() -> None:
    here = "test_only_the_traced_call_keeps_its_result_on_the_device"
    context = f"another_caller/{here}/grey_of/cv2.resize"
    kept = {
        "context": context,
        "function": "cv2.resize",
        "device": "cuda:0",
        "keep_on_device": True,
    }
    plan = {"context_device_map": {context: "cuda:0"}, "operators": [kept]}
    with PipelineMigrator.from_plan(plan) as migrator:
        assert type(grey_of(IMAGE)) is np.ndarray
        assert migrator.get_stats()["calls_migrated"] == 1


def test_what_is_only_within_a_tolerance_stays_unless_it_is_allowed() -> None:
    def both():
        return cv2.resize(IMAGE, (7, 5), interpolation=cv2.INTER_CUBIC), cv2.flip(IMAGE, 1)

    expected = both()
    with applied(allow_rounding=False, verify_rate=0) as migrator:
        got = both()
        counts = migrator.get_stats()["functions"]
    assert counts["cv2.flip"]["migrated"] == 1
    assert counts["cv2.resize"]["migrated"] == 0
    assert "within a tolerance" in migrator.fallbacks()[0].reason.en
    assert all(np.array_equal(a, b) for a, b in zip(expected, got, strict=True))
