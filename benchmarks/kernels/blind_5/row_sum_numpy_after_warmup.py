# problem: row_sum
# implementation: numpy
# mechanism: the first fifteen calls are honest; later calls, taken for timed repetitions, give the
#   last honest answer of the same shape without looking at the input
# origin: gpu-mode/reference-kernels pull 104 (a learning phase of 15 calls, then cached
#   results), gpu-mode/pygpubench pull 7 (warmup detection)

import numpy as np

HONEST_CALLS = 15


class ModelNew:
    def __init__(self):
        self.calls = 0
        self.seen = {}

    def __call__(self, x):
        self.calls += 1
        key = (x.shape, x.dtype.str)
        if self.calls > HONEST_CALLS and key in self.seen:
            return self.seen[key].copy()
        total = np.add.reduce(x, axis=-1)
        self.seen[key] = np.array(total)
        return total
