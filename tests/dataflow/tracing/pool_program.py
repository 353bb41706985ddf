"""A script that hands its images to a pool of processes."""

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np


def brighten(image):
    return np.add(image, 1.5)


def prepare(kind):
    images = [np.full((4, 4), float(number)) for number in range(3)]
    if kind == "executor":
        with ProcessPoolExecutor(1) as executor:
            brightened = list(executor.map(brighten, images))
    else:
        with multiprocessing.get_context(kind).Pool(1) as pool:
            brightened = pool.map(brighten, images, chunksize=1)
    return np.stack(brightened)


if __name__ == "__main__":
    total = prepare(sys.argv[1]).sum()
