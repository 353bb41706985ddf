"""The programs whose tracing is timed."""

import cv2
import numpy as np

_RNG = np.random.default_rng(0)
_BASE = cv2.GaussianBlur(_RNG.integers(0, 255, (256, 256, 3), dtype=np.uint8), (9, 9), 0)
IMAGES = [np.roll(_BASE, 7 * n, axis=0) for n in range(100)]
JPEGS = [cv2.imencode(".jpg", image)[1] for image in IMAGES]


def prepare(images):
    out = []
    for image in images:
        small = cv2.resize(image, (224, 224))
        rgb = cv2.cvtColor(small, cv2.COLOR_BGR2RGB)
        soft = cv2.GaussianBlur(rgb, (5, 5), 0)
        scaled = soft.astype(np.float32) / 255.0
        centred = scaled - 0.5
        centred /= 0.25
        planes = centred.transpose(2, 0, 1)
        out.append(np.ascontiguousarray(planes))
    return out


def prepare_files(files):
    return prepare([cv2.imdecode(data, cv2.IMREAD_COLOR) for data in files])


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def sum_numbers(count):
    total = 0
    for number in range(count):
        total = total + number * 2
    return total


def split_words(count):
    found = []
    for number in range(count):
        words = ("abc def " + str(number)).split()
        found.append(len(words[0]) + len(words[1]))
    return found


def _one_more(number):
    return number + 1


def call_function(count):
    total = 0
    for _ in range(count):
        total = _one_more(total)
    return total


class _Counter:
    def add(self, number):
        return number + 1


def call_method(count):
    counter, total = _Counter(), 0
    for _ in range(count):
        total = counter.add(total)
    return total


def small_arrays(count):
    values = np.ones(8, np.float32)
    for _ in range(count):
        values = np.maximum(values * 0.5 + 1.0, 0.1)
    return values


def items_of_an_array(count):
    values, total = np.ones((64, 64), np.float32), 0.0
    for number in range(count):
        total += values[number % 64, 3]
        values[number % 64] *= 0.99
    return total


HOT_LOOPS = (sum_numbers, split_words, call_function, call_method, small_arrays, items_of_an_array)
