"""More samples of dict-changed-while-iterated."""

GOOD = (
    """\
import torch

def drop_first(state):
    for name in state.keys():
        if name.startswith("head"):
            del state[name]
            break
    return state
""",
    """\
import pandas as pd
import torch

def renamed(path):
    data = pd.read_csv(path).sort_values(by="index")
    for name in data.keys():
        data[name.lower()] = data.pop(name)
    return torch.tensor(data.values)
""",
)
