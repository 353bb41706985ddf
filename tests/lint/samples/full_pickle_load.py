"""More samples of full-pickle-load."""

BAD = (
    """\
import torch

state = torch.load('model.pt', weights_only=False)
""",
)

GOOD = (
    """\
import torch

def fetch(url):
    return torch.hub.load_state_dict_from_url(url, weights_only=True)
""",
    """\
import torch

def read(path, plain):
    return torch.load(path, weights_only=plain)
""",
)

FIXED = ("",)
