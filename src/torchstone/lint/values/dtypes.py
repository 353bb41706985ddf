"""The types of results: promotion, casts by hand, and what autocast does to an operator."""

from __future__ import annotations

from collections.abc import Iterable

from torchstone.lint.knowledge.autocast_ops import policy
from torchstone.lint.values.value import HALVES, UNKNOWN_TYPE, Value
from torchstone.sources.regions import Autocast, Region

CASTS = {
    "half": "float16",
    "bfloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "long": "int64",
    "int": "int32",
    "bool": "bool",
    "byte": "uint8",
    "short": "int16",
    "char": "int8",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
TENSOR_TYPES = {
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "BoolTensor": "bool",
    "ByteTensor": "uint8",
}
_WHOLE = ("bool", "uint8", "int8", "int16", "int32", "int64")
_TO_FLOAT = frozenset(
    "mean exp log sqrt rsqrt tanh sigmoid softmax log_softmax div true_divide dropout gelu silu "
    "norm var std log1p expm1 sin cos erf reciprocal".split()
)


def promoted(values: Iterable[Value]) -> frozenset[str]:
    """The types that an operator gives whose inputs have these; numbers have no say."""
    found: frozenset[str] | None = None
    for value in values:
        if value.dtypes:
            found = value.dtypes if found is None else _pairs(found, value.dtypes)
    return UNKNOWN_TYPE if found is None else found


def _pairs(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    found: set[str] = set()
    for one in left:
        for other in right:
            found.add(_promote(one, other))
            if "" in (one, other):  # the unknown one may be half too, or a whole number
                found |= HALVES & {one, other}
    return frozenset(found)


def _promote(one: str, other: str) -> str:
    if one == other:
        return one
    if "float32" in (one, other) or "float64" in (one, other):
        return "float64" if "float64" in (one, other) else "float32"
    if "" in (one, other):
        return ""
    for whole, kept in ((one, other), (other, one)):
        if whole in _WHOLE:
            return kept if kept not in _WHOLE else max(one, other, key=_WHOLE.index)
    both = {one, other}
    return "float32" if both == {"float16", "bfloat16"} else "half" if both <= HALVES else ""


def result_types(
    operator: str, inputs: frozenset[str], region: Region
) -> tuple[frozenset[str], bool]:
    """The types that an operator of torch gives in a region, and whether autocast lowered it."""
    cast = region.autocast
    if cast is not None and cast.dtype != "float32":
        rule = policy(operator, cast.device)
        if rule == "lower":
            return _lowered(cast, inputs), True
        if rule == "fp32":
            return (frozenset(("float32",)) if cast.certain else inputs | {"float32"}), False
        if rule == "widest" and "float32" in inputs:
            return frozenset(("float32",)), False
    return frozenset(_after(operator, dtype) for dtype in inputs), False


def _lowered(cast: Autocast, inputs: frozenset[str]) -> frozenset[str]:
    half = cast.dtype if cast.dtype in HALVES else "half"
    return frozenset((half,)) if cast.certain else frozenset((half,)) | inputs


def half_of(region: Region) -> str:
    """The half type that autocast computes in at a place; "" where none is open."""
    cast = region.autocast
    if cast is None or cast.dtype == "float32":
        return ""
    return cast.dtype if cast.dtype in HALVES else "half"


def _after(operator: str, dtype: str) -> str:
    """Whole numbers become something else in some operators."""
    if dtype not in _WHOLE:
        return dtype
    name = operator.rpartition(".")[2]
    if name in ("sum", "prod", "cumsum", "cumprod"):
        return "int64"
    return "float32" if name in _TO_FLOAT else dtype
