# problem: exp_add
# implementation: numpy
# mechanism: a small model's own answer: a plausible function with a made-up offset
# origin: SmolLM2-135M-Instruct, asked for an elementwise kernel, wrote np.maximum(x, 1.0) for relu

import numpy as np


class ModelNew:
    def __call__(self, x, y):
        return np.exp(np.maximum(x, 1.0)) + y
