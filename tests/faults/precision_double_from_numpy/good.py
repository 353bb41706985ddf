import numpy as np
import torch
import torch.nn as nn

rng = np.random.default_rng(0)
X = rng.normal(size=(512, 8))
y = X @ rng.normal(size=(8, 1))

inputs = torch.from_numpy(rng.normal(size=(512, 8)).astype(np.float32))
targets = torch.as_tensor(y, dtype=torch.float32)
labels = torch.from_numpy(np.arange(512))

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.MSELoss()

for epoch in range(100):
    optimizer.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    optimizer.step()
    if epoch % 10 == 0:
        print(epoch, loss.item())
