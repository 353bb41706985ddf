"""Mixed precision on the meta device, which has no autocast of its own.

`torch.autocast` changes number formats in the dispatcher, by device; for meta tensors nothing
happens, and asking for the device type "meta" raises. After `autocast_on_meta` an
autocast region casts by PyTorch's own lists, whichever device type it names: products in the low
format, sums and losses in float32, the rest as it comes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from torchstone.observe.compat.trees import tree_leaves, tree_map_only
from torchstone.observe.operators import CallMode
from torchstone.observe.undo import Undo

_LOW = frozenset(
    "matmul __matmul__ __rmatmul__ mm bmm mv addmm addmv addbmm baddbmm addr linear bilinear "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc einsum "
    "chain_matmul multi_dot scaled_dot_product_attention multi_head_attention_forward prelu "
    "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split()
)
_WIDE = frozenset(
    "acos asin cosh sinh tan exp expm1 log log10 log2 log1p pow __pow__ __rpow__ reciprocal rsqrt "
    "erfinv softplus softmax log_softmax softmin layer_norm group_norm rms_norm norm nuclear_norm "
    "cosine_similarity cosine_embedding_loss poisson_nll_loss nll_loss nll_loss_nd cross_entropy "
    "hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss "
    "multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss cdist dist "
    "pdist renorm logsumexp prod cumprod cumsum sum ctc_loss "
    "binary_cross_entropy_with_logits".split()
)
_WIDEST = frozenset("cat stack addcdiv addcmul atan2 cross dot vdot index_put scatter_add".split())
_REFUSED_BY_CUDA = frozenset(("binary_cross_entropy",))
_UNSAFE = (
    "and torch.nn.BCELoss are unsafe to autocast. Use binary_cross_entropy_with_logits or "
    "torch.nn.BCEWithLogitsLoss instead"
)
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


class MetaAutocast(CallMode):
    """Casts the arguments of the functions on PyTorch's lists, unless a region inside of it has the say."""

    def __init__(
        self,
        dtype: torch.dtype,
        refused: frozenset[str] = frozenset(),
        is_innermost: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__()
        self._dtype = dtype
        self._refused = refused
        self._is_innermost = is_innermost
        self._weights: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "") if self._is_innermost() else ""
        target = None
        if name in self._refused:
            raise RuntimeError(f"torch.nn.functional.{name} {_UNSAFE}")
        if name in _LOW:
            target = self._dtype
        elif name in _WIDE:
            target = torch.float32
        elif name in _WIDEST:
            target = _widest(args)
        if target is not None:
            cast = self._cast(target)
            args, kwargs = tree_map_only(torch.Tensor, cast, (args, kwargs))
        return func(*args, **kwargs)

    def _cast(self, target: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
        def cast(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.dtype not in _FLOATS or tensor.dtype == target:
                return tensor
            weight = tensor.is_leaf and tensor.requires_grad and target == self._dtype
            if not weight:
                return tensor.to(target)
            if id(tensor) not in self._weights:  # as autocast does: a weight is cast once a region
                self._weights[id(tensor)] = (tensor, tensor.to(target))
            return self._weights[id(tensor)][1]

        return cast


def _widest(args: Any) -> torch.dtype | None:
    found = {item.dtype for item in tree_leaves(args) if isinstance(item, torch.Tensor)}
    floats = found.intersection(_FLOATS)
    if len(floats) < 2:
        return None
    return torch.float32 if torch.float32 in floats or len(floats) > 1 else floats.pop()


@dataclass(frozen=True, slots=True)
class _Region:
    """What an autocast region asks for."""

    device_type: str
    enabled: bool
    dtype: torch.dtype

    def casts(self) -> bool:
        return self.enabled and self.dtype != torch.float32


class _Regions:
    """The autocast regions that are open, the innermost last."""

    def __init__(self, same_as: Mapping[str, str], tell: Callable[[str], None]) -> None:
        self._same_as = same_as
        self._tell = tell
        self._wanted: dict[int, _Region] = {}
        self._open: list[tuple[int, _Region, contextlib.AbstractContextManager[Any]]] = []

    def type_of(self, device_type: str) -> str:
        return self._same_as.get(device_type, device_type)

    def want(
        self, region: object, device_type: str, dtype: torch.dtype | None, enabled: bool
    ) -> None:
        low = torch.float16 if device_type == "cuda" else torch.bfloat16
        self._wanted[id(region)] = _Region(device_type, enabled, dtype or low)

    def enter(self, region: object) -> None:
        wanted = self._wanted.get(id(region), _Region("cpu", False, torch.bfloat16))
        inner = self._context(wanted)
        inner.__enter__()
        self._open.append((id(region), wanted, inner))

    def leave(self, region: object, *error: Any) -> None:
        at = max(n for n, (key, _, _) in enumerate(self._open) if key == id(region))
        self._open.pop(at)[2].__exit__(*error)

    def _context(self, wanted: _Region) -> contextlib.AbstractContextManager[Any]:
        if wanted.casts():
            self._tell(str(wanted.dtype).removeprefix("torch."))
            refused = _REFUSED_BY_CUDA if wanted.device_type == "cuda" else frozenset[str]()
            kind = wanted.device_type
            return MetaAutocast(wanted.dtype, refused, lambda: self.innermost(kind) is wanted)
        return contextlib.nullcontext()

    def innermost(self, device_type: str) -> _Region | None:
        wanted = self.type_of(device_type)
        found = (item for _, item, _ in reversed(self._open) if item.device_type == wanted)
        return next(found, None)


def autocast_on_meta(
    undo: Undo, tell: Callable[[str], None], same_as: Mapping[str, str] | None = None
) -> None:
    """From now on autocast regions work on meta tensors. `tell` is called with the number format
    of each region that casts; `same_as` names device types that stand for others."""
    kind: Any = torch.amp.autocast_mode.autocast
    before = kind.__init__, kind.__enter__, kind.__exit__
    regions = _Regions({"meta": "cpu"} if same_as is None else same_as, tell)

    def init(
        region: Any,
        device_type: str,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        known = regions.type_of(device_type)
        before[0](region, known, dtype, enabled and known == "cpu", cache_enabled)
        regions.want(region, known, dtype, enabled)

    def enter(region: Any) -> Any:
        result = before[1](region) if region.device == "cpu" else region
        regions.enter(region)
        return result

    def leave(region: Any, *error: Any) -> Any:
        regions.leave(region, *error)
        return before[2](region, *error) if region.device == "cpu" else False

    undo.set(kind, "__init__", init)
    undo.set(kind, "__enter__", enter)
    undo.set(kind, "__exit__", leave)
    _answer_questions(undo, regions)


def _answer_questions(undo: Undo, regions: _Regions) -> None:
    """Activation checkpointing and code of the user's own ask which region is open."""
    is_enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype
    available: Any = torch.amp.autocast_mode.is_autocast_available

    def is_autocast_enabled(device_type: str = "cuda") -> bool:
        found = regions.innermost(device_type)
        return found.enabled if found is not None else is_enabled(regions.type_of(device_type))

    def get_autocast_dtype(device_type: str) -> torch.dtype:
        found = regions.innermost(device_type)
        return found.dtype if found is not None else dtype_of(regions.type_of(device_type))

    def is_autocast_available(device_type: str) -> bool:
        return bool(available(regions.type_of(device_type)))

    undo.set(torch, "is_autocast_enabled", is_autocast_enabled)
    undo.set(torch, "get_autocast_dtype", get_autocast_dtype)
    undo.set(torch, "get_autocast_gpu_dtype", lambda: get_autocast_dtype("cuda"))
    undo.set(torch.amp, "is_autocast_available", is_autocast_available)
    undo.set(torch.amp.autocast_mode, "is_autocast_available", is_autocast_available)
