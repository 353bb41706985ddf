import torch
import torch.nn as nn

device = "cuda"
model = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(4096, 32, device=device)
y = torch.randn(4096, 1, device=device)

n_epochs, bs = 20, 64
for epoch in range(n_epochs):
    perm = torch.randperm(x.size(0), device=device)
    for i in range(0, x.size(0), bs):
        idx = perm[i : i + bs]
        loss = (model(x[idx]) - y[idx]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch} batch {i // bs} loss {loss}")  # FAULT: tensor-print-in-step-loop
    print(f"epoch {epoch} done, last loss {loss}")
