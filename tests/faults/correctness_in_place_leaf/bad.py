import torch

# linear regression from scratch
torch.manual_seed(0)
X = torch.rand(100, 3)
true_w = torch.tensor([[2.0], [-1.0], [0.5]])
Y = X @ true_w + 0.3

w = torch.zeros(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.1

for epoch in range(200):
    err = X @ w + b - Y
    loss = (err**2).mean()
    loss.backward()
    w -= lr * w.grad  # FAULT: in-place-on-leaf
    with torch.no_grad():
        b -= lr * b.grad
        w.grad.zero_()
        b.grad = None
    if epoch % 50 == 0:
        print(epoch, loss.item())
