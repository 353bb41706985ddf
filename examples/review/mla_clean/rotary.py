"""Rotary positions."""

import torch


def angles(positions, width, base=10000.0):
    """Cosine and sine for each position."""
    frequencies = base ** (-torch.arange(0, width, 2, device=positions.device).float() / width)
    turned = positions.float()[:, None] * frequencies
    return turned.cos(), turned.sin()


def rotate(x, cosine, sine):
    """Turn pairs of features; x ends with (length, width)."""
    even, odd = x.float()[..., 0::2], x.float()[..., 1::2]
    turned = torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), dim=-1)
    return turned.flatten(-2).to(x.dtype)
