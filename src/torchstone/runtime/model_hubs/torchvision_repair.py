"""torchvision beside a torch of another build: its operators are declared so that it imports.

torchvision's own operators live in a compiled library that loads only beside the torch it was
built for. Without it the import fails ("operator torchvision::nms does not exist"), and with it
that of timm and of parts of transformers. Models that do not use these operators need only their
names, which can be declared.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

import torch

_SIGN = "operator torchvision::"
_GRID = "SymInt pooled_height, SymInt pooled_width"
_INPUT = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_STEPS = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_ROIS = "Tensor rois, float spatial_scale"
_DEFORM = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_FIVE = "(Tensor, Tensor, Tensor, Tensor, Tensor)"
_PICKED = "Tensor rois, Tensor argmax, float spatial_scale"
_MAPPED = "Tensor rois, Tensor channel_mapping, float spatial_scale"
_SCALES = (
    "float input_scale, int input_zero_point, float rois_scale, int rois_zero_point, "
    "float spatial_scale"
)
_RATIO = "int sampling_ratio"
SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align(Tensor input, {_ROIS}, {_GRID}, {_RATIO}, bool aligned) -> Tensor",
    f"qroi_align(Tensor input, Tensor rois, {_SCALES}, {_GRID}, {_RATIO}, bool aligned) -> Tensor",
    f"_roi_align_backward(Tensor grad, {_ROIS}, {_GRID}, {_INPUT}, {_RATIO}, bool aligned) -> Tensor",
    f"ps_roi_align(Tensor input, {_ROIS}, {_GRID}, {_RATIO}) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward(Tensor grad, {_MAPPED}, {_GRID}, {_RATIO}, {_INPUT}) -> Tensor",
    f"roi_pool(Tensor input, {_ROIS}, {_GRID}) -> (Tensor, Tensor)",
    f"_roi_pool_backward(Tensor grad, {_PICKED}, {_GRID}, {_INPUT}) -> Tensor",
    f"ps_roi_pool(Tensor input, {_ROIS}, {_GRID}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward(Tensor grad, {_MAPPED}, {_GRID}, {_INPUT}) -> Tensor",
    f"deform_conv2d({_DEFORM}, {_STEPS}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_DEFORM}, {_STEPS}) -> {_FIVE}",
)

_declared: list[torch.library.Library] = []
# A library's operators live as long as the library does.


def repair_torchvision() -> bool:
    """Make `import torchvision` work if it is installed and broken. True if it was fixed."""
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return False
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if _SIGN not in str(error):
            raise
    else:
        return False
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    _declare()
    importlib.import_module("torchvision")
    return True


def _declare() -> None:
    library = torch.library.Library("torchvision", "FRAGMENT")
    for schema in SCHEMAS:
        name = schema.partition("(")[0]
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _declared.append(library)
