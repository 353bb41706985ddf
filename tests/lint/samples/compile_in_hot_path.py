"""More samples of compile-in-hot-path."""

BAD = (
    """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.compile(self.body)(x)
""",
)

GOOD = (
    """\
import torch

def train(model, loader, opt):
    model = torch.compile(model)
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        opt.step()
""",
    """\
import torch

def prepare(model):
    for name, block in model.layers.named_children():
        model.layers.register_module(name, torch.compile(block))
""",
    """\
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        if self.fast is None:
            self.fast = torch.compile(self.body)
        pattern('x')
        return self.fast(x)
""",
)
