# problem: rms_norm
# implementation: numba
# mechanism: the block has min(width, 64) threads and the tree halves the count rounding down, so partial sums are lost for widths under 64 that are no powers of two
# origin: shape assumptions written into generated kernels (AgentKernelArena, arXiv 2605.16819); here the tree reduction's power of two

import numpy as np
from numba import cuda, float32


@cuda.jit
def rms_norm(x, weight, out, epsilon):
    partial = cuda.shared.array(64, float32)
    row = cuda.blockIdx.x
    lane = cuda.threadIdx.x
    total = float32(0.0)
    for column in range(lane, x.shape[1], cuda.blockDim.x):
        total += x[row, column] * x[row, column]
    partial[lane] = total
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if lane < half:
            partial[lane] += partial[lane + half]
        cuda.syncthreads()
        half //= 2
    root = (partial[0] / x.shape[1] + epsilon) ** 0.5
    for column in range(lane, x.shape[1], cuda.blockDim.x):
        out[row, column] = x[row, column] / root * weight[column]


class ModelNew:
    def __init__(self, epsilon):
        self.epsilon = epsilon

    def __call__(self, x, weight):
        out = np.empty(x.shape, dtype=x.dtype)
        if x.size:
            width = x.shape[-1]
            rms_norm[x.size // width, min(width, 64)](
                np.ascontiguousarray(x).reshape(-1, width),
                np.ascontiguousarray(weight),
                out.reshape(-1, width),
                self.epsilon,
            )
        return out
