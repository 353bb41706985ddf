"""A data pipeline of the usual kind: decode, colour, blur, resize, normalise.

    torchstone flow trace examples/prepare_images.py -- 20
"""

import sys

import cv2
import numpy as np

MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)


def encoded(count):
    """Pictures as a file would hold them."""
    draw = np.random.default_rng(0)
    for _ in range(count):
        picture = cv2.resize(draw.integers(0, 256, (24, 32, 3), np.uint8), (640, 480))
        yield cv2.imencode(".jpg", picture)[1]


def prepare(data):
    image = cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
    image = cv2.GaussianBlur(image, (5, 5), 0)
    image = cv2.resize(image, (224, 224))
    return ((image.astype(np.float32) / 255.0 - MEAN) / STD).transpose(2, 0, 1)


if __name__ == "__main__":
    images = [prepare(data) for data in encoded(int(sys.argv[1]) if len(sys.argv) > 1 else 20)]
    print(f"{len(images)} images of {images[0].shape}, mean {np.mean(images):.3f}")
