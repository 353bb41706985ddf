"""Operators that move bytes and compute nothing, and those that do not even move any.

A copy reads its source and writes its target. What picks (`index`, `gather`) reads what it picks
and the indices, not the whole tensor. What puts (`scatter`, `index_put`) in place touches the
places it writes; out of place it copies the whole tensor first. A factory only writes, and `empty`
not even that.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import broadcast, pick, size_bytes

FAMILY = Family("movement")

FREE: frozenset[str] = frozenset(
    f"aten.{name}"
    for name in """
_assert_async _assert_scalar _assert_tensor_metadata _autocast_to_full_precision
_autocast_to_reduced_precision _backward _conj _cudnn_init_dropout_state _debug_has_internal_overlap
_dimI _dimV _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
_functional_sym_constrain_range_for_size _fw_primal _has_same_storage_numel _indices _is_zerotensor
_make_dep_token _make_dual _mkldnn_transpose _mkldnn_transpose_ _neg_view _nested_get_jagged_dummy
_nested_get_lengths _nested_get_max_seqlen _nested_get_min_seqlen _nested_get_offsets
_nested_get_ragged_idx _nested_get_values _nested_tensor_size _nested_tensor_storage_offsets
_nested_tensor_strides _nested_view_from_buffer _nested_view_from_jagged _nnz _print _reshape_alias
_resize_output_ _shape_as_tensor _unpack_dual _unsafe_view _use_cudnn_ctc_loss _use_miopen_ctc_loss
_values _version adjoint alias as_strided as_strided_ broadcast_to ccol_indices chunk col_indices
conj crow_indices data dense_dim detach detach_ diagonal dim dsplit expand expand_as hsplit imag
indices is_coalesced is_complex is_conj is_contiguous is_floating_point is_inference is_leaf
is_neg is_non_overlapping_and_dense is_nonzero is_pinned is_same_size is_set_to is_signed
is_strides_like_format lift lift_fresh linalg_diagonal mH mT matrix_H moveaxis movedim narrow numel
numpy_T output_nr permute q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
q_zero_point qscheme real record_stream requires_grad_ resize_ resize_as_ resolve_conj resolve_neg
retain_grad retains_grad row_indices select set_ set_data size slice slice_inverse sparse_dim split
split_with_sizes squeeze squeeze_ storage_offset stride swapaxes swapaxes_ swapdims swapdims_
sym_constrain_range sym_constrain_range_for_size sym_is_contiguous sym_numel sym_size
sym_storage_offset sym_stride t t_ tensor_split transpose transpose_ unbind unflatten unfold
unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze unsqueeze_ values view view_as
view_as_complex view_as_real vsplit
""".split()
) | {
    "c10d.barrier",
    "c10d.monitored_barrier_",
    "_c10d_functional.wait_tensor",
    "prim.device",
    "prim.layout",
    "prims.view_of",
    "profiler._record_function_enter",
    "profiler._record_function_enter_new",
    "profiler._record_function_exit",
}
"""Views, aliases, questions about sizes, marks for the profiler: no FLOPs and no bytes."""


@FAMILY.counts(
    "aten._to_copy",
    "aten.clone",
    "aten._lazy_clone",
    "aten.cat",
    "aten._chunk_cat",
    "aten.stack",
    "aten._stack",
    "aten.block_diag",
    "aten.flip",
    "aten.roll",
    "aten.rot90",
    "aten.repeat",
    "aten.tril",
    "aten.tril_",
    "aten.triu",
    "aten.triu_",
    "aten.constant_pad_nd",
    "aten.reflection_pad1d",
    "aten.reflection_pad2d",
    "aten.reflection_pad3d",
    "aten.replication_pad1d",
    "aten.replication_pad2d",
    "aten.replication_pad3d",
    "aten.channel_shuffle",
    "aten.native_channel_shuffle",
    "aten.pixel_shuffle",
    "aten.pixel_unshuffle",
    "aten.diag_embed",
    "aten.select_backward",
    "aten.slice_backward",
    "aten.diagonal_backward",
    "aten.unfold_backward",
    "aten.masked_select",
    "aten.masked_scatter",
    "aten.masked_scatter_",
    "aten.masked_scatter_backward",
    "aten.repeat_interleave",
    "aten.as_strided_scatter",
    "aten.slice_scatter",
    "aten.select_scatter",
    "aten.diagonal_scatter",
    "aten._local_scalar_dense",
    "aten._pin_memory",
    "aten._to_dense",
    "aten.to_mkldnn",
    "aten._mkldnn_reshape",
    "aten.mkldnn_reorder_conv2d_weight",
    "aten.mkldnn_reorder_conv3d_weight",
    "aten.lift_fresh_copy",
    "aten._pack_padded_sequence",
    "aten._nested_from_padded",
    "aten._nested_tensor_from_mask",
    "aten._nested_tensor_from_mask_left_aligned",
    "aten._nested_tensor_from_tensor_list",
    "aten.to_padded_tensor",
    "aten._jagged_to_padded_dense_forward",
    "aten._padded_dense_to_jagged_forward",
    "aten._convert_weight_to_int4pack",
    "aten._convert_weight_to_int4pack_for_cpu",
    "aten._dyn_quant_pack_4bit_weight",
    "aten._cudnn_rnn_flatten_weight",
    *(
        f"aten.{name}_copy"
        for name in (
            "alias", "as_strided", "detach", "diagonal", "expand", "narrow", "permute", "select",
            "slice", "split", "split_with_sizes", "squeeze", "t", "transpose", "unbind", "unfold",
            "unsqueeze", "view", "view_as_complex", "view_as_real", "_conj", "_neg_view",
            "_reshape_alias",
        )
    ),
)  # fmt: skip
def copied(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """All that goes in is read, all that comes out is written."""
    return Count()


@FAMILY.counts("aten.reflection_pad1d_backward", "aten.reflection_pad2d_backward",
               "aten.reflection_pad3d_backward", "aten.replication_pad1d_backward",
               "aten.replication_pad2d_backward", "aten.replication_pad3d_backward")  # fmt: skip
def padding_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """The input gives only its shape."""
    return Count(vector=args[0].numel(), read=size_bytes(args[0]))


@FAMILY.counts("aten.copy_", "aten.copy", "aten._copy_from", "aten._copy_from_and_resize")
def overwritten(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(args[1]))


@FAMILY.counts(
    "aten.fill_", "aten.fill", "aten.zero_", "aten.zero",
    "aten.zeros", "aten.zeros_like", "aten.new_zeros", "aten._new_zeros_with_same_feature_meta",
    "aten.ones", "aten.ones_like", "aten.new_ones",
    "aten.full", "aten.full_like", "aten.new_full", "aten.scalar_tensor",
    "aten.arange", "aten.range", "aten.linspace", "aten.logspace", "aten.eye",
    "aten.tril_indices", "aten.triu_indices", "aten.fft_fftfreq", "aten.fft_rfftfreq",
    "aten.bartlett_window", "aten.blackman_window", "aten.hamming_window", "aten.hann_window",
    "aten.kaiser_window", "aten._efficientzerotensor", "aten.vander",
)  # fmt: skip
def filled(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=0)


@FAMILY.counts(
    "aten.empty", "aten.empty_like", "aten.empty_strided", "aten.empty_permuted",
    "aten.new_empty", "aten.new_empty_strided", "aten.empty_quantized",
    "aten._empty_affine_quantized", "aten._empty_per_channel_affine_quantized", "aten.resize",
)  # fmt: skip
def reserved(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=0, written=0)


@FAMILY.counts(
    "aten.index", "aten._unsafe_index", "aten._unsafe_masked_index",
    "aten.index_select", "aten.gather", "aten.take", "aten.take_along_dim",
)  # fmt: skip
def picked(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(read=size_bytes(out) + size_bytes(args[1:]) + size_bytes(kwargs.get("index")))


def _places(target: Tensor, indices: Any) -> int:
    """Elements that a list of index tensors points at; a mask may point at all of its places."""
    given = [item for item in indices if isinstance(item, Tensor)]
    inner = target.numel()
    for position, item in enumerate(indices):
        if isinstance(item, Tensor):
            # A mask of n dimensions stands for n dimensions; an index tensor for one.
            width = item.dim() if item.dtype is torch.bool else 1
            inner //= max(target.shape[position : position + width].numel(), 1)
    masks = [item for item in given if item.dtype is torch.bool]
    if masks:
        return masks[0].numel() * inner
    return broadcast(*(item.shape for item in given)) * inner


def _put(target: Tensor, places: int, source: Any, index: Any, adds: bool, inside: bool) -> Count:
    """Something is written at `places` of a tensor, in place or in a copy of it."""
    touched = places * target.element_size()
    whole = 0 if inside else size_bytes(target)
    return Count(
        vector=places if adds else 0,
        read=whole + size_bytes([source, index]) + touched * adds,
        written=whole + touched,
    )


@FAMILY.counts("aten.index_put", "aten._unsafe_index_put", "aten._index_put_impl")
def index_put(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    adds = bool(pick(args, kwargs, 3, "accumulate"))
    return _put(args[0], _places(args[0], args[1]), args[2], args[1], adds, inside=False)


@FAMILY.counts("aten.index_put_", "aten._index_put_impl_")
def index_put_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    adds = bool(pick(args, kwargs, 3, "accumulate"))
    return _put(args[0], _places(args[0], args[1]), args[2], args[1], adds, inside=True)


@FAMILY.counts("aten._unsafe_masked_index_put_accumulate")
def masked_put(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _put(args[0], args[3].numel(), args[3], args[1:3], adds=True, inside=False)


@FAMILY.counts("aten.scatter", "aten.put")
def scattered(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _scatter(args, kwargs, adds=_reduces(args, kwargs), inside=False)


@FAMILY.counts("aten.scatter_", "aten.put_")
def scattered_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _scatter(args, kwargs, adds=_reduces(args, kwargs), inside=True)


@FAMILY.counts("aten.scatter_add", "aten.scatter_reduce")
def scatter_added(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _scatter(args, kwargs, adds=True, inside=False)


@FAMILY.counts("aten.scatter_add_", "aten.scatter_reduce_")
def scatter_added_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _scatter(args, kwargs, adds=True, inside=True)


def _reduces(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """`scatter` may be told how to combine, `put` to accumulate."""
    # fourth of `put` (whose second is the index, not a dimension); of `scatter` it is the source
    accumulates = isinstance(args[1], Tensor) and args[3:4] and args[3] is True
    return bool(kwargs.get("reduce") or kwargs.get("accumulate") or accumulates)


def _scatter(args: tuple[Any, ...], kwargs: dict[str, Any], adds: bool, inside: bool) -> Count:
    """The index has the shape of what is put; a source may be larger than that."""
    index, *sources = (item for item in (*args[1:], *kwargs.values()) if isinstance(item, Tensor))
    count = _put(args[0], index.numel(), (), index, adds, inside)
    source = index.numel() * sources[0].element_size() if sources else 0
    return count._replace(read=(count.read or 0) + source)


@FAMILY.counts("aten.index_add", "aten.index_reduce")
def index_added(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _put(args[0], args[3].numel(), args[3], args[2], adds=True, inside=False)


@FAMILY.counts("aten.index_add_", "aten.index_reduce_")
def index_added_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _put(args[0], args[3].numel(), args[3], args[2], adds=True, inside=True)


@FAMILY.counts("aten.index_copy", "aten.index_fill")
def index_copied(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _put(args[0], _rows(args), args[3], args[2], adds=False, inside=False)


@FAMILY.counts("aten.index_copy_", "aten.index_fill_")
def index_copied_inside(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _put(args[0], _rows(args), args[3], args[2], adds=False, inside=True)


def _rows(args: tuple[Any, ...]) -> int:
    """Elements of the slices that an index along one dimension points at."""
    target, dimension, index = args[:3]
    length = target.shape[dimension] if target.dim() else 1
    return int(target.numel() // max(length, 1) * index.numel())


FAMILY.example(
    lambda: torch.cat([torch.empty(2, 3, device="meta"), torch.empty(4, 3, device="meta")]),
    vector=0,
    read=72,
    written=72,
    why="18 numbers in, 18 out",
)
FAMILY.example(
    lambda: torch.empty(1000, 8, device="meta")[torch.empty(5, dtype=torch.int64, device="meta")],
    vector=0,
    read=5 * 8 * 4 + 5 * 8,
    written=5 * 8 * 4,
    why="5 rows of 1000 and 5 indices",
)
FAMILY.example(
    lambda: torch.empty(1000, 8, device="meta").index_put_(
        (torch.empty(5, dtype=torch.int64, device="meta"),), torch.empty(5, 8, device="meta")
    ),
    vector=0,
    read=5 * 8 * 4 + 5 * 8,
    written=5 * 8 * 4,
    why="5 rows are written where they belong, the other 995 are not touched",
)
FAMILY.example(
    lambda: torch.empty(10, 4, device="meta").scatter(
        0,
        torch.empty(3, 4, dtype=torch.int64, device="meta"),
        torch.empty(3, 4, device="meta"),
    ),
    vector=0,
    read=40 * 4 + 12 * 8 + 12 * 4,
    written=40 * 4 + 12 * 4,
    why="40 numbers are copied; then 12 indices and 12 sources are read, 12 places written",
)
FAMILY.example(
    lambda: torch.empty(10, device="meta").put(
        torch.empty(3, dtype=torch.int64, device="meta"), torch.empty(3, device="meta"), True
    ),
    vector=3,
    read=10 * 4 + 3 * 8 + 3 * 4 + 3 * 4,
    written=10 * 4 + 3 * 4,
    why="10 numbers are copied; then 3 are added at their places",
)
FAMILY.example(
    lambda: torch.empty(10, 4, device="meta").scatter_add(
        0,
        torch.empty(3, 4, dtype=torch.int64, device="meta"),
        torch.empty(3, 4, device="meta"),
    ),
    vector=12,
    read=40 * 4 + 12 * 8 + 12 * 4 + 12 * 4,
    written=40 * 4 + 12 * 4,
    why="40 numbers are copied; then 12 indices, 12 sources and 12 places are read, 12 written",
)
FAMILY.example(
    lambda: torch.empty(8, device="meta").copy_(
        torch.empty(8, dtype=torch.bfloat16, device="meta")
    ),
    read=16,
    written=32,
    why="the target is written, not read",
)
FAMILY.example(
    lambda: torch.empty(6, device="meta").view(2, 3).transpose(0, 1),
    read=0,
    written=0,
    why="views move nothing",
)
