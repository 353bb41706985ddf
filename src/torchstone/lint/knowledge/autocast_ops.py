"""What autocast does to an operator, per device, as of torch 2.13.

Names are those of `aten` without overloads (`fft_fft`, `linalg_vector_norm`). What is in no list
runs in whatever type its inputs have; type promotion is then the operator's own.
"""

from __future__ import annotations

from typing import Literal

Policy = Literal["lower", "fp32", "widest", "banned", ""]
TORCH = (2, 13)
"""The version these lists were read from; a test compares them with the installed torch."""

_LOWER_EVERYWHERE = frozenset(
    "addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d "
    "conv_transpose3d _convolution linalg_vecdot linear matmul mm prelu "
    "scaled_dot_product_attention".split()
)
_LOSSES_EVERYWHERE = frozenset(
    "binary_cross_entropy_with_logits cosine_embedding_loss hinge_embedding_loss huber_loss kl_div "
    "l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss "
    "nll_loss2d poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss".split()
)

LOWER = {
    "cuda": _LOWER_EVERYWHERE
    | frozenset(
        "_scaled_dot_product_flash_attention _thnn_fused_gru_cell _thnn_fused_lstm_cell addmv addr "
        "chain_matmul convolution cudnn_convolution cudnn_convolution_transpose einsum gru_cell "
        "linalg_multi_dot lstm_cell mv rnn_relu_cell rnn_tanh_cell".split()
    ),
    "cpu": _LOWER_EVERYWHERE
    | frozenset("_addmm_activation _native_multi_head_attention mkldnn_rnn_layer".split()),
}
"""Run in the autocast dtype (float16 or bfloat16)."""

FP32 = {
    "cuda": _LOSSES_EVERYWHERE
    | frozenset(
        "_upsample_bicubic2d_aa _upsample_bilinear2d_aa _upsample_nearest_exact1d "
        "_upsample_nearest_exact2d _upsample_nearest_exact3d acos asin cdist cosh cosine_similarity "
        "cumprod cumsum dist erfinv exp expm1 frobenius_norm group_norm layer_norm "
        "linalg_matrix_norm linalg_vector_norm log log10 log1p log2 log_softmax logsumexp "
        "native_layer_norm norm nuclear_norm pdist pow prod reciprocal renorm rms_norm rsqrt sinh "
        "softmax softplus sum tan upsample_bicubic2d upsample_bilinear2d upsample_linear1d "
        "upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_trilinear3d".split()
    ),
    "cpu": _LOSSES_EVERYWHERE
    | frozenset(
        "_grid_sampler_2d_cpu_fallback _lu_with_info adaptive_avg_pool3d adaptive_max_pool3d "
        "avg_pool3d binary_cross_entropy cdist cholesky cholesky_inverse cholesky_solve "
        "cross_entropy_loss ctc_loss fake_quantize_per_tensor_affine fft_fft fft_fft2 fft_fftn "
        "fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft "
        "fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler "
        "grid_sampler_2d grid_sampler_3d inverse linalg_cholesky linalg_cholesky_ex linalg_cond "
        "linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product "
        "linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve "
        "linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve lu_solve max_pool3d "
        "max_unpool2d max_unpool3d multilabel_margin_loss_forward nanquantile orgqr ormqr pinverse "
        "polar prod qr quantile reflection_pad1d reflection_pad2d replication_pad1d "
        "replication_pad2d replication_pad3d stft svd trace triangular_solve "
        "view_as_complex".split()
    ),
}
"""Inputs are cast up, and the result is float32."""

WIDEST = {
    "cuda": frozenset(
        "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot "
        "vdot".split()
    ),
    "cpu": frozenset("cat index_copy stack".split()),
}
"""Run in the widest type among the inputs."""

BANNED = {"cuda": frozenset(("binary_cross_entropy",)), "cpu": frozenset[str]()}
"""Raise RuntimeError under autocast."""

COMPOSED_FP32 = {
    "cuda": frozenset("cross_entropy gumbel_softmax normalize softmin".split()),
    "cpu": frozenset(("cross_entropy",)),
}
"""Functions of torch that autocast does not list but whose result is float32 under it, because of
what they are made of."""

_PREFIXES = {"torch.fft.": "fft_", "torch.linalg.": "linalg_"}


def op_name(function: str) -> str:
    """The `aten` name of a function's qualified or last name (`torch.fft.fft` → `fft_fft`)."""
    for prefix, own in _PREFIXES.items():
        if function.startswith(prefix):
            return own + function.removeprefix(prefix)
    return function.rpartition(".")[2]


def lists_of(device: str) -> str:
    """The device whose lists hold: accelerators other than the CPU follow CUDA's."""
    return "cpu" if device == "cpu" else "cuda"


def policy(function: str, device: str) -> Policy:
    """What autocast on a device does to a function; "" when it leaves it alone."""
    home, name = lists_of(device), op_name(function)
    if name in BANNED[home] and device != "mps":  # AutocastMPS does not register the ban
        return "banned"
    if name in LOWER[home]:
        return "lower"
    if name in FP32[home] or name in COMPOSED_FP32[home]:
        return "fp32"
    return "widest" if name in WIDEST[home] else ""


def runs_in_fp32(function: str, device: str) -> bool:
    """Whether half inputs are safe here because autocast casts them up first."""
    return policy(function, device) == "fp32"


def is_lowered(function: str) -> bool:
    """Whether autocast runs a function in half on some device: matmuls, convolutions, attention."""
    name = op_name(function)
    return any(name in names for names in LOWER.values())
