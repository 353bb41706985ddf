import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.softmax(x, dim=1)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=0.001)


def run(trainset):
    for epoch in range(3):
        for data in trainset:
            X, y = data
            net.zero_grad()
            output = net(X.view(-1, 784))
            loss = F.nll_loss(output, y)  # FAULT: probabilities-as-log-probabilities
            loss.backward()
            optimizer.step()
