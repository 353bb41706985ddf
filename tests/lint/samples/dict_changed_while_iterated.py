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
)
