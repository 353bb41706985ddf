import torch
from torch.optim.lr_scheduler import StepLR
import torch.nn.functional as F


def main(model, train_loader, test, epochs=14):
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(epochs):
        scheduler.step()  # FAULT: scheduler-before-optimizer
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = F.nll_loss(F.log_softmax(model(data), dim=1), target)
            loss.backward()
            optimizer.step()
        test(model)
        print(scheduler.get_last_lr())
