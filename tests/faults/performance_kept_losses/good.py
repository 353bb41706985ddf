import matplotlib.pyplot as plt
import torch
import torch.nn as nn

model = nn.Linear(10, 1)
opt = torch.optim.SGD(model.parameters(), lr=1e-2)
X, y = torch.randn(1000, 10), torch.randn(1000, 1)
losses, detached = [], []

for epoch in range(100):
    pred = model(X)
    loss = nn.functional.mse_loss(pred, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.detach())
    detached.append(loss.item())

plt.plot(detached)
plt.savefig("loss.png")
