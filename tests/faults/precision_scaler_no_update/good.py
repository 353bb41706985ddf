import torch
import torch.nn.functional as F
from torchvision import models

device = torch.device("cuda")
model = models.resnet18(num_classes=10).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cuda")


def fit(train_loader, epochs=3):
    for epoch in range(epochs):
        model.train()
        running = torch.zeros((), device=device)
        for xb, yb in train_loader:
            xb, yb = xb.to(device, non_blocking=True), yb.to(device, non_blocking=True)
            opt.zero_grad()
            with torch.autocast(device_type="cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(xb), yb)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            running += loss.detach()
        print(epoch, (running / len(train_loader)).item())
