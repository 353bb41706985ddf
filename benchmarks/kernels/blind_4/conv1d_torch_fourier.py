# problem: conv1d
# implementation: torch
# mechanism: the convolution is a product of Fourier transforms: one large value loses the digits of the whole row, and one infinity or NaN spreads to every position instead of three
# origin: own idea: an algorithm whose loss of precision the benchmark's unit-variance inputs hide; insufficient diversity of test conditions is robust-kbench's complaint (arXiv 2509.14279)

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, weight, bias):
        length = x.shape[-1]
        padded = length + 2
        window = weight.flip(-1)
        spectrum = torch.einsum(
            "bcf,ocf->bof",
            torch.fft.rfft(x, n=padded),
            torch.fft.rfft(window, n=padded),
        )
        full = torch.fft.irfft(spectrum, n=padded)
        return full[..., 1 : length + 1] + bias[:, None]
