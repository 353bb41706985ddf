"""What calls of torch give: operators, factories, layers, casts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from torchstone.core.pattern import pattern
from torchstone.lint.values.dtypes import CASTS, half_of, promoted, result_types
from torchstone.lint.values.value import NUMBER, UNKNOWN, UNKNOWN_TYPE, Kind, Mark, Value
from torchstone.sources.regions import Region

FACTORIES = frozenset(
    "zeros ones rand randn empty full eye linspace logspace arange randperm randint tensor "
    "as_tensor from_numpy zeros_like ones_like rand_like randn_like empty_like full_like "
    "new_zeros new_ones new_full new_empty new_tensor".split()
)
_WHOLE_FACTORIES = frozenset("arange randperm randint".split())
_OF_ANOTHER = frozenset(
    "zeros_like ones_like rand_like randn_like empty_like full_like "
    "new_zeros new_ones new_full new_empty new_tensor".split()
)
_OF_DATA = frozenset("tensor as_tensor from_numpy".split())
_NUMBERS = frozenset(
    "item tolist size dim numel ndimension stride is_floating_point get_device "
    "element_size data_ptr nelement".split()
)
_TRUTHS = frozenset(
    "eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_not "
    "any all isclose".split()
)
_WHOLES = frozenset(("argmax", "argmin", "argsort", "nonzero", "bincount", "count_nonzero"))
_SEVERAL = frozenset(
    "topk sort unbind split chunk unfold meshgrid broadcast_tensors kthvalue mode svd eigh qr "
    "tensor_split median aminmax".split()
)
_TOUCHED_BY_WEIGHTS = pattern(
    r"^(?:Lazy)?(?:Linear|Bilinear|Conv\w*|RNN\w*|LSTM\w*|GRU\w*|MultiheadAttention|Transformer\w*)$"
)
_NORMS = pattern(r"^(?:Lazy)?(?:LayerNorm|GroupNorm|RMSNorm)$")
_KEEPS = pattern(
    r"^(?:ReLU6?|GELU|SiLU|Mish|Tanh|LeakyReLU|ELU|Hardswish|Hardtanh|Identity|Flatten"
    r"|Unflatten|(?:Alpha)?Dropout\w*|\w*Pool\dd|\w*Pad\dd|PixelShuffle|Upsample|BatchNorm\dd"
    r"|SyncBatchNorm|InstanceNorm\dd|CELU|SELU|PReLU|Softsign)$"
)
_OPERATORS = {
    "Softmax": "softmax",
    "LogSoftmax": "log_softmax",
    "Softplus": "softplus",
    "Softmax2d": "softmax",
    "Softmin": "softmin",
    "Sigmoid": "sigmoid",
    "LogSigmoid": "logsigmoid",
}
_LOSS = re.compile(r"Loss$")
_ACTIVATIONS = {
    "softmax": "softmax",
    "log_softmax": "log_softmax",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
    "expit": "sigmoid",
    "logsigmoid": "logsigmoid",
    "linear": "logits",
}
_RESHAPES = frozenset(
    "view reshape squeeze unsqueeze flatten permute transpose contiguous clone view_as t movedim "
    "swapaxes expand detach".split()
)
_SAME = ("Identity", "Flatten", "Unflatten")
"""Layers that leave the numbers as they are."""


class Given(NamedTuple):
    """What a call passes, worked out."""

    positional: Sequence[Value]
    named: dict[str, Value]

    @property
    def tensors(self) -> list[Value]:
        """Everything that may be a tensor, the parts of lists included."""
        rows = [*self.positional, *(v for k, v in self.named.items() if k in _TENSOR_NAMES)]
        found: list[Value] = []
        for value in rows:
            found += [part for _, part in value.parts] if value.kind is Kind.CONTAINER else [value]
        return [value for value in found if value.kind in (Kind.TENSOR, Kind.UNKNOWN)]


_TENSOR_NAMES = frozenset(
    "input other target weight bias tensors query key value mat1 mat2".split()
)


def layer_made(full: str, given: Given, mark: Mark) -> Value:
    """An object of a class of `torch.nn`."""
    parts: tuple[tuple[object, Value], ...] = ()
    name = full.rpartition(".")[2]
    if name in ("Sequential", "ModuleList", "ModuleDict"):
        first = given.positional[0] if given.positional else UNKNOWN
        if first.kind is Kind.CONTAINER:
            parts = first.parts
        else:
            parts = tuple(enumerate(given.positional)) or tuple(given.named.items())
    if name == "DataParallel" or name == "DistributedDataParallel":
        return given.positional[0]._replace(wrapped=name) if given.positional else UNKNOWN
    dtype = given.named.get("dtype")
    types = frozenset((_dtype_name(dtype),)) if dtype is not None else frozenset(("float32",))
    return Value(Kind.MODULE, full, None, types, graph=True, mark=mark, parts=parts)


def _dtype_name(value: Value | None) -> str:
    return value.name if value is not None and value.kind is Kind.DTYPE else ""


def layer_called(layer: Value, given: Given, region: Region) -> Value:
    """What a layer of `torch.nn` gives for its inputs."""
    name = layer.name.rpartition(".")[2]
    if name == "Sequential" and layer.parts:
        found = given.positional[0] if given.positional else UNKNOWN
        for _, part in layer.parts:
            found = layer_called(part, Given((found,), {}), region) if part.name else UNKNOWN
        return found
    first = given.tensors[:1]
    graph = _attached(given.tensors, region)
    if _LOSS.search(name):
        return operated(_loss_operator(name), given, region)
    if name in _OPERATORS:
        return operated(_OPERATORS[name], given, region)
    if _TOUCHED_BY_WEIGHTS.match(name):
        types, lowered = result_types("linear", layer.dtypes, region)
        trained = not region.without_grad and not layer.frozen
        content = frozenset(("logits",))
        attached = True if trained else graph
        return Value(
            Kind.TENSOR, "", None, types, lowered, attached, content=content, device="given"
        )
    if _NORMS.match(name):
        types, _ = result_types("layer_norm", promoted((*first, layer)), region)
        return Value(Kind.TENSOR, dtypes=types, graph=graph)
    if _KEEPS.match(name) and first:
        content = first[0].content if name in _SAME else UNKNOWN_TYPE
        return first[0]._replace(
            kind=Kind.TENSOR, graph=graph, constant=False, mark=None, content=content
        )
    half = half_of(region)
    return Value(
        dtypes=frozenset((half,)) if half else UNKNOWN_TYPE, lowered=bool(half), graph=graph
    )


def _loss_operator(name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.removesuffix("Loss")).lower()
    return {
        "cross_entropy": "cross_entropy",
        "bce": "binary_cross_entropy",
        "mse": "mse_loss",
        "bcewith_logits": "binary_cross_entropy_with_logits",
        "l1": "l1_loss",
        "kldiv": "kl_div",
    }.get(snake, f"{snake}_loss")


def operated(operator: str, given: Given, region: Region) -> Value:
    """What an operator of torch gives for its inputs."""
    name = operator.rpartition(".")[2]
    if name in FACTORIES:
        return _made(name, given)
    if name in _NUMBERS:
        return NUMBER
    tensors = given.tensors
    graph = _attached(tensors, region)
    constant = bool(tensors) and all(value.constant for value in tensors)
    if name in _TRUTHS or name in _WHOLES:
        whole = "bool" if name in _TRUTHS else "int64"
        return Value(Kind.TENSOR, dtypes=frozenset((whole,)), graph=False, constant=constant)
    if name == "where" and len(tensors) == 3:
        tensors = tensors[1:]
    dtype = given.named.get("dtype")
    content = UNKNOWN_TYPE
    if name in _ACTIVATIONS:
        content = frozenset((_ACTIVATIONS[name],))
    elif name in _RESHAPES and tensors:
        content = tensors[0].content
    device = device_of(tensors[:1] if name in _RESHAPES else tensors)
    if dtype is not None and dtype.kind is not Kind.NONE:
        types = frozenset((_dtype_name(dtype),))
        return Value(Kind.TENSOR, dtypes=types, graph=graph, content=content, device=device)
    types, lowered = result_types(operator, promoted(tensors), region)
    kept = lowered or (
        any(value.lowered for value in tensors)
        and not types.isdisjoint({"float16", "bfloat16", "half"})
    )
    kind = Kind.UNKNOWN if name in _SEVERAL else Kind.TENSOR
    return Value(kind, "", None, types, kept, graph, constant, content, device)


def device_of(tensors: Sequence[Value]) -> str:
    """Where the result of an operator is: where all of its inputs are."""
    known = {value.device for value in tensors if value.kind is not Kind.NUMBER}
    return known.pop() if len(known) == 1 else ""


def _made(name: str, given: Given) -> Value:
    """A tensor out of numbers, or like another one."""
    wanted = given.named.get("requires_grad")
    leaf = wanted is not None and wanted.kind is not Kind.NONE
    dtype = given.named.get("dtype")
    source = given.positional[0] if given.positional else NUMBER
    if dtype is not None and dtype.kind is not Kind.NONE:
        types = frozenset((_dtype_name(dtype),))
    elif name in _OF_ANOTHER:
        types = source.dtypes or UNKNOWN_TYPE
    elif name in _OF_DATA:
        types = UNKNOWN_TYPE
    else:
        types = frozenset(("int64" if name in _WHOLE_FACTORIES else "float32",))
    constant = name not in _OF_DATA or source.constant or source.kind is Kind.CONTAINER
    device = source.device if name in _OF_ANOTHER else ""
    if "device" not in given.named and name not in _OF_ANOTHER and name != "as_tensor":
        # a single number has no dimension and may meet tensors of every device
        device = "cpu" if name != "tensor" or source.kind is Kind.CONTAINER else ""
    return Value(Kind.TENSOR, dtypes=types, graph=leaf, constant=constant, device=device)


def _attached(tensors: Sequence[Value], region: Region) -> bool | None:
    if region.without_grad:
        return False
    if any(value.graph for value in tensors):
        return True
    return False if tensors and all(value.graph is False for value in tensors) else None


def cast_of(method: str, given: Given) -> str | None:
    """The type that a method casts to: None when it casts to none, "" when nobody can see."""
    if method in CASTS:
        return CASTS[method]
    if method == "type_as":
        return ""
    if method not in ("to", "type"):
        return None
    rows = [*given.positional, *(v for k, v in given.named.items() if k in ("dtype", "other"))]
    for value in rows:
        if value.kind is Kind.DTYPE:
            return value.name
    if "dtype" in given.named or any(value.kind is Kind.TENSOR for value in rows):
        return ""
    unknown = [value for value in rows if value.kind is Kind.UNKNOWN]
    return "" if unknown else None


def method_called(receiver: Value, method: str, given: Given, region: Region) -> Value:
    """What a method of a tensor gives, or of something that may be one."""
    dtype = cast_of(method, given)
    if dtype is not None:
        types = frozenset((dtype,)) if dtype or method == "type" else receiver.dtypes | UNKNOWN_TYPE
        same = receiver.mark if receiver.kind is Kind.UNKNOWN else None  # a network keeps its place
        moved = "" if method in ("to", "type", "type_as") else receiver.device
        return receiver._replace(dtypes=types, lowered=False, mark=same, parts=(), device=moved)
    if method in ("detach", "detach_"):
        return receiver._replace(graph=False, mark=None)
    if method in ("cuda", "cpu", "to", "contiguous", "clone", "pin_memory", "requires_grad_"):
        graph = True if method == "requires_grad_" else receiver.graph
        device = "" if method in ("cuda", "cpu", "to") else receiver.device
        same = receiver.mark if method != "clone" else None
        return receiver._replace(graph=graph, mark=same, device=device)
    if method in ("numpy", "tolist", "item"):
        return NUMBER._replace(constant=receiver.constant)
    found = operated(method, Given((receiver, *given.positional), given.named), region)
    if receiver.kind is Kind.UNKNOWN and found.kind is Kind.TENSOR and not receiver.may_be_half:
        return found._replace(kind=Kind.UNKNOWN)  # another library may have such a method, too
    return found
