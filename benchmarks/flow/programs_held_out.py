"""More programs with their true data flow: not looked at while the tracer was made.

The form is that of `programs_tuned`.
"""

# ruff: noqa: F841 - what is not used is part of the programs

import itertools
from collections import deque, namedtuple
from contextlib import contextmanager

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageEnhance
from scipy import ndimage
from torch.utils.data import DataLoader, Dataset

IMAGE = np.random.default_rng(3).integers(0, 255, (32, 48, 3), np.uint8)
OTHER = np.random.default_rng(4).integers(0, 255, (32, 48, 3), np.uint8)
FLOATS = np.random.default_rng(5).random((8, 8))


def mask_write():
    """copy>less less>setitem copy>setitem setitem>mean"""
    x = FLOATS.copy()
    dark = x < 0.5
    x[dark] = 0
    return x.mean()


def swap_rows():
    """copy>getitem copy>getitem#2 copy>getitem#3 getitem#3>copy#2 getitem#2>setitem copy>setitem copy#2>setitem#2 setitem>setitem#2 setitem#2>sum"""
    x = FLOATS.copy()
    first, second = x[0], x[1]
    kept = x[0].copy()
    x[0] = second
    x[1] = kept
    return x.sum()


def normalise_by_channel():
    """astype>mean astype>std astype>subtract mean>subtract subtract>add std>add subtract>divide add>divide"""
    x = IMAGE.astype(np.float32)
    centred = x - x.mean(axis=(0, 1))
    spread = centred + x.std(axis=(0, 1))
    return centred / spread


Pair = namedtuple("Pair", "image mask")


def through_a_namedtuple():
    """flip>bitwise_and inRange>bitwise_and"""
    pair = Pair(cv2.flip(IMAGE, 1), cv2.inRange(IMAGE, (0, 0, 0), (99, 99, 99)))
    return cv2.bitwise_and(pair.image, pair.image, mask=pair.mask)


class _Shapes(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        image = cv2.resize((IMAGE, OTHER)[index], (8, 8))
        return torch.from_numpy(image)


def loader():
    """resize>from_numpy resize#2>from_numpy#2 from_numpy>default_collate from_numpy#2>default_collate default_collate>float float>mean"""
    for batch in DataLoader(_Shapes(), batch_size=2):
        return batch.float().mean()


def running_window():
    """resize>mean resize>absdiff resize#2>absdiff absdiff>mean#2 resize#2>mean#3"""
    window = deque(maxlen=2)
    window.append(cv2.resize(IMAGE, (8, 8)))
    np.mean(window[0])
    window.append(cv2.resize(OTHER, (8, 8)))
    moved = cv2.absdiff(window[0], window[1])
    return np.mean(moved), np.mean(window[-1])


@contextmanager
def _scaled(x):
    yield x * 2


def context_manager():
    """multiply>add"""
    with _scaled(FLOATS) as doubled:
        return doubled + 1


def functional():
    """from_numpy>permute permute>unsqueeze unsqueeze>float float>interpolate interpolate>relu relu>squeeze squeeze>numpy"""
    x = torch.from_numpy(IMAGE).permute(2, 0, 1).unsqueeze(0).float()
    x = F.relu(F.interpolate(x, size=(8, 8)), inplace=True)
    return x.squeeze(0).numpy()


def pil_drawing():
    """fromarray>Draw fromarray>rectangle rectangle>Brightness rectangle>enhance Brightness>enhance"""
    image = Image.fromarray(IMAGE)
    pen = ImageDraw.Draw(image)
    pen.rectangle((1, 1, 5, 5), fill=(255, 0, 0))
    return ImageEnhance.Brightness(image).enhance(1.5)


def nested_functions():
    """resize>blur blur>subtract resize>subtract subtract>clip"""

    def sharpen(image):
        soft = cv2.blur(image, (3, 3))
        return clip(image - soft)

    def clip(image):
        return np.clip(image, 0, 200)

    return sharpen(cv2.resize(IMAGE, (16, 16)))


def pairs():
    """flip>subtract flip#2>subtract flip#2>subtract#2 flip#3>subtract#2"""
    flipped = [cv2.flip(IMAGE, code) for code in (-1, 0, 1)]
    return [b - a for a, b in itertools.pairwise(flipped)]


def filters():
    """gaussian_filter>sobel sobel>hypot gaussian_filter>sobel#2 sobel#2>hypot hypot>argmax"""
    soft = ndimage.gaussian_filter(FLOATS, 1)
    edges = np.hypot(ndimage.sobel(soft, 0), ndimage.sobel(soft, 1))
    return np.argmax(edges)


class _Stats:
    def __init__(self):
        self.total = np.zeros(3)

    def add(self, image):
        self.total += image.mean(axis=(0, 1))
        return self

    @property
    def value(self):
        return self.total / 2


def object_state():
    """zeros>iadd mean>iadd iadd>iadd#2 mean#2>iadd#2 iadd#2>divide"""
    return _Stats().add(IMAGE).add(OTHER).value


def encoded():
    """imencode>imdecode imdecode>resize"""
    done, data = cv2.imencode(".png", IMAGE)
    image = cv2.imdecode(data, cv2.IMREAD_COLOR)
    return cv2.resize(image, (8, 8))


def conditional_versions():
    """cvtColor>mean mean>greater cvtColor>equalizeHist equalizeHist>Canny Canny>T"""
    grey = cv2.cvtColor(IMAGE, cv2.COLOR_BGR2GRAY)
    if grey.mean() > -1:
        grey = cv2.equalizeHist(grey)
    edges = cv2.Canny(grey, 50, 100)
    return edges.T


def stacked_and_unstacked():
    """stack>getitem stack>getitem#2 getitem>add getitem#2>add stack>reshape add>reshape#2 reshape>concatenate reshape#2>concatenate"""
    both = np.stack([FLOATS, FLOATS])
    total = both[0] + both[1]
    return (
        np.concatenate([both, total[None]])
        if False
        else np.concatenate([both.reshape(-1), total.reshape(-1)])
    )
