import torch
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets, transforms

tf = transforms.Compose([transforms.RandomResizedCrop(224), transforms.ToTensor()])
train_set = datasets.ImageFolder("data/train", transform=tf)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, pin_memory=True)  # FAULT: loader-without-workers
toy = TensorDataset(torch.randn(100, 2), torch.zeros(100))


def train(model, criterion, optimizer):
    model.cuda().train()
    for images, labels in train_loader:
        images = images.cuda(non_blocking=True)
        labels = labels.cuda(non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
