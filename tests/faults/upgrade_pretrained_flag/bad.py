import timm
import torch.nn as nn
import torchvision.models as models
from torchvision.models import resnet50, ResNet50_Weights


def initialize_model(model_name, num_classes, use_pretrained=True):
    if model_name == "resnet":
        net = models.resnet18(pretrained=True)  # FAULT: torchvision-pretrained
        net.fc = nn.Linear(net.fc.in_features, num_classes)
    elif model_name == "resnet50":
        net = resnet50(weights=ResNet50_Weights.IMAGENET1K_V2)
        net.fc = nn.Linear(net.fc.in_features, num_classes)
    else:
        net = timm.create_model(model_name, pretrained=True, num_classes=num_classes)
    return net
