import torch
import torch.nn as nn
from torchvision import models

net = models.vgg16(weights="IMAGENET1K_V1")
for name, param in net.named_parameters():
    if name.startswith("features"):
        param.requires_grad = False
net.classifier[6] = nn.Linear(4096, 5)
trainable = [p for p in net.parameters() if p.requires_grad]
optimizer = torch.optim.SGD(trainable, lr=1e-3, momentum=0.9)


class Settings:
    def __init__(self):
        self.require_gradient = True


print(len(trainable), Settings().require_gradient)
