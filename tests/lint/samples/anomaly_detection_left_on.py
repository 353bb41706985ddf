"""More samples of anomaly-detection-left-on."""

BAD = (
    """\
import torch

def train(model, loader):
    with torch.autograd.detect_anomaly():
        for x in loader:
            model(x).sum().backward()
""",
    """\
import torch

def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        with torch.autograd.detect_anomaly():
            model(x).sum().backward()
        optimizer.step()
""",
)

GOOD = (
    """\
import torch

def main(args):
    torch.autograd.set_detect_anomaly(args.debug)
""",
    """\
import torch

def main(args):
    if args.debug:
        torch.autograd.set_detect_anomaly(True)
""",
    """\
import torch

torch.autograd.set_detect_anomaly(False)
""",
    """\
import torch

def explain(model, bad_batch):
    with torch.autograd.detect_anomaly():
        model(bad_batch).sum().backward()
""",
    """\
import torch

def explain(model, bad_batch):
    with torch.autograd.set_detect_anomaly(True):
        model(bad_batch).sum().backward()
""",
)

FIXED = (
    "",
    "",
)
