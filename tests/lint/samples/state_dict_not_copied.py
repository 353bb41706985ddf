"""More samples of state-dict-not-copied."""

BAD = (
    """\
import torch

class Trial(torch.nn.Module):
    def begin(self, averaged):
        self.kept = self.model.state_dict()
        self.model.load_state_dict(averaged)

    def end(self):
        self.model.load_state_dict(self.kept)
""",
)

GOOD = (
    """\
import torch

def fit(model, path):
    state = model.state_dict()
    torch.save(state, path)
    model.load_state_dict(state)
""",
    """\
import torch

def merge(model, given):
    own = model.state_dict()
    own.update(given)
    model.load_state_dict(own)
""",
)
