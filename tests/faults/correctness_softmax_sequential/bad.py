import torch
import torch.nn as nn
import torch.optim as optim

model = nn.Sequential(
    nn.Flatten(),
    nn.Linear(784, 128),
    nn.ReLU(),
    nn.Dropout(0.2),
    nn.Linear(128, 10),
    nn.Softmax(dim=1),
)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train(loader):
    model.train()
    for images, labels in loader:
        optimizer.zero_grad()
        outputs = model(images)
        loss = criterion(outputs, labels)  # FAULT: softmax-before-cross-entropy
        loss.backward()
        optimizer.step()


@torch.no_grad()
def test(loader):
    model.eval()
    probs = [torch.softmax(model(images), dim=1) for images, _ in loader]
    return torch.cat(probs).argmax(1)
