"""More samples of complex-cast-to-real."""

BAD = (
    """\
import torch

def features(audio):
    spec = torch.stft(audio, 512, return_complex=True)
    return spec.to(torch.float32).log1p()
""",
)

GOOD = (
    """\
import torch

def spectrum(x):
    return torch.fft.rfft(x).abs().float()
""",
    """\
import torch

def restore(spec):
    return torch.fft.irfft(spec).float()
""",
    """\
import torch

def spectrum(x):
    return torch.view_as_real(torch.fft.fft(x)).float()
""",
    """\
import torch

def mix(x):
    return torch.fft.fft2(x).real.float()
""",
)
