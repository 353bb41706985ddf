"""Which weights torchvision's models meant by `pretrained=True` before torchvision 0.13."""

from __future__ import annotations

_IMAGENET = """
AlexNet ConvNeXt_Tiny ConvNeXt_Small ConvNeXt_Base ConvNeXt_Large
DenseNet121 DenseNet161 DenseNet169 DenseNet201
EfficientNet_B0 EfficientNet_B1 EfficientNet_B2 EfficientNet_B3 EfficientNet_B4 EfficientNet_B5
EfficientNet_B6 EfficientNet_B7 EfficientNet_V2_S EfficientNet_V2_M EfficientNet_V2_L
GoogLeNet Inception_V3 MaxVit_T MNASNet0_5 MNASNet0_75 MNASNet1_0 MNASNet1_3
MobileNet_V2 MobileNet_V3_Large MobileNet_V3_Small
RegNet_X_400MF RegNet_X_800MF RegNet_X_1_6GF RegNet_X_3_2GF RegNet_X_8GF RegNet_X_16GF RegNet_X_32GF
RegNet_Y_400MF RegNet_Y_800MF RegNet_Y_1_6GF RegNet_Y_3_2GF RegNet_Y_8GF RegNet_Y_16GF RegNet_Y_32GF
ResNet18 ResNet34 ResNet50 ResNet101 ResNet152 ResNeXt50_32X4D ResNeXt101_32X8D ResNeXt101_64X4D
Wide_ResNet50_2 Wide_ResNet101_2
ShuffleNet_V2_X0_5 ShuffleNet_V2_X1_0 ShuffleNet_V2_X1_5 ShuffleNet_V2_X2_0
SqueezeNet1_0 SqueezeNet1_1 Swin_T Swin_S Swin_B Swin_V2_T Swin_V2_S Swin_V2_B
VGG11 VGG11_BN VGG13 VGG13_BN VGG16 VGG16_BN VGG19 VGG19_BN
ViT_B_16 ViT_B_32 ViT_L_16 ViT_L_32
"""
_ELSEWHERE = {
    "detection COCO_V1": "MaskRCNN_ResNet50_FPN MaskRCNN_ResNet50_FPN_V2 RetinaNet_ResNet50_FPN "
    "RetinaNet_ResNet50_FPN_V2 FasterRCNN_ResNet50_FPN FasterRCNN_ResNet50_FPN_V2 "
    "FasterRCNN_MobileNet_V3_Large_320_FPN FasterRCNN_MobileNet_V3_Large_FPN FCOS_ResNet50_FPN "
    "SSD300_VGG16 SSDLite320_MobileNet_V3_Large KeypointRCNN_ResNet50_FPN",
    "segmentation COCO_WITH_VOC_LABELS_V1": "DeepLabV3_ResNet50 DeepLabV3_ResNet101 "
    "DeepLabV3_MobileNet_V3_Large FCN_ResNet50 FCN_ResNet101 LRASPP_MobileNet_V3_Large",
    "video KINETICS400_V1": "MViT_V1_B MViT_V2_S R3D_18 MC3_18 R2Plus1D_18 S3D Swin3D_T Swin3D_S Swin3D_B",
}
_BACKBONES = (
    ("resnet50", "ResNet50_Weights.IMAGENET1K_V1"),
    ("resnet101", "ResNet101_Weights.IMAGENET1K_V1"),
    ("mobilenet_v3_large", "MobileNet_V3_Large_Weights.IMAGENET1K_V1"),
    ("vgg16", "VGG16_Weights.IMAGENET1K_FEATURES"),
)
_NO_WEIGHTS = ("vit_h_14", "regnet_y_128gf")
_SUBMODULES = frozenset(
    "alexnet convnext densenet efficientnet googlenet inception mnasnet mobilenet mobilenetv2 "
    "mobilenetv3 regnet resnet shufflenetv2 squeezenet vgg vision_transformer swin_transformer "
    "maxvit".split()
)


def _weights() -> dict[str, str]:
    found = {name.lower(): f"{name}_Weights.IMAGENET1K_V1" for name in _IMAGENET.split()}
    for home, names in _ELSEWHERE.items():
        family, member = home.split()
        for name in names.split():
            found[f"{family}.{name.lower()}"] = f"{family}.{name}_Weights.{member}"
    found["optical_flow.raft_large"] = "optical_flow.Raft_Large_Weights.C_T_SKHT_V2"
    found["optical_flow.raft_small"] = "optical_flow.Raft_Small_Weights.C_T_V2"
    return found | dict.fromkeys(_NO_WEIGHTS, "None")


WEIGHTS = _weights()
"""Model, as it is called below `torchvision.models` → the weights, below the same place."""


def model_of(full: str) -> str:
    """`resnet50` for `torchvision.models.resnet.resnet50`, or "" for what is no known model."""
    if not full.startswith("torchvision.models."):
        return ""
    name = full.removeprefix("torchvision.models.")
    first, _, rest = name.partition(".")
    if rest and first in _SUBMODULES:
        name = rest
    return name if name in WEIGHTS else ""


def backbone_of(model: str) -> str:
    """The weights that `pretrained_backbone=True` meant for a model, or ""."""
    if "." not in model or model.startswith(("video", "optical_flow")):
        return ""
    for part, weights in _BACKBONES:
        if part in model:
            return weights
    return ""
