"""A second set of labelled programs: written after the tracer, scored once, never tuned on.

The form is that of `programs_tuned`. An attribute such as `.T` is an operator of its name; a
comparison or a number made from data is one too.
"""

import threading
from dataclasses import dataclass, field
from functools import lru_cache

import cv2
import numpy as np
import torch
from PIL import Image, ImageFilter, ImageOps
from scipy import signal

IMAGE = np.random.default_rng(6).integers(0, 255, (24, 36, 3), np.uint8)
WAVE = np.random.default_rng(7).standard_normal(512)
FLOATS = np.random.default_rng(8).random((5, 5))


def spectrum():
    """hann>multiply multiply>rfft rfft>absolute absolute>log1p log1p>max"""
    window = signal.windows.hann(512)
    power = np.abs(np.fft.rfft(WAVE * window))
    return np.log1p(power).max()


def filtered():
    """butter>filtfilt filtfilt>decimate"""
    b, a = signal.butter(3, 0.2)
    smooth = signal.filtfilt(b, a, WAVE)
    return signal.decimate(smooth, 4)


def linear_algebra():
    """matmul>svd T>matmul svd>diag diag>matmul#2 svd>matmul#2"""
    gram = FLOATS.T @ FLOATS
    u, s, vt = np.linalg.svd(gram)
    return u @ np.diag(s)


def pil_chain():
    """fromarray>grayscale grayscale>autocontrast autocontrast>filter filter>crop crop>asarray"""
    image = ImageOps.grayscale(Image.fromarray(IMAGE))
    image = ImageOps.autocontrast(image)
    image = image.filter(ImageFilter.GaussianBlur(1))
    return np.asarray(image.crop((0, 0, 5, 5)))


def padded_batch():
    """zeros>setitem ones>setitem setitem>setitem#2 ones#2>setitem#2 setitem#2>sum"""
    out = np.zeros((2, 6))
    for row, size in enumerate((3, 5)):
        out[row, :size] = np.ones(size)
    return out.sum()


def masks():
    """cvtColor>inRange inRange>findContours findContours>boundingRect inRange>bitwise_not"""
    hsv = cv2.cvtColor(IMAGE, cv2.COLOR_BGR2HSV)
    mask = cv2.inRange(hsv, (0, 0, 0), (180, 255, 200))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    box = cv2.boundingRect(contours[0])
    return cv2.bitwise_not(mask), box


@dataclass
class Running:
    values: list = field(default_factory=list)

    def push(self, x):
        self.values.append(x * 0.5)
        return self


def history():
    """multiply>add multiply#2>add"""
    kept = Running().push(FLOATS).push(FLOATS)
    return kept.values[0] + kept.values[1]


@lru_cache(maxsize=None)
def _kernel(size):
    return np.outer(np.hanning(size), np.hanning(size))


def cached():
    """hanning>outer hanning#2>outer outer>filter2D outer>filter2D#2"""
    first = cv2.filter2D(IMAGE, -1, _kernel(5))
    return first, cv2.filter2D(IMAGE, -1, _kernel(5))


def tensors_in_place():
    """arange>float float>view view>add_ add_>relu_ relu_>sum"""
    x = torch.arange(6).float()
    y = x.view(2, 3)
    y.add_(-3)
    torch.relu_(y)
    return x.sum()


def worker_thread():
    """blur>Canny Canny>dilate"""
    box = {}

    def work(image):
        box["edges"] = cv2.Canny(image, 50, 100)

    thread = threading.Thread(target=work, args=(cv2.blur(IMAGE, (3, 3)),))
    thread.start()
    thread.join()
    return cv2.dilate(box["edges"], None)


def early_exit():
    """resize>mean resize#2>mean#2 mean>greater mean#2>greater#2 resize#2>flip"""
    for size in (4, 8):
        small = cv2.resize(IMAGE, (size, size))
        if small.mean() > 1e9:
            continue
        last = small
    return cv2.flip(last, 0)


def generator_pipeline():
    """flip>resize resize>divide flip#2>resize#2 resize#2>divide#2 divide>stack divide#2>stack"""

    def flips():
        yield cv2.flip(IMAGE, 0)
        yield cv2.flip(IMAGE, 1)

    def small(images):
        for image in images:
            yield cv2.resize(image, (4, 4)) / 255

    return np.stack(list(small(flips())))


def sliding():
    """sliding_window_view>mean mean>argmax"""
    windows = np.lib.stride_tricks.sliding_window_view(WAVE, 16)
    return windows.mean(axis=1).argmax()
