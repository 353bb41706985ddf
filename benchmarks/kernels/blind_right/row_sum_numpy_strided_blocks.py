# problem: row_sum
# implementation: numpy
# mechanism: rows are seen as blocks of sixteen through strides, blocks are folded in half, and the rest is added

import numpy as np
from numpy.lib.stride_tricks import as_strided

BLOCK = 16


class ModelNew:
    def __call__(self, x):
        x = np.ascontiguousarray(x)
        width = x.shape[-1]
        flat = x.reshape(-1, width) if width else np.zeros((int(np.prod(x.shape[:-1])), 0), x.dtype)
        blocks = width // BLOCK
        row, item = flat.strides[0], x.itemsize
        tiles = as_strided(
            flat, (flat.shape[0], blocks, BLOCK), (row, BLOCK * item, item), writeable=False
        )
        folded = tiles.copy()
        while folded.shape[-1] > 1:
            half = folded.shape[-1] // 2
            folded = folded[..., :half] + folded[..., half:]
        total = np.add.reduce(folded[..., 0], axis=-1, dtype=np.float64)
        total = total + np.add.reduce(flat[:, blocks * BLOCK :], axis=-1, dtype=np.float64)
        return total.astype(x.dtype).reshape(x.shape[:-1])
