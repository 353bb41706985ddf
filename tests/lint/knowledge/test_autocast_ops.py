"""The autocast lists against the installed torch: what it registers, and what it does.

CPU operators run for real. CUDA's run on fake tensors: they carry the CUDA autocast key, so the
dispatcher takes the path it takes on a GPU, and only the arithmetic is missing.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensorMode

from torchstone.lint.knowledge import autocast_ops as ops

Make = Callable[..., torch.Tensor]
LOW = {"cuda": torch.float16, "cpu": torch.bfloat16}
LISTS = {"lower": ops.LOWER, "fp32": ops.FP32, "widest": ops.WIDEST, "banned": ops.BANNED}


class Tensors:
    """Makes the inputs of a call on a device; `other` is the type of every second tensor."""

    def __init__(self, device: str, dtype: torch.dtype, other: torch.dtype | None = None) -> None:
        self.device = device
        self._types = [dtype, other or dtype]

    def __call__(self, *shape: int) -> torch.Tensor:
        self._types.reverse()
        return torch.rand(*shape, device=self.device).add(0.5).to(self._types[1])

    def ids(self, *shape: int) -> torch.Tensor:
        return torch.zeros(*shape, dtype=torch.long, device=self.device)

    def square(self) -> torch.Tensor:
        """Symmetric, positive definite."""
        self._types.reverse()
        return torch.eye(3, device=self.device).mul(4).add(1).to(self._types[1])


def _cell(kind: str, gates: int) -> Callable[[Tensors], torch.Tensor]:
    def call(t: Tensors) -> torch.Tensor:
        hidden = [t(2, 4), t(2, 4)] if kind == "lstm_cell" else t(2, 4)
        weights = (t(gates * 4, 4), t(gates * 4, 4), t(gates * 4), t(gates * 4))
        found: Any = getattr(torch, kind)(t(2, 4), hidden, *weights)
        return found[0] if isinstance(found, tuple) else found

    return call


def _upsample(name: str, dims: int, corners: bool) -> Callable[[Tensors], torch.Tensor]:
    def call(t: Tensors) -> torch.Tensor:
        op = getattr(torch.ops.aten, name).default
        size = [4] * dims
        return op(t(1, 1, *[2] * dims), size, False) if corners else op(t(1, 1, *[2] * dims), size)

    return call


CALLS: dict[str, Callable[[Tensors], Any]] = {
    # run in the lower type
    "_addmm_activation": lambda t: torch._addmm_activation(t(4), t(4, 4), t(4, 4)),
    "_convolution": lambda t: torch._convolution(
        t(1, 1, 4, 4), t(1, 1, 2, 2), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1,
        False, False, False,
    ),
    "_native_multi_head_attention": lambda t: torch._native_multi_head_attention(
        x := t(2, 4, 4), x, x, 4, 2, t(12, 4), t(12), t(4, 4), t(4)
    )[0],
    "addbmm": lambda t: torch.addbmm(t(4, 4), t(2, 4, 4), t(2, 4, 4)),
    "addmm": lambda t: torch.addmm(t(4, 4), t(4, 4), t(4, 4)),
    "addmv": lambda t: torch.addmv(t(4), t(4, 4), t(4)),
    "addr": lambda t: torch.addr(t(4, 4), t(4), t(4)),
    "baddbmm": lambda t: torch.baddbmm(t(2, 4, 4), t(2, 4, 4), t(2, 4, 4)),
    "bmm": lambda t: torch.bmm(t(2, 4, 4), t(2, 4, 4)),
    "chain_matmul": lambda t: torch.chain_matmul(t(4, 4), t(4, 4), t(4, 4)),
    "conv1d": lambda t: F.conv1d(t(1, 1, 4), t(1, 1, 2)),
    "conv2d": lambda t: F.conv2d(t(1, 1, 4, 4), t(1, 1, 2, 2)),
    "conv3d": lambda t: F.conv3d(t(1, 1, 4, 4, 4), t(1, 1, 2, 2, 2)),
    "conv_tbc": lambda t: torch.conv_tbc(t(10, 7, 3), t(5, 3, 5), t(5), 0),
    "conv_transpose1d": lambda t: F.conv_transpose1d(t(1, 1, 4), t(1, 1, 2)),
    "conv_transpose2d": lambda t: F.conv_transpose2d(t(1, 1, 4, 4), t(1, 1, 2, 2)),
    "conv_transpose3d": lambda t: F.conv_transpose3d(t(1, 1, 4, 4, 4), t(1, 1, 2, 2, 2)),
    "convolution": lambda t: torch.convolution(
        t(1, 1, 4, 4), t(1, 1, 2, 2), None, (1, 1), (0, 0), (1, 1), False, (0, 0), 1
    ),
    "einsum": lambda t: torch.einsum("ij,jk->ik", t(4, 4), t(4, 4)),
    "gru_cell": _cell("gru_cell", 3),
    "linalg_multi_dot": lambda t: torch.linalg.multi_dot([t(4, 4), t(4, 4), t(4, 4)]),
    "linalg_vecdot": lambda t: torch.linalg.vecdot(t(4), t(4)),
    "linear": lambda t: F.linear(t(4, 4), t(4, 4)),
    "lstm_cell": _cell("lstm_cell", 4),
    "matmul": lambda t: t(4, 4) @ t(4, 4),
    "mm": lambda t: torch.mm(t(4, 4), t(4, 4)),
    "mv": lambda t: torch.mv(t(4, 4), t(4)),
    "prelu": lambda t: F.prelu(t(4), t(1)),
    "rnn_relu_cell": _cell("rnn_relu_cell", 1),
    "rnn_tanh_cell": _cell("rnn_tanh_cell", 1),
    "scaled_dot_product_attention": lambda t: F.scaled_dot_product_attention(
        t(1, 1, 4, 8), t(1, 1, 4, 8), t(1, 1, 4, 8)
    ),
    # losses
    "binary_cross_entropy": lambda t: F.binary_cross_entropy(
        t(4).clamp(max=1), t(4).clamp(max=1)
    ),
    "binary_cross_entropy_with_logits": lambda t: F.binary_cross_entropy_with_logits(t(4), t(4)),
    "cosine_embedding_loss": lambda t: F.cosine_embedding_loss(t(2, 4), t(2, 4), t.ids(2) + 1),
    "cross_entropy_loss": lambda t: F.cross_entropy(t(4, 4), t.ids(4)),
    "ctc_loss": lambda t: F.ctc_loss(
        t(4, 1, 4), t.ids(1, 2) + 1, torch.tensor([4]), torch.tensor([2])
    ),
    "hinge_embedding_loss": lambda t: F.hinge_embedding_loss(t(4), t.ids(4) + 1),
    "huber_loss": lambda t: F.huber_loss(t(4), t(4)),
    "kl_div": lambda t: F.kl_div(t(2, 4), t(2, 4), reduction="batchmean"),
    "l1_loss": lambda t: F.l1_loss(t(4), t(4)),
    "margin_ranking_loss": lambda t: F.margin_ranking_loss(t(4), t(4), t(4)),
    "mse_loss": lambda t: F.mse_loss(t(4), t(4)),
    "multi_margin_loss": lambda t: F.multi_margin_loss(t(4, 4), t.ids(4)),
    "multilabel_margin_loss": lambda t: F.multilabel_margin_loss(t(4, 4), t.ids(4, 4)),
    "multilabel_margin_loss_forward": lambda t: torch.ops.aten.multilabel_margin_loss_forward(
        t(4, 4), t.ids(4, 4), 1
    )[0],
    "nll_loss": lambda t: F.nll_loss(t(4, 4), t.ids(4)),
    "nll_loss2d": lambda t: F.nll_loss(t(1, 4, 2, 2), t.ids(1, 2, 2)),
    "poisson_nll_loss": lambda t: F.poisson_nll_loss(t(4), t(4)),
    "smooth_l1_loss": lambda t: F.smooth_l1_loss(t(4), t(4)),
    "soft_margin_loss": lambda t: F.soft_margin_loss(t(4), t.ids(4) + 1),
    "triplet_margin_loss": lambda t: F.triplet_margin_loss(t(2, 4), t(2, 4), t(2, 4)),
    # run in float32
    "_upsample_bicubic2d_aa": _upsample("_upsample_bicubic2d_aa", 2, True),
    "_upsample_bilinear2d_aa": _upsample("_upsample_bilinear2d_aa", 2, True),
    "_upsample_nearest_exact1d": _upsample("_upsample_nearest_exact1d", 1, False),
    "_upsample_nearest_exact2d": _upsample("_upsample_nearest_exact2d", 2, False),
    "_upsample_nearest_exact3d": _upsample("_upsample_nearest_exact3d", 3, False),
    "upsample_bicubic2d": _upsample("upsample_bicubic2d", 2, True),
    "upsample_bilinear2d": _upsample("upsample_bilinear2d", 2, True),
    "upsample_linear1d": _upsample("upsample_linear1d", 1, True),
    "upsample_nearest1d": _upsample("upsample_nearest1d", 1, False),
    "upsample_nearest2d": _upsample("upsample_nearest2d", 2, False),
    "upsample_nearest3d": _upsample("upsample_nearest3d", 3, False),
    "upsample_trilinear3d": _upsample("upsample_trilinear3d", 3, True),
    **{
        name: (lambda t, name=name: getattr(torch, name)(t(4)))
        for name in (
            "acos asin cosh erfinv exp expm1 log log10 log1p log2 reciprocal rsqrt sinh tan prod "
            "sum"
        ).split()
    },
    "cdist": lambda t: torch.cdist(t(2, 4), t(2, 4)),
    "cosine_similarity": lambda t: F.cosine_similarity(t(2, 4), t(2, 4)),
    "cumprod": lambda t: torch.cumprod(t(4), 0),
    "cumsum": lambda t: torch.cumsum(t(4), 0),
    "dist": lambda t: torch.dist(t(4), t(4)),
    "frobenius_norm": lambda t: torch.ops.aten.frobenius_norm.dim(t(4, 4), [0, 1]),
    "group_norm": lambda t: F.group_norm(t(2, 4), 2),
    "layer_norm": lambda t: F.layer_norm(t(4), (4,)),
    "linalg_matrix_norm": lambda t: torch.linalg.matrix_norm(t(4, 4)),
    "linalg_vector_norm": lambda t: torch.linalg.vector_norm(t(4)),
    "log_softmax": lambda t: F.log_softmax(t(4), -1),
    "logsumexp": lambda t: torch.logsumexp(t(4), 0),
    "native_layer_norm": lambda t: torch.native_layer_norm(t(4), (4,), None, None, 1e-5)[0],
    "norm": lambda t: torch.ops.aten.norm.Scalar(t(4), 2),
    "nuclear_norm": lambda t: torch.ops.aten.nuclear_norm(t(4, 4)),
    "pdist": lambda t: torch.pdist(t(4, 4)),
    "pow": lambda t: torch.pow(t(4), 1.5),
    "renorm": lambda t: torch.renorm(t(4, 4), 2, 0, 1.0),
    "rms_norm": lambda t: F.rms_norm(t(4), (4,)),
    "softmax": lambda t: F.softmax(t(4), -1),
    "softplus": lambda t: F.softplus(t(4)),
    # run in float32 on the CPU only
    "adaptive_avg_pool3d": lambda t: F.adaptive_avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "adaptive_max_pool3d": lambda t: F.adaptive_max_pool3d(t(1, 1, 4, 4, 4), 2),
    "avg_pool3d": lambda t: F.avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "cholesky": lambda t: torch.ops.aten.cholesky(t.square()),
    "cholesky_inverse": lambda t: torch.cholesky_inverse(t.square()),
    "cholesky_solve": lambda t: torch.cholesky_solve(t.square(), t.square()),
    "fake_quantize_per_tensor_affine": lambda t: torch.fake_quantize_per_tensor_affine(
        t(4), 0.1, 0, 0, 255
    ),
    "fractional_max_pool2d": lambda t: F.fractional_max_pool2d(t(1, 1, 8, 8), 2, 3),
    "fractional_max_pool3d": lambda t: F.fractional_max_pool3d(t(1, 1, 8, 8, 8), 2, 3),
    "geqrf": lambda t: torch.geqrf(t.square())[0],
    "grid_sampler": lambda t: F.grid_sample(t(1, 1, 4, 4), t(1, 4, 4, 2), align_corners=False),
    "grid_sampler_2d": lambda t: torch.grid_sampler_2d(t(1, 1, 4, 4), t(1, 4, 4, 2), 0, 0, False),
    "grid_sampler_3d": lambda t: torch.grid_sampler_3d(
        t(1, 1, 4, 4, 4), t(1, 4, 4, 4, 3), 0, 0, False
    ),
    "inverse": lambda t: torch.inverse(t.square()),
    "linalg_householder_product": lambda t: torch.linalg.householder_product(t.square(), t(3)),
    "linalg_lstsq": lambda t: torch.linalg.lstsq(t.square(), t.square())[0],
    "linalg_solve": lambda t: torch.linalg.solve(t.square(), t(3)),
    "linalg_tensorinv": lambda t: torch.linalg.tensorinv(t.square(), 1),
    "linalg_tensorsolve": lambda t: torch.linalg.tensorsolve(t.square(), t(3)),
    **{
        f"linalg_{name}": (lambda t, name=name: getattr(torch.linalg, name)(t.square()))
        for name in (
            "cholesky cholesky_ex cond eig eigh eigvals eigvalsh inv inv_ex qr svd svdvals"
        ).split()
    },
    "linalg_matrix_rank": lambda t: torch.linalg.matrix_rank(t.square()),
    "lu_solve": lambda t: torch.lu_solve(
        t.square(), t.square(), torch.arange(1, 4, dtype=torch.int32)
    ),
    "max_pool3d": lambda t: F.max_pool3d(t(1, 1, 4, 4, 4), 2),
    "max_unpool2d": lambda t: F.max_unpool2d(t(1, 1, 1, 1), t.ids(1, 1, 1, 1), 2),
    "max_unpool3d": lambda t: F.max_unpool3d(t(1, 1, 1, 1, 1), t.ids(1, 1, 1, 1, 1), 2),
    "nanquantile": lambda t: torch.nanquantile(t(4), 0.5),
    "orgqr": lambda t: torch.orgqr(t.square(), t(3)),
    "ormqr": lambda t: torch.ormqr(t.square(), t(3), t.square()),
    "pinverse": lambda t: torch.pinverse(t.square()),
    "polar": lambda t: torch.polar(t(4), t(4)),
    "qr": lambda t: torch.ops.aten.qr(t.square())[0],
    "quantile": lambda t: torch.quantile(t(4), 0.5),
    "reflection_pad1d": lambda t: F.pad(t(1, 1, 4), (1, 1), mode="reflect"),
    "reflection_pad2d": lambda t: F.pad(t(1, 1, 4, 4), (1, 1, 1, 1), mode="reflect"),
    "replication_pad1d": lambda t: F.pad(t(1, 1, 4), (1, 1), mode="replicate"),
    "replication_pad2d": lambda t: F.pad(t(1, 1, 4, 4), (1, 1, 1, 1), mode="replicate"),
    "replication_pad3d": lambda t: F.pad(t(1, 1, 4, 4, 4), (1,) * 6, mode="replicate"),
    "stft": lambda t: torch.stft(t(64), 16, window=t(16), return_complex=True),
    "svd": lambda t: torch.svd(t.square())[0],
    "trace": lambda t: torch.trace(t(4, 4)),
    "triangular_solve": lambda t: torch.triangular_solve(t.square(), t.square())[0],
    "view_as_complex": lambda t: torch.view_as_complex(t(4, 2)),
    **{
        f"fft_{name}": (lambda t, name=name: getattr(torch.fft, name)(t(4, 4)))
        for name in (
            "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn"
        ).split()
    },
    # run in the widest type
    "addcdiv": lambda t: torch.addcdiv(t(4), t(4), t(4)),
    "addcmul": lambda t: torch.addcmul(t(4), t(4), t(4)),
    "atan2": lambda t: torch.atan2(t(4), t(4)),
    "bilinear": lambda t: F.bilinear(t(1, 2), t(1, 2), t(1, 2, 2)),
    "cat": lambda t: torch.cat([t(4), t(4)]),
    "cross": lambda t: torch.cross(t(3), t(3), dim=0),
    "dot": lambda t: torch.dot(t(4), t(4)),
    "index_copy": lambda t: torch.index_copy(t(4), 0, t.ids(1), t(1)),
    "index_put": lambda t: torch.index_put(t(4), (t.ids(1),), t(1)),
    "scatter_add": lambda t: torch.scatter_add(t(4), 0, t.ids(4), t(4)),
    "stack": lambda t: torch.stack([t(4), t(4)]),
    "tensordot": lambda t: torch.tensordot(t(4, 4), t(4, 4), 1),
    "vdot": lambda t: torch.vdot(t(4), t(4)),
}  # fmt: skip

# internal operators, and two whose fake form needs a CUDA build; the header still speaks for them
UNCALLED = {
    "cuda": {
        "_scaled_dot_product_flash_attention", "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell",
        "cudnn_convolution", "cudnn_convolution_transpose", "grid_sampler", "gru_cell",
    },
    "cpu": {"_grid_sampler_2d_cpu_fallback", "_lu_with_info", "mkldnn_rnn_layer"},
}  # fmt: skip
INTEGER_RESULT = {"linalg_matrix_rank"}


@contextlib.contextmanager
def autocast(device: str) -> Iterator[None]:
    """Autocast as the device has it; `torch.autocast` itself refuses CUDA without a GPU."""
    fake = FakeTensorMode() if device == "cuda" else contextlib.nullcontext()
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    with fake:
        torch.set_autocast_enabled(device, True)
        torch.set_autocast_dtype(device, LOW[device])
        try:
            yield
        finally:
            torch.set_autocast_enabled(device, before[0])
            torch.set_autocast_dtype(device, before[1])
            torch.clear_autocast_cache()


def dtype_under_autocast(name: str, device: str, *given: torch.dtype) -> torch.dtype:
    with autocast(device):
        found = CALLS[name](Tensors(device, *given))
    first = found if isinstance(found, torch.Tensor) else found[0]
    real = {torch.complex64: torch.float32, torch.complex128: torch.float64}
    return real.get(first.dtype, first.dtype)


def callable_names(kind: str) -> list[Any]:
    return [
        pytest.param(device, name, id=f"{device}-{name}")
        for device, names in LISTS[kind].items()
        for name in sorted(names - UNCALLED[device] - INTEGER_RESULT)
    ]


@pytest.mark.parametrize(("device", "key"), [("cuda", "AutocastCUDA"), ("cpu", "AutocastCPU")])
def test_the_lists_hold_what_torch_registers_and_nothing_else(device: str, key: str) -> None:
    registered = {
        name.removeprefix("aten::").partition(".")[0]
        for name in torch._C._dispatch_get_registrations_for_dispatch_key(key)
        if name.startswith("aten::")
    }
    listed = [name for lists in LISTS.values() for name in lists[device]]
    assert sorted(listed) == sorted(set(listed)), "an operator has two policies"
    assert set(listed) == registered


def test_cuda_policies_are_those_of_the_header_torch_ships() -> None:
    header = Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"
    text = header.read_text()

    def of(macro: str) -> set[str]:
        block = re.search(rf"#define {macro}\(_\)((?:.*\\\n)+.*\n)", text)
        assert block, f"{macro} is not in {header}"
        return set(re.findall(r"\b_\((\w+)", block.group(1)))

    assert ops.LOWER["cuda"] == of("AT_FORALL_LOWER_PRECISION_FP") | {
        "cudnn_convolution", "cudnn_convolution_transpose",
    }  # fmt: skip
    with_dtype = of("AT_FORALL_FP32_SET_OPT_DTYPE")
    assert ops.FP32["cuda"] == of("AT_FORALL_FP32") | with_dtype | {"norm"}
    assert ops.WIDEST["cuda"] == of("AT_FORALL_PROMOTE")


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_every_operator_of_the_lists_is_called(device: str) -> None:
    listed = {name for lists in LISTS.values() for name in lists[device]}
    assert listed - UNCALLED[device] <= set(CALLS)
    assert UNCALLED[device] <= listed


@pytest.mark.parametrize(("device", "name"), callable_names("lower"))
def test_lower_gives_the_autocast_type(device: str, name: str) -> None:
    assert dtype_under_autocast(name, device, torch.float32) == LOW[device]


@pytest.mark.parametrize(("device", "name"), callable_names("fp32"))
def test_fp32_gives_float32(device: str, name: str) -> None:
    assert dtype_under_autocast(name, device, LOW[device]) == torch.float32


@pytest.mark.parametrize(("device", "name"), callable_names("widest"))
def test_widest_gives_the_widest_type(device: str, name: str) -> None:
    assert dtype_under_autocast(name, device, LOW[device], torch.float32) == torch.float32
    assert dtype_under_autocast(name, device, torch.float32, LOW[device]) == torch.float32


@pytest.mark.parametrize(("device", "name"), callable_names("banned"))
def test_banned_raises(device: str, name: str) -> None:
    with pytest.raises(RuntimeError, match="unsafe to autocast"):
        dtype_under_autocast(name, device, torch.float32)


@pytest.mark.parametrize("name", ["relu", "gelu", "sigmoid", "mean", "std", "var"])
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_what_no_list_holds_keeps_its_type(device: str, name: str) -> None:
    assert ops.policy(name, device) == ""
    with autocast(device):
        x = Tensors(device, LOW[device])(4)
        assert getattr(F if name == "gelu" else torch, name)(x).dtype == LOW[device]


def test_the_devices_differ_where_rules_rely_on_it() -> None:
    for name in ("softmax", "log_softmax", "sum", "norm", "cumsum"):
        assert ops.runs_in_fp32(f"torch.{name}", "cuda")
        assert not ops.runs_in_fp32(f"torch.{name}", "cpu")
        with autocast("cpu"):
            x = Tensors("cpu", torch.bfloat16)(4)
            call = getattr(torch, name)
            dim = {"softmax", "log_softmax", "cumsum"}
            assert (call(x, 0) if name in dim else call(x)).dtype == torch.bfloat16
    assert ops.policy("torch.nn.functional.binary_cross_entropy", "cuda") == "banned"
    assert ops.policy("torch.nn.functional.binary_cross_entropy", "cpu") == "fp32"


COMPOSED = {
    "cross_entropy": lambda t: F.cross_entropy(t(4, 4), t.ids(4)),
    "gumbel_softmax": lambda t: F.gumbel_softmax(t(4, 4), dim=-1),
    "normalize": lambda t: F.normalize(t(4, 4)),
    "softmin": lambda t: F.softmin(t(4, 4), -1),
}


@pytest.mark.parametrize(
    ("device", "name"),
    [(device, name) for device, names in ops.COMPOSED_FP32.items() for name in sorted(names)],
)
def test_composed_functions_give_float32(device: str, name: str) -> None:
    with autocast(device):
        assert COMPOSED[name](Tensors(device, LOW[device])).dtype == torch.float32


def test_the_ban_is_not_registered_for_mps() -> None:
    registered = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastMPS")
    assert "aten::binary_cross_entropy" not in registered
    assert ops.policy("binary_cross_entropy", "mps") == ""


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("torch.nn.functional.softmax", "softmax"),
        ("torch.fft.rfft", "fft_rfft"),
        ("torch.linalg.vector_norm", "linalg_vector_norm"),
        ("matmul", "matmul"),
    ],
)
def test_function_names_become_operator_names(function: str, name: str) -> None:
    assert ops.op_name(function) == name
    assert ops.is_lowered(function) == (name == "matmul")
