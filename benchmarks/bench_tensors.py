"""`tensors`: what an analysis and a comparison cost, and which seeded faults are named."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.precision.score import score_architectures  # noqa: E402
from tests.tensors.compare.fault_suite import CASES, HEALTHY  # noqa: E402

from torchstone import analyze_tensor, compare_precision  # noqa: E402
from torchstone.tensors.compare.low_model import in_low_precision  # noqa: E402
from torchstone.tensors.compare.step import loss_of  # noqa: E402
from torchstone.tensors.formats import all_formats  # noqa: E402

_READ = """
#include <stdint.h>
typedef float v __attribute__((vector_size(32)));
float read_all(const float *x, int64_t n) {
    v s[4] = {{0}};
    for (int64_t i = 0; i + 32 <= n; i += 32)
        for (int k = 0; k < 4; k++) s[k] += *(const v *)(x + i + 8 * k);
    return s[0][0] + s[1][1] + s[2][2] + s[3][3];
}
"""
_SIDE = 10_000
_TORCHAO_VALUES = (
    4_000_000  # torchao takes seconds for each format: measured on fewer values, per value
)
_SEEDS = (0, 1)
_HEALTHY_SEEDS = (0, 1, 2)


def run() -> str:
    torch.set_num_threads(1)
    return "\n".join(["## tensors\n", _analysis(), _comparison(), _faults(), _injected()])


def _cpu(work: Callable[[], object], rounds: int = 3) -> float:
    """The least CPU time of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


# -- analyze_tensor


def _analysis() -> str:
    x = torch.randn(_SIDE, _SIDE)
    read = _built_read()
    one_read = _cpu(lambda: read(x.data_ptr(), x.numel()), 5)
    analyze_tensor(x[:300], granularities=("tensor",))  # builds the C pass
    ours = _cpu(lambda: analyze_tensor(x, granularities=("tensor",)))
    small = x.reshape(-1)[:_TORCHAO_VALUES].reshape(-1, 1000)
    _add_torchao()
    _torchao_errors(small[:64])  # imports
    theirs = _cpu(lambda: _torchao_errors(small), 2) * x.numel() / small.numel()
    rows = [
        ("one read of 100 M fp32 values (C, sum)", 1.0),
        (f"`analyze_tensor`, {len(all_formats())} formats, tensor granularity, axes, reductions, remedies",
         ours / one_read),
        ("torchao: SQNR alone of mxfp8, mxfp4, nvfp4, e4m3, int8 (5 formats)", theirs / one_read),
    ]  # fmt: skip
    table = "\n".join(f"| {name} | {ratio:.1f} |" for name, ratio in rows)
    return (
        "### analyze_tensor, CPU time as a multiple of one read\n\n| | × one read |\n|---|---|\n"
        f"{table}\n\ntorchao over torchstone: {theirs / ours:.1f} × (per value, torchao on "
        f"{small.numel():,} values).\n"
    )


def _add_torchao() -> None:
    """torchao lives beside this environment: importing it changes what transformers prints."""
    sys.path.insert(0, str(ROOT / "scripts"))
    from side_environment import make

    python = make(ROOT / ".venv-torchao", ["torchao"], ["--no-deps"])
    sys.path.append(str(next((python.parents[1] / "lib").glob("python*/site-packages"))))


def _torchao_errors(x: torch.Tensor) -> list[float]:
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    from torchao.quantization.utils import compute_error

    x = x[:, : x.shape[1] // 32 * 32].contiguous()
    back = [
        MXTensor.to_mx(x, torch.float8_e4m3fn, 32).dequantize(torch.float32),
        MXTensor.to_mx(x, torch.float4_e2m1fn_x2, 32).dequantize(torch.float32),
        NVFP4Tensor.to_nvfp4(
            x, per_tensor_scale=per_tensor_amax_to_scale(x.abs().max())
        ).dequantize(torch.float32),
    ]
    scale = 448 / x.abs().max()
    back.append((x * scale).clamp(-448, 448).to(torch.float8_e4m3fn).float() / scale)
    step = float(x.abs().max() / 127)
    back.append(torch.fake_quantize_per_tensor_affine(x, step, 0, -127, 127))
    return [float(compute_error(x, item)) for item in back]


def _built_read() -> Any:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "the benchmark needs a C compiler"
    folder = Path(tempfile.mkdtemp())
    (folder / "read.c").write_text(_READ)
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", "-o", "read.so", "read.c"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "read.so"))
    library.read_all.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    library.read_all.restype = ctypes.c_float
    return library.read_all


# -- compare_precision


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class _Transformer(nn.Module):
    def __init__(self, width: int, blocks: int = 6) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(_Block(width) for _ in range(blocks))
        self.head = nn.Linear(width, 1000)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class _LiveBytes(TorchDispatchMode):
    """The bytes of all tensors made while it is open: now, and at most."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for item in out if isinstance(out, list | tuple) else (out,):
            if isinstance(item, torch.Tensor):
                self._note(item.untyped_storage())
        return out

    def _note(self, storage: Any) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known[key] = weakref.ref(storage, lambda _: self._gone(key, size))
        self.now += size
        self.most = max(self.most, self.now)

    def _gone(self, key: int, size: int) -> None:
        self._known.pop(key, None)
        self.now -= size


def _plain_step(model: nn.Module, ids: torch.Tensor, low: torch.dtype) -> None:
    with in_low_precision(model, low):
        loss = loss_of(model(ids), None)
        assert loss is not None
        loss.backward()


def _peak(work: Callable[[], object]) -> int:
    gc.collect()
    with _LiveBytes() as live:
        work()
    return live.most


def _comparison() -> str:
    torch.manual_seed(0)
    model, ids = _Transformer(256), torch.randint(0, 1000, (2, 64))
    lines = []
    for low in (torch.bfloat16, torch.float16):
        plain = _cpu(lambda low=low: _plain_step(model, ids, low))
        plain_bytes = _peak(lambda low=low: _plain_step(model, ids, low))
        fp32_step = _cpu(lambda: _plain_step(model, ids, torch.float32))
        for high in (torch.float32, torch.float64):

            def compare(low: torch.dtype = low, high: torch.dtype = high, **more: Any) -> Any:
                return compare_precision(
                    model, ids, low=low, high=high, plan=False, simulate=False, **more
                )

            compare()
            taken, most = _cpu(compare), _peak(compare)
            by_layer = _peak(lambda compare=compare: compare(per_layer=True))
            names = [str(kind).removeprefix("torch.") for kind in (low, high)]
            lines.append(
                f"| {names[0]} | {names[1]} | {taken / plain:.1f} | {taken / fp32_step:.1f} | "
                f"{most / plain_bytes:.1f} | {by_layer / plain_bytes:.1f} |"
            )
    return (
        "### compare_precision, 6-block transformer of width 256, forward and backward\n\n"
        "| low | shadow | CPU time × the low step | × the fp32 step | peak bytes of tensors × the low step | "
        "the same, layer by layer |\n|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
    )


# -- seeded faults


def _faults() -> str:
    counts = {False: [0, 0], True: [0, 0]}
    missed = []
    for case in CASES:
        for seed in _SEEDS:
            model, batch = case.build(seed)
            bad = compare_precision(model, batch, low=case.low, simulate=True, plan=False).first_bad
            named = (
                bad is not None
                and bad.place.path.endswith("fault_suite.py")
                and (bad.place.line in case.lines())
            )
            counts[case.aside][0] += named
            counts[case.aside][1] += 1
            missed += [] if named else [f"{case.name} (seed {seed})"]
    accused, healthy = 0, 0
    for build in HEALTHY.values():
        for low in (torch.float16, torch.bfloat16):
            for seed in _HEALTHY_SEEDS:
                torch.manual_seed(seed)
                model, batch = build(seed)
                found = compare_precision(model, batch, low=low, simulate=True, plan=False)
                accused += found.first_bad is not None
                healthy += 1
    return (
        "### Seeded faults: the first bad operator named by its line\n\n"
        "| | named | of |\n|---|---|---|\n"
        f"| first and second set | {counts[False][0]} | {counts[False][1]} |\n"
        f"| third set (scored blind: 39 of 42; one rule was changed after that) | {counts[True][0]} | {counts[True][1]} |\n"
        f"| healthy networks left alone | {healthy - accused} | {healthy} |\n\n"
        + (f"Missed: {', '.join(missed)}.\n" if missed else "")
    )


def _injected() -> str:
    """Faults in real architectures, four in each."""
    rows = []
    for name, aside in (("13 architectures", False), ("7 kept aside", True)):
        counts = score_architectures(aside=aside, faults=4, seed=0)
        harmful = sum(counts[key] for key in ("named", "another line", "not named", "crash"))
        alone = counts["healthy"] - counts["healthy accused"]
        rows.append(
            f"| {name} | {counts['named']} | {harmful} | {alone} | {counts['healthy']} | {counts['crash']} |"
        )
    return (
        "### Faults in real architectures: the line named\n\n"
        "| | named at their line | of | healthy left alone | of | crashes |\n|---|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )
