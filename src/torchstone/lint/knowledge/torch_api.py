"""What torch removed, deprecates or never made public, since which version, and what to use."""

from __future__ import annotations

from typing import NamedTuple

from torchstone.core.text import Text

Version = tuple[int, int]


class Symbol(NamedTuple):
    """A name of torch that should no longer be used."""

    name: str
    since: Version
    """The first release that deprecates it."""
    instead: str
    """The full name to use instead, "" when there is no single one."""
    advice: Text
    """What to write, in one sentence."""
    removed: Version | None = None
    """The first release that is known not to have it."""
    drop_in: bool = False
    """Takes the same arguments and gives the same answer as `instead`."""
    available: Version = (1, 0)
    """The first release that has `instead`."""


def _renamed(name: str, instead: str, since: Version, available: Version | None = None) -> Symbol:
    advice = Text(
        en=f"use `{instead}`, which takes the same arguments", zh=f"改用参数相同的 `{instead}`"
    )
    return Symbol(name, since, instead, advice, drop_in=True, available=available or since)


_REMOVED = (
    Symbol(
        "torch.solve", (1, 9), "torch.linalg.solve",
        Text(
            en="`torch.solve(B, A).solution` becomes `torch.linalg.solve(A, B)`: the arguments are "
            "swapped and only the solution comes back",
            zh="`torch.solve(B, A).solution` 改为 `torch.linalg.solve(A, B)`：参数顺序相反，只返回解",
        ), removed=(1, 13), available=(1, 8),
    ),
    Symbol(
        "torch.symeig", (1, 9), "torch.linalg.eigh",
        Text(
            en="use `torch.linalg.eigh(A, UPLO='U')`, or `torch.linalg.eigvalsh` for the values "
            "alone; the new default is the lower triangle",
            zh="改用 `torch.linalg.eigh(A, UPLO='U')`，只要特征值时用 `torch.linalg.eigvalsh`；新函数默认"
            "使用下三角",
        ), removed=(2, 0), available=(1, 8),
    ),
    Symbol(
        "torch.eig", (1, 9), "torch.linalg.eig",
        Text(
            en="use `torch.linalg.eig`, whose answers are complex tensors instead of pairs of real "
            "columns",
            zh="改用 `torch.linalg.eig`，其结果是复数张量，而不是成对的实数列",
        ), removed=(1, 13), available=(1, 9),
    ),
    Symbol(
        "torch.matrix_rank", (1, 9), "torch.linalg.matrix_rank",
        Text(
            en="use `torch.linalg.matrix_rank`; `symmetric=` is called `hermitian=` there",
            zh="改用 `torch.linalg.matrix_rank`，其中 `symmetric=` 改名为 `hermitian=`",
        ), removed=(1, 13), available=(1, 8),
    ),
    Symbol(
        "torch.lstsq", (1, 9), "torch.linalg.lstsq",
        Text(
            en="`torch.lstsq(B, A)` becomes `torch.linalg.lstsq(A, B).solution`: the arguments are "
            "swapped and residuals come separately",
            zh="`torch.lstsq(B, A)` 改为 `torch.linalg.lstsq(A, B).solution`：参数顺序相反，残差单独返回",
        ), removed=(1, 13), available=(1, 9),
    ),
    Symbol(
        "torch.gels", (1, 2), "torch.linalg.lstsq",
        Text(en="use `torch.linalg.lstsq(A, B).solution`", zh="改用 `torch.linalg.lstsq(A, B).solution`"),
        removed=(1, 4), available=(1, 9),
    ),
    Symbol(
        "torch.gesv", (1, 1), "torch.linalg.solve",
        Text(en="use `torch.linalg.solve(A, B)`", zh="改用 `torch.linalg.solve(A, B)`"),
        removed=(1, 3), available=(1, 8),
    ),
    Symbol(
        "torch.potrf", (1, 0), "torch.linalg.cholesky",
        Text(en="use `torch.linalg.cholesky`", zh="改用 `torch.linalg.cholesky`"),
        removed=(1, 3), available=(1, 8),
    ),
    Symbol(
        "torch.trtrs", (1, 1), "torch.linalg.solve_triangular",
        Text(
            en="use `torch.linalg.solve_triangular(A, B, upper=True)`",
            zh="改用 `torch.linalg.solve_triangular(A, B, upper=True)`",
        ), removed=(1, 3), available=(1, 11),
    ),
    Symbol(
        "torch.btrifact", (1, 1), "torch.linalg.lu_factor",
        Text(en="use `torch.linalg.lu_factor`", zh="改用 `torch.linalg.lu_factor`"),
        removed=(1, 3), available=(1, 11),
    ),
    Symbol(
        "torch.rfft", (1, 7), "torch.fft.rfftn",
        Text(
            en="use `torch.fft.rfftn` (`torch.fft.fftn` where `onesided=False`), whose answer is a "
            "complex tensor",
            zh="改用返回复数张量的 `torch.fft.rfftn`（`onesided=False` 时用 `torch.fft.fftn`）",
        ), removed=(1, 8), available=(1, 7),
    ),
    Symbol(
        "torch.irfft", (1, 7), "torch.fft.irfftn",
        Text(
            en="use `torch.fft.irfftn` on a complex tensor (`torch.view_as_complex`)",
            zh="改为对复数张量（`torch.view_as_complex`）调用 `torch.fft.irfftn`",
        ), removed=(1, 8), available=(1, 7),
    ),
    Symbol(
        "torch.ifft", (1, 7), "torch.fft.ifftn",
        Text(
            en="use `torch.fft.ifftn` on a complex tensor (`torch.view_as_complex`)",
            zh="改为对复数张量（`torch.view_as_complex`）调用 `torch.fft.ifftn`",
        ), removed=(1, 8), available=(1, 7),
    ),
    Symbol(
        "torch._six", (1, 9), "",
        Text(
            en="use Python's own: `str`, `int`, `collections.abc`, `math.inf`",
            zh="改用 Python 自带的 `str`、`int`、`collections.abc`、`math.inf`",
        ), removed=(2, 0),
    ),
    Symbol(
        "torch.utils.ffi", (1, 0), "torch.utils.cpp_extension",
        Text(en="use `torch.utils.cpp_extension`", zh="改用 `torch.utils.cpp_extension`"),
        removed=(1, 0),
    ),
)  # fmt: skip

_LINALG = (
    Symbol(
        "torch.qr", (1, 9), "torch.linalg.qr",
        Text(
            en="use `torch.linalg.qr`; `some=False` is `mode='complete'` there",
            zh="改用 `torch.linalg.qr`，其中 `some=False` 对应 `mode='complete'`",
        ), available=(1, 8),
    ),
    Symbol(
        "torch.cholesky", (1, 9), "torch.linalg.cholesky",
        Text(
            en="use `torch.linalg.cholesky`, and its `.mH` where `upper=True`",
            zh="改用 `torch.linalg.cholesky`；`upper=True` 时取其 `.mH`",
        ), available=(1, 8),
    ),
    Symbol(
        "torch.chain_matmul", (1, 9), "torch.linalg.multi_dot",
        Text(
            en="use `torch.linalg.multi_dot`, which takes the matrices as one list",
            zh="改用 `torch.linalg.multi_dot`，矩阵以一个列表传入",
        ), available=(1, 9),
    ),
    _renamed("torch.ger", "torch.outer", (1, 8)),
    Symbol(
        "torch.lu_solve", (1, 13), "torch.linalg.lu_solve",
        Text(
            en="`torch.lu_solve(B, LU, pivots)` becomes `torch.linalg.lu_solve(LU, pivots, B)`",
            zh="`torch.lu_solve(B, LU, pivots)` 改为 `torch.linalg.lu_solve(LU, pivots, B)`",
        ), available=(1, 13),
    ),
    Symbol(
        "torch.lu", (1, 11), "torch.linalg.lu_factor",
        Text(
            en="use `torch.linalg.lu_factor` (`lu_factor_ex` where `get_infos=True`)",
            zh="改用 `torch.linalg.lu_factor`（`get_infos=True` 时用 `lu_factor_ex`）",
        ), available=(1, 11),
    ),
    Symbol(
        "torch.norm", (1, 7), "torch.linalg.vector_norm",
        Text(
            en="use `torch.linalg.vector_norm`, or `torch.linalg.matrix_norm` for norms of matrices: "
            "`torch.norm` picks one of the two by its arguments",
            zh="改用 `torch.linalg.vector_norm`，矩阵范数用 `torch.linalg.matrix_norm`：`torch.norm` 会根据"
            "参数在两者之间切换",
        ), available=(1, 9),
    ),
    Symbol(
        "torch.range", (1, 0), "torch.arange",
        Text(
            en="use `torch.arange`, which leaves the end out and keeps integers",
            zh="改用 `torch.arange`：不含终点，且保持整数类型",
        ),
    ),
    Symbol(
        "torch.svd", (1, 9), "torch.linalg.svd",
        Text(
            en="use `torch.linalg.svd(A, full_matrices=False)`, which gives `Vh`, not `V`: "
            "`V = Vh.mH`",
            zh="改用 `torch.linalg.svd(A, full_matrices=False)`，它返回 `Vh` 而非 `V`：`V = Vh.mH`",
        ), available=(1, 8),
    ),
    Symbol(
        "torch.triangular_solve", (1, 11), "torch.linalg.solve_triangular",
        Text(
            en="`torch.triangular_solve(B, A).solution` becomes "
            "`torch.linalg.solve_triangular(A, B, upper=True)`",
            zh="`torch.triangular_solve(B, A).solution` 改为 "
            "`torch.linalg.solve_triangular(A, B, upper=True)`",
        ), available=(1, 11),
    ),
)  # fmt: skip

_MODULES = (
    Symbol(
        "torch.nn.UpsamplingNearest2d", (1, 0), "torch.nn.Upsample",
        Text(en="use `nn.Upsample(..., mode='nearest')`", zh="改用 `nn.Upsample(..., mode='nearest')`"),
    ),
    Symbol(
        "torch.nn.UpsamplingBilinear2d", (1, 0), "torch.nn.Upsample",
        Text(
            en="use `nn.Upsample(..., mode='bilinear', align_corners=True)`",
            zh="改用 `nn.Upsample(..., mode='bilinear', align_corners=True)`",
        ),
    ),
    _renamed("torch.nn.functional.upsample", "torch.nn.functional.interpolate", (1, 0)),
    _renamed("torch.nn.NLLLoss2d", "torch.nn.NLLLoss", (1, 0)),
    _renamed("torch.nn.utils.clip_grad_norm", "torch.nn.utils.clip_grad_norm_", (1, 0)),
    *(
        _renamed(f"torch.nn.init.{name}", f"torch.nn.init.{name}_", (1, 0))
        for name in ("uniform", "normal", "constant", "eye", "dirac", "xavier_uniform",
                     "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse")
    ),
    Symbol(
        "torch.nn.utils.weight_norm", (2, 1), "torch.nn.utils.parametrizations.weight_norm",
        Text(
            en="use `torch.nn.utils.parametrizations.weight_norm`; old checkpoints still load, but "
            "`weight_g` and `weight_v` are now `parametrizations.weight.original0` and `original1`",
            zh="改用 `torch.nn.utils.parametrizations.weight_norm`；旧检查点仍可加载，但 `weight_g`、"
            "`weight_v` 变为 `parametrizations.weight.original0`、`original1`",
        ), available=(2, 1),
    ),
    Symbol(
        "torch.backends.cuda.sdp_kernel", (2, 3), "torch.nn.attention.sdpa_kernel",
        Text(
            en="use `torch.nn.attention.sdpa_kernel`, which takes a list of `SDPBackend`s",
            zh="改用 `torch.nn.attention.sdpa_kernel`，参数为 `SDPBackend` 列表",
        ), available=(2, 3),
    ),
    Symbol(
        "torch.testing.assert_allclose", (1, 12), "torch.testing.assert_close",
        Text(
            en="use `torch.testing.assert_close`, which also compares dtypes and devices and has "
            "its own tolerances",
            zh="改用 `torch.testing.assert_close`，它还会比较 dtype 与设备，默认容差也不同",
        ), available=(1, 9),
    ),
    Symbol(
        "torch.set_default_tensor_type", (2, 1), "torch.set_default_dtype",
        Text(
            en="use `torch.set_default_dtype` and `torch.set_default_device`",
            zh="改用 `torch.set_default_dtype` 与 `torch.set_default_device`",
        ), available=(2, 0),
    ),
    _renamed(
        "torch.utils._pytree._register_pytree_node", "torch.utils._pytree.register_pytree_node", (2, 2)
    ),
    _renamed("torch.library.impl_abstract", "torch.library.register_fake", (2, 4)),
    _renamed("torch.cuda.memory_cached", "torch.cuda.memory_reserved", (1, 4)),
    _renamed("torch.cuda.max_memory_cached", "torch.cuda.max_memory_reserved", (1, 4)),
    _renamed("torch.nn.utils.stateless.functional_call", "torch.func.functional_call", (2, 0)),
    Symbol(
        "torch.distributed.checkpoint.save_state_dict", (2, 2), "torch.distributed.checkpoint.save",
        Text(en="use `torch.distributed.checkpoint.save`", zh="改用 `torch.distributed.checkpoint.save`"),
        available=(2, 2),
    ),
    Symbol(
        "torch.distributed.checkpoint.load_state_dict", (2, 2), "torch.distributed.checkpoint.load",
        Text(en="use `torch.distributed.checkpoint.load`", zh="改用 `torch.distributed.checkpoint.load`"),
        available=(2, 2),
    ),
)  # fmt: skip

_FUNCTORCH = tuple(
    _renamed(f"functorch.{name}", f"torch.func.{name}", (2, 0))
    for name in (
        "vmap",
        "grad",
        "grad_and_value",
        "vjp",
        "jvp",
        "jacrev",
        "jacfwd",
        "hessian",
        "functionalize",
    )
)

CALLED = {
    "torch.fft": Symbol(
        "torch.fft", (1, 7), "torch.fft.fftn",
        Text(
            en="`torch.fft` is a module now: use `torch.fft.fftn` on a complex tensor "
            "(`torch.view_as_complex`)",
            zh="`torch.fft` 现在是模块：改为对复数张量（`torch.view_as_complex`）调用 `torch.fft.fftn`",
        ), removed=(1, 8), available=(1, 7),
    )
}  # fmt: skip
"""Names that are still there and can no longer be called."""

REMOVED = {symbol.name: symbol for symbol in _REMOVED}
DEPRECATED = {symbol.name: symbol for symbol in (*_LINALG, *_MODULES, *_FUNCTORCH)}


def _public(old: str, new: str, names: str, since: Version) -> list[Symbol]:
    return [_renamed(f"{old}.{name}", f"{new}.{name}", since) for name in names.split()]


PRIVATE = {
    symbol.name: symbol
    for symbol in (
        *_public(
            "torch.utils.data._utils.collate", "torch.utils.data", "default_collate default_convert", (1, 11)
        ),
        *_public(
            "torch.distributed._tensor", "torch.distributed.tensor",
            "DTensor Shard Replicate Partial Placement distribute_tensor distribute_module", (2, 5),
        ),
        *_public(
            "torch.distributed._composable.fsdp", "torch.distributed.fsdp",
            "fully_shard FSDPModule MixedPrecisionPolicy CPUOffloadPolicy OffloadPolicy", (2, 6),
        ),
        *_public("torch._dynamo", "torch.compiler", "disable allow_in_graph reset is_compiling", (2, 3)),
        _renamed("torch.optim.lr_scheduler._LRScheduler", "torch.optim.lr_scheduler.LRScheduler", (2, 0)),
        _renamed("torch._vmap_internals.vmap", "torch.vmap", (2, 0)),
        _renamed("torch.distributed._all_gather_base", "torch.distributed.all_gather_into_tensor", (1, 13)),
        _renamed("torch.distributed._reduce_scatter_base", "torch.distributed.reduce_scatter_tensor", (1, 13)),
        _renamed("torch.distributed.distributed_c10d._get_global_rank", "torch.distributed.get_global_rank", (1, 13)),
    )
}  # fmt: skip


def shown(version: Version) -> str:
    """A version as people write it."""
    return f"{version[0]}.{version[1]}"
