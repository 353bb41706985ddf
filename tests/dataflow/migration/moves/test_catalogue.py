"""Every entry gives what the original gives on random calls; the hundreds of calls are in the bench."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from torchstone.dataflow.migration import catalogue, list_supported_functions
from torchstone.dataflow.migration.contexts import Placement
from torchstone.dataflow.migration.object_paths import resolve_object_path
from torchstone.dataflow.migration.processors import Transfer
from torchstone.dataflow.migration.proof.certificates import DRAWS
from torchstone.dataflow.migration.proof.comparison import difference
from torchstone.dataflow.migration.specification import Arguments, Call, Case, Refusal
from torchstone.dataflow.migration.steps import can_record, step
from torchstone.dataflow.migration.wrapper import Migration, UniversalWrapper
from torchstone.dataflow.plan import plan_from_data

CALLS = 8
SPECS = catalogue()
EXACT = (
    "cv2.resize cv2.cvtColor cv2.flip cv2.rotate cv2.transpose cv2.copyMakeBorder cv2.GaussianBlur cv2.blur cv2.medianBlur "
    "cv2.Sobel cv2.Canny cv2.threshold cv2.adaptiveThreshold cv2.equalizeHist cv2.normalize cv2.warpAffine cv2.warpPerspective "
    "cv2.add cv2.subtract cv2.multiply cv2.addWeighted cv2.split cv2.merge cv2.LUT cv2.erode cv2.dilate"
).split()


def wrapper_of(name: str) -> UniversalWrapper:
    holder, attribute = resolve_object_path(name)
    migration = Migration(Placement(plan_from_data({"context_device_map": {}})), {})
    return UniversalWrapper(getattr(holder, attribute), name, SPECS[name], migration)


@pytest.mark.parametrize("name", sorted(SPECS))
def test_entry_equals_the_original(name: str) -> None:
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name.partition('.')[0]} is not installed")
    wrapper, spec = wrapper_of(name), SPECS[name]
    rng = np.random.default_rng(20)
    done = 0
    for _ in range(20 * CALLS):
        call = spec.sample(rng)
        bound = spec.bind(call.args, call.kwargs)
        case = spec.judge(bound)
        if isinstance(case, Refusal):
            continue
        expected = wrapper.original_func(*call.args, **call.kwargs)
        got = wrapper.compute(bound, Transfer(torch.device("cpu")))
        assert not difference(expected, got, case), (case, bound)
        if can_record(spec) and done < 3:
            check_batch(wrapper, bound, case, call)
        done += 1
        if done == CALLS:
            break
    assert done == CALLS


def check_batch(wrapper: UniversalWrapper, bound: Arguments, case: Case, call: Call) -> None:
    """Two images in one batched call: each is what the original makes of it alone."""
    data = wrapper.spec.data[0]
    first = bound[data]
    second = np.ascontiguousarray(first[::-1]) // 2
    arguments = {name: value for name, value in bound.items() if name not in (data, "dst")}
    recorded = step("call", wrapper.func_path, arguments)
    batch = recorded.of_batch(torch.from_numpy(np.stack([first, second])))
    for image, got in zip((first, second), batch, strict=True):
        args = [image if item is first else item for item in call.args]
        kwargs = {key: image if item is first else item for key, item in call.kwargs.items()}
        expected = wrapper.original_func(*args, **kwargs)
        assert not difference(expected, np.ascontiguousarray(got.numpy()), case), (case, bound)


def test_what_was_asked_for_is_there() -> None:
    supported = [name for names in list_supported_functions().values() for name in names]
    assert set(EXACT) <= set(supported)
    assert len(supported) == len(set(supported)) == len(SPECS)
    assert {
        "numpy.mean",
        "PIL.Image.Image.resize",
        "torch.nn.functional.interpolate",
        "scipy.signal.stft",
    } <= set(supported)


def test_calls_are_bound_by_signature() -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    spec = SPECS["cv2.resize"]
    assert spec.bind((image, (3, 2), None, 0, 0, 2), {}) == spec.bind(
        (image,), {"dsize": (3, 2), "interpolation": 2}
    )
    with pytest.raises(TypeError):
        spec.bind((image,), {"size": (3, 2)})


@pytest.mark.parametrize(
    ("function", "args"),
    [
        ("numpy.mean", (np.arange(6, dtype=np.uint8),)),
        ("numpy.divide", (np.arange(6, dtype=np.uint8), 255.0)),
        ("numpy.std", (np.arange(6.0),)),
        ("numpy.median", (np.arange(6.0),)),
        ("numpy.sum", (np.arange(6, dtype=np.uint8),)),
        ("numpy.add", (np.arange(6, dtype=np.uint8), 200)),
        ("numpy.mean", (np.arange(6, dtype=np.float32).reshape(2, 3), 0)),
    ],
)
def test_numpy_keeps_its_own_rules(function: str, args: tuple[object, ...]) -> None:
    wrapper = wrapper_of(function)
    expected = wrapper.original_func(*args)
    got = wrapper.compute(SPECS[function].bind(args, {}), Transfer(torch.device("cpu")))
    assert type(got) is type(expected)
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "image",
    [
        np.arange(60, dtype=np.uint8).reshape(4, 5, 3)[::-1],
        np.arange(60, dtype=np.uint8).reshape(4, 5, 3)[:, ::2],
        np.asfortranarray(np.arange(60, dtype=np.uint8).reshape(4, 5, 3)),
        np.arange(20, dtype=np.uint8).reshape(4, 5, 1),
        np.frombuffer(bytes(range(60)), np.uint8).reshape(4, 5, 3),
    ],
    ids=["negative strides", "steps", "columns first", "one channel", "read only"],
)
def test_every_layout_of_an_array(image: np.ndarray) -> None:
    wrapper = wrapper_of("cv2.resize")
    spec = SPECS["cv2.resize"]
    got = wrapper.compute(spec.bind((image, (7, 3)), {}), Transfer(torch.device("cpu")))
    expected = wrapper.original_func(image, (7, 3))
    assert not difference(expected, got, spec.judge(spec.bind((image, (7, 3)), {})))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32])
@pytest.mark.parametrize("name", ["torch.cat", "torch.stack", "torch.flip"])
def test_functions_that_only_copy_are_proven_for_labels_and_images(
    name: str, dtype: torch.dtype
) -> None:
    wrapper = wrapper_of(name)
    tensor = torch.arange(24).reshape(1, 4, 6).to(dtype)
    call = ([tensor, tensor],) if name != "torch.flip" else (tensor, (-1,))
    case = wrapper.spec.judge(wrapper.spec.bind(call, {}))
    assert isinstance(case, Case)
    assert case.exact
    drawn = np.random.default_rng(0)
    names = {
        wrapper.spec.judge(wrapper.spec.bind(made.args, made.kwargs)).name
        for made in (wrapper.spec.sample(drawn) for _ in range(DRAWS))
    }
    assert case.name in names
