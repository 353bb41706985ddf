"""Short-time Fourier transforms: scipy.signal.stft, librosa.stft and librosa's mel spectrogram.

The window and the mel filters are made once for a configuration, by the library itself.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from torchstone.dataflow.migration.moves.audio._signals import not_a_signal, random_signal, rounding
from torchstone.dataflow.migration.specification import Call, Case, OpSpec, Refusal, call, refuse


def scipy_case(
    x: Any, fs: float = 1.0, window: Any = "hann", nperseg: int = 256, noverlap: Any = None, nfft: Any = None,
    detrend: Any = False, return_onesided: bool = True, boundary: Any = "zeros", padded: bool = True,
    axis: int = -1, scaling: str = "spectrum",
) -> Case | Refusal:  # fmt: skip
    if refused := not_a_signal(x, (1,)):
        return refused
    options = (detrend, return_onesided, boundary, padded, scaling, nfft, axis)
    if options != (False, True, "zeros", True, "spectrum", None, -1) or nperseg > len(x):
        return refuse("other than the default options", "非默认选项")
    return Case(str(x.dtype), 0.0, rounding(x))


class ScipyTransform:
    """One configuration of scipy.signal.stft."""

    def __init__(
        self, fs: float, window: Any, nperseg: int, noverlap: Any, device: torch.device, **_: Any
    ) -> None:
        signal = importlib.import_module("scipy.signal")
        self._rate, self._size = fs, nperseg
        self._step = nperseg - (nperseg // 2 if noverlap is None else noverlap)
        self._window = torch.from_numpy(signal.get_window(window, nperseg)).to(device)
        self._scale = 1.0 / float(self._window.sum())

    def __call__(self, x: Tensor) -> tuple[np.ndarray, np.ndarray, Tensor]:
        half = self._size // 2
        padded = torch.nn.functional.pad(x, (half, half))
        padded = torch.nn.functional.pad(padded, (0, -(len(padded) - self._size) % self._step))
        frames = padded.unfold(-1, self._size, self._step) * self._window.to(x.dtype)
        result = (torch.fft.rfft(frames) * self._scale).T
        times = np.arange(self._size / 2, len(padded) - self._size / 2 + 1, self._step) / float(
            self._rate
        )
        times = times - (self._size / 2) / self._rate
        return np.fft.rfftfreq(self._size, 1 / self._rate), times, result


def librosa_case(
    y: Any, *, n_fft: int = 2048, hop_length: Any = None, win_length: Any = None, window: Any = "hann",
    center: bool = True, dtype: Any = None, pad_mode: str = "constant", out: Any = None,
) -> Case | Refusal:  # fmt: skip
    if refused := not_a_signal(y):
        return refused
    if (
        not center
        or pad_mode != "constant"
        or dtype is not None
        or out is not None
        or n_fft > y.shape[-1]
    ):
        return refuse("other than the default padding and dtype", "非默认的填充或 dtype")
    if not isinstance(window, str):
        return refuse("a window that is not named", "窗函数不是名称")
    return Case(str(y.dtype), 0.0, rounding(y))


class LibrosaTransform:
    """One configuration of librosa.stft."""

    def __init__(
        self, n_fft: int, hop_length: Any, win_length: Any, window: str, device: torch.device, **_: Any
    ) -> None:  # fmt: skip
        librosa = importlib.import_module("librosa")
        self._size = n_fft
        length = n_fft if win_length is None else win_length
        self._step = length // 4 if hop_length is None else hop_length
        made = librosa.filters.get_window(window, length, fftbins=True)
        self._window = torch.from_numpy(librosa.util.pad_center(made, size=n_fft)).to(device)

    def __call__(self, y: Tensor) -> Tensor:
        return torch.stft(
            y, self._size, self._step, window=self._window.to(y.dtype), center=True, pad_mode="constant",
            return_complex=True,
        )  # fmt: skip


def mel_case(
    *, y: Any = None, sr: float = 22050, S: Any = None, n_fft: int = 2048, hop_length: int = 512,
    win_length: Any = None, window: Any = "hann", center: bool = True, pad_mode: str = "constant",
    power: float = 2.0, **kwargs: Any,
) -> Case | Refusal:  # fmt: skip
    if S is not None:
        return refuse("a spectrogram instead of a signal", "给出的是频谱而非信号")
    verdict = librosa_case(
        y, n_fft=n_fft, hop_length=hop_length, win_length=win_length, window=window, center=center, pad_mode=pad_mode
    )  # fmt: skip
    return Case(verdict.name, 0.0, 4 * verdict.relative) if isinstance(verdict, Case) else verdict


class MelSpectrogram:
    """One configuration of librosa.feature.melspectrogram."""

    def __init__(
        self, sr: float, n_fft: int, hop_length: int, win_length: Any, window: str, power: float,
        device: torch.device, kwargs: Any = None, **_: Any,
    ) -> None:  # fmt: skip
        librosa = importlib.import_module("librosa")
        self._power = power
        self._transform = LibrosaTransform(n_fft, hop_length, win_length, window, device)
        basis = librosa.filters.mel(sr=sr, n_fft=n_fft, **dict(kwargs or {}))
        self._basis = torch.from_numpy(basis).to(device)

    def __call__(self, y: Tensor) -> Tensor:
        spectrum = self._transform(y).abs() ** self._power
        return torch.einsum("...ft,mf->...mt", spectrum, self._basis.to(spectrum.dtype))


def scipy_sample(rng: np.random.Generator) -> Call:
    signal = random_signal(rng, int(rng.integers(300, 900)))
    if rng.integers(2):
        return call(signal, 16000)
    return call(signal, fs=8000, nperseg=int(rng.choice([64, 100, 128])))


def librosa_sample(rng: np.random.Generator) -> Call:
    signal = random_signal(rng, int(rng.integers(600, 2000)))
    return call(signal, n_fft=int(rng.choice([256, 512])), hop_length=int(rng.choice([64, 100])))


def mel_sample(rng: np.random.Generator) -> Call:
    signal = random_signal(rng, int(rng.integers(600, 2000)))
    return call(y=signal, sr=16000, n_fft=512, hop_length=160, n_mels=int(rng.choice([20, 40])))


MOVES = (
    OpSpec("scipy.signal.stft", scipy_case, scipy_sample, ScipyTransform, {"x": "array"}, ("value", "value", "array"), "FactoryOp"),
    OpSpec("librosa.stft", librosa_case, librosa_sample, LibrosaTransform, {"y": "array"}, "array", "FactoryOp"),
    OpSpec("librosa.feature.melspectrogram", mel_case, mel_sample, MelSpectrogram, {"y": "array"}, "array", "FactoryOp"),
)  # fmt: skip
