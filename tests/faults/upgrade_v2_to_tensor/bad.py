import torch
from torchvision import datasets
from torchvision.transforms import v2

train_tf = v2.Compose([
    v2.RandomHorizontalFlip(),
    v2.ToTensor(),  # FAULT: v2-to-tensor
    v2.Normalize((0.5,) * 3, (0.5,) * 3),
])
test_tf = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


def data(root):
    train = datasets.CIFAR10(root, train=True, download=True, transform=train_tf)
    test = datasets.CIFAR10(root, train=False, transform=test_tf)
    return train, test
