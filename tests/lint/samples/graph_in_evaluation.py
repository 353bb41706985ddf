"""More samples of graph-in-evaluation."""

BAD = (
    """\
import torch

class Runner:
    def predict(self, loader):
        self.model.eval()
        outputs = []
        for batch in loader:
            outputs.append(self.model(batch).argmax(-1).cpu())
        return torch.cat(outputs)
""",
    """\
import torch

def evaluate(models, loader):
    for model in models.values():
        model.eval()
    for x in loader:
        print(models["head"](models["body"](x)))
""",
)

GOOD = (
    """\
import torch

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    return [model(x) for x in loader]
""",
    """\
import torch

def evaluate(model, loader):
    model.eval()
    with torch.inference_mode():
        for x in loader:
            print(model(x))
""",
    """\
import torch

def attack(model, loader):
    model.eval()
    for x, y in loader:
        x.requires_grad_(True)
        loss = model(x).sum()
        loss.backward()
""",
    """\
import torch

def scores(model, loader):
    model.eval()
    for x in loader:
        print(model(x))

def main(model, loader):
    with torch.no_grad():
        scores(model, loader)
""",
    """\
import torch

class Validator:
    @smart_inference_mode()
    def __call__(self, model, loader):
        model.eval()
        for x in loader:
            print(model(x))
""",
    """\
import torch

def run(model, loader):
    torch.set_grad_enabled(False)
    model.eval()
    for x in loader:
        print(model(x))
""",
    """\
import torch

torch.set_grad_enabled(False)

def main(model, loader):
    model.eval()
    for x in loader:
        print(model(x).argmax())
""",
)
