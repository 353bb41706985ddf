import torch
import torch.nn as nn
from tqdm import tqdm


def main(model, train_loader, epochs=5):
    device = torch.device("cuda")
    model.to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        model.train()
        running_loss = 0.0
        for i, (inputs, labels) in enumerate(tqdm(train_loader)):
            inputs = inputs.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()  # FAULT: item-in-step-loop
            if i % 200 == 199:
                print(f"[{epoch}, {i}] last {loss.item():.3f}")
        print(f"epoch {epoch}: {float(running_loss) / len(train_loader):.3f}")
