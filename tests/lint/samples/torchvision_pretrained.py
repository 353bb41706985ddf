"""More samples of torchvision-pretrained."""

BAD = (
    """\
import torchvision

net = torchvision.models.resnet18(False)
""",
    """\
import torchvision

net = torchvision.models.detection.fasterrcnn_resnet50_fpn(pretrained=False, pretrained_backbone=True)
""",
    """\
from torchvision.models import vgg16

def make(flag):
    return vgg16(pretrained=flag)
""",
)

GOOD = (
    """\
from torchvision import models

net = models.resnet50(weights=models.ResNet50_Weights.IMAGENET1K_V1)
""",
    """\
import torch
import timm

net = timm.create_model('resnet50', pretrained=True)
""",
    """\
from torchvision.models.vgg import cfgs, make_layers

x = make_layers(cfgs['D'], False)
""",
    """\
from torchvision.models import resnet50

net = resnet50()
""",
)

FIXED = (
    """\
@@ -3 +3 @@
-net = torchvision.models.resnet18(False)
+net = torchvision.models.resnet18(weights=None)
""",
    """\
@@ -3 +3 @@
-net = torchvision.models.detection.fasterrcnn_resnet50_fpn(pretrained=False, pretrained_backbone=True)
+net = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=torchvision.models.ResNet50_Weights.IMAGENET1K_V1)
""",
    "",
)
