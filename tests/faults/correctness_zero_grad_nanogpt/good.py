import math
import torch
import torch.nn as nn
from torch.nn import functional as F

batch_size, block_size, max_iters, eval_interval = 32, 64, 2000, 200
device = "cuda" if torch.cuda.is_available() else "cpu"


class Bigram(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.table = nn.Embedding(vocab, vocab)

    def forward(self, idx, targets=None):
        logits = self.table(idx)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(data):
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
    return x.to(device), y.to(device)


@torch.no_grad()
def estimate_loss(model, data):
    model.eval()
    out = torch.stack([model(*get_batch(data))[1] for _ in range(10)]).mean()
    model.train()
    return out


text = open("input.txt").read()
stoi = {c: i for i, c in enumerate(sorted(set(text)))}
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
model = Bigram(len(stoi)).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for it in range(max_iters):
    if it % eval_interval == 0:
        print(it, estimate_loss(model, data).item())
    xb, yb = get_batch(data)
    logits, loss = model(xb, yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print(math.exp(estimate_loss(model, data).item()))
