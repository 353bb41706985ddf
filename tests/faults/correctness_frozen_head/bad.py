import torch
import torch.nn as nn
from torchvision import models


def build(num_classes, lr):
    model = models.resnet50(weights=models.ResNet50_Weights.DEFAULT)
    for param in model.parameters():
        param.requires_grad = False
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)  # FAULT: frozen-parameters-in-optimizer
    return model, optimizer


def train(loader, num_classes=2, epochs=2):
    model, optimizer = build(num_classes, 1e-3)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
    return model
