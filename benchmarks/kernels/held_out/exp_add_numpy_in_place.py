# problem: exp_add
# implementation: numpy
# mechanism: the powers overwrite x, and the answer is x itself
# origin: ScalingIntelligence/KernelBench#82: a kernel that changes its inputs can agree with a reference that runs after it

import numpy as np


class ModelNew:
    def __call__(self, x, y):
        np.exp(x, out=x)
        x += y
        return x
