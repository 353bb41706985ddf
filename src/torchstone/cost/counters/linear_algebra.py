"""Decompositions and solvers of n x n matrices: vector work, because no matrix unit does them.

Per matrix of m x n: Cholesky n^3/3, LU and determinant 2n^3/3, inverse 2n^3, triangular solve
n^2 per right-hand side, QR 2mn^2 - 2n^3/3, singular values 4mn^2 + 8n^3, symmetric eigenvalues
9n^3, general ones 25n^3, matrix exponential 30n^3. The pseudoinverse is the singular values and a
matrix product, which counts as one. Textbook orders; real libraries vary.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Counter, Family

FAMILY = Family("linear_algebra")


def _cubic(numerator: int, denominator: int = 1) -> Counter:
    """So many n^3 per matrix."""

    def count(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
        rows, columns = args[0].shape[-2:]
        size = min(rows, columns)
        return Count(
            vector=_matrices(args[0]) * numerator * size * size * max(rows, columns) // denominator
        )

    return count


def _matrices(given: Tensor) -> int:
    return given.shape[:-2].numel()


for _operators, _counter in (
    (("aten.cholesky", "aten.linalg_cholesky_ex", "aten.linalg_ldl_factor_ex"), _cubic(1, 3)),
    (
        (
            "aten.linalg_lu",
            "aten.linalg_lu_factor_ex",
            "aten._linalg_det",
            "aten._linalg_slogdet",
            "aten.cholesky_inverse",
        ),
        _cubic(2, 3),
    ),
    (("aten.linalg_inv_ex",), _cubic(2)),
    (("aten._linalg_eigh",), _cubic(9)),
    (("aten.linalg_eig", "aten._linalg_eigvals"), _cubic(25)),
    (("aten.linalg_matrix_exp",), _cubic(30)),
):
    FAMILY.counts(*_operators)(_counter)


@FAMILY.counts("aten.linalg_qr", "aten.geqrf", "aten.linalg_householder_product", "aten.ormqr")
def orthogonal(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    rows, columns = args[0].shape[-2:]
    small = min(rows, columns)
    each = 2 * rows * columns * small - 2 * small**3 // 3
    return Count(vector=_matrices(args[0]) * each)


@FAMILY.counts("aten._linalg_svd", "aten.linalg_lstsq")
def singular(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    rows, columns = args[0].shape[-2:]
    small, large = min(rows, columns), max(rows, columns)
    return Count(vector=_matrices(args[0]) * (4 * large * small**2 + 8 * small**3))


@FAMILY.counts("aten.linalg_pinv")
def pseudoinverse(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """A decomposition (by symmetric eigenvalues where that is asked for), then one product."""
    rows, columns = args[0].shape[-2:]
    matrices, small = _matrices(args[0]), min(rows, columns)
    symmetric = next((item for item in args if isinstance(item, bool)), kwargs.get("hermitian"))
    vector = matrices * 9 * small**3 if symmetric else singular(args, kwargs, out).vector
    return Count(flops=2 * matrices * rows * columns * small, vector=vector)


@FAMILY.counts("aten._linalg_solve_ex")
def solve(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """LU, then two triangular solves for each right-hand side."""
    size = args[0].shape[-1]
    lu = _matrices(args[0]) * 2 * size**3 // 3
    return Count(vector=lu + 2 * args[1].numel() * size)


@FAMILY.counts(
    "aten.linalg_solve_triangular", "aten.triangular_solve", "aten._cholesky_solve_helper",
    "aten.cholesky_solve", "aten.linalg_lu_solve", "aten.linalg_ldl_solve",
)  # fmt: skip
def triangular(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    """n operations for each number of the result."""
    result = out[0] if isinstance(out, (list, tuple)) else out
    return Count(vector=result.numel() * result.shape[-2])


@FAMILY.counts("aten.lu_unpack", "aten._linalg_check_errors")
def unpack(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count()


FAMILY.example(
    lambda: torch.linalg.cholesky(torch.empty(2, 6, 6, device="meta")),
    vector=2 * 72,
    why="two matrices x 6^3 / 3",
)
FAMILY.example(
    lambda: torch.linalg.pinv(torch.empty(3, 6, 5, device="meta")),
    flops=3 * 2 * 6 * 5 * 5,
    vector=3 * (4 * 6 * 25 + 8 * 125),
    why="three matrices: singular values, and V / S (5 x 5) by U transposed (5 x 6)",
)
FAMILY.example(
    lambda: torch.linalg.pinv(torch.empty(4, 4, device="meta"), hermitian=True),
    flops=2 * 64,
    vector=9 * 64,
    why="symmetric eigenvalues, and a product of 4 x 4 matrices",
)
FAMILY.example(
    lambda: torch.linalg.qr(torch.empty(8, 6, device="meta")),
    vector=2 * 8 * 36 - 144,
    why="2 x 8 x 36 - 2 x 216 / 3",
)
