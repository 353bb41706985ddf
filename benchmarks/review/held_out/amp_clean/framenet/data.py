import torch

MEAN, STD = 1800.0, 60.0


def make_frames(n, size, classes, seed):
    """12-bit frames: a bright pedestal with faint stripes whose period is the class."""
    gen = torch.Generator().manual_seed(seed)
    label = torch.randint(0, classes, (n,), generator=gen)
    axis = torch.arange(size).float()
    phase = torch.rand(n, 1, generator=gen) * 6.28
    wave = torch.sin(axis[None] * (0.4 + 0.35 * label[:, None]) + phase)
    frames = MEAN + 60 * wave[:, None, :] + 25 * torch.randn(n, size, size, generator=gen)
    return frames.round().clamp(0, 4095).to(torch.int16), label


def to_input(frames, dtype):
    """Raw counts to network input, about zero mean and unit variance."""
    return ((frames.float() - MEAN) / STD).to(dtype)


def loader(frames, labels, batch, seed=None):
    """Mini-batches; shuffled when a seed is given."""
    n = len(frames)
    order = torch.arange(n)
    if seed is not None:
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    for part in order.split(batch):
        yield frames[part], labels[part]
