"""What a model is made of: layers that training mode changes, and buffers.

A model without dropout and batch norm behaves the same in both modes, and DDP has nothing to broadcast
for a model without buffers. Where a part comes from elsewhere, nobody can tell: the answer is None.
"""

from __future__ import annotations

import ast
import re

from torchstone.core.pattern import pattern
from torchstone.lint.facts.returned import maker_of
from torchstone.sources.scene import Scene

_DEPTH = 4  # modules of modules; deeper nets have their batch norm earlier
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "DataParallel")
_ZOOS = ("torchvision.models.", "timm.", "segmentation_models_pytorch.", "efficientnet_pytorch.")
_BY_MODE = pattern(
    r"drop(?:out|_?path|_?block|_?connect|_p\b|\b)|batch_?norm|\bBN\b|\.training\b|rrelu|track_running", re.I
)  # fmt: skip
_BUFFERS = pattern(r"batch_?norm|register_buffer|nn\.Buffer|\bBN\b|track_running", re.I)
Asked = str
MODE: Asked = "mode"
BUFFERS: Asked = "buffers"
NORMS: Asked = "norms"
_WORDS = {MODE: _BY_MODE, BUFFERS: _BUFFERS, NORMS: pattern(r"batch_?norm|\bBN\b", re.I)}
_WITHOUT_NORMS = pattern(r"vit|swin|convnext|vgg\d+$|alexnet|deit|beit|mixer", re.I)


def depends_on_mode(scene: Scene, model: ast.AST | None) -> bool | None:
    """Whether `eval()` changes what a model computes; None where its making is not to be seen."""
    return _asked(scene, model, MODE)


def has_buffers(scene: Scene, model: ast.AST | None) -> bool | None:
    """Whether a model has buffers; None where its making is not to be seen."""
    return _asked(scene, model, BUFFERS)


def has_batch_norm(scene: Scene, model: ast.AST | None) -> bool | None:
    """Whether a model has batch norm; None where its making is not to be seen."""
    return _asked(scene, model, NORMS)


def _asked(scene: Scene, model: ast.AST | None, what: Asked) -> bool | None:
    made = maker_of(scene, model)
    for _ in range(3):  # DDP around SyncBatchNorm.convert_sync_batchnorm around the model
        if made is None:
            return None
        name = made.name.rpartition(".")[2] or made.scene.last_name(made.call.func)
        if name == "convert_sync_batchnorm":
            return True
        if name not in _WRAPPERS or not made.call.args:
            return _of_call(made.scene, made.call, what, _DEPTH)
        inner = made.call.args[0]
        made = maker_of(made.scene, inner)
    return None


def _of_call(scene: Scene, call: ast.Call, what: Asked, depth: int) -> bool | None:
    """What a call that makes a module tells of it."""
    full = scene.qualified(call.func)
    if full.startswith(_ZOOS):
        return what != NORMS or not _WITHOUT_NORMS.search(scene.text(call))
    if full.startswith("torch.nn."):
        return _of_layer(scene, call, what, depth)
    found = scene.project.class_named(scene, call.func, full)
    if found is None or not depth:
        return None
    known: dict[object, bool | None] = scene.project.summaries
    key = (what, found[0].path, found[1].lineno)
    if key not in known:
        known[key] = False  # a class that makes objects of itself adds nothing
        known[key] = _of_class(found[0], found[1], what, depth - 1)
    return known[key]


def _of_layer(scene: Scene, call: ast.Call, what: Asked, depth: int) -> bool | None:
    """A layer of torch, with the layers that it is given."""
    if _WORDS[what].search(scene.last_name(call.func)):
        return True
    inner = [
        _of_call(scene, part, what, depth)
        for part in scene.inside(call)
        if isinstance(part, ast.Call) and part is not call and _makes(scene, part)
    ]
    return _together(inner)


def _of_class(scene: Scene, owner: ast.ClassDef, what: Asked, depth: int) -> bool | None:
    if _WORDS[what].search(scene.text(owner)):
        return True
    parts: list[bool | None] = []
    for base in owner.bases:
        full = scene.qualified(base)
        found = scene.project.class_named(scene, base, full)
        if found is not None and found[1] is not owner:
            parts.append(_of_class(found[0], found[1], what, depth - 1) if depth else None)
        elif not full.startswith("torch.nn.") and scene.last_name(base) not in ("object", "ABC"):
            parts.append(None)
    parts += [
        _of_call(scene, call, what, depth)
        for call in scene.inside(owner)
        if isinstance(call, ast.Call) and _makes(scene, call)
    ]
    return _together(parts)


def _makes(scene: Scene, call: ast.Call) -> bool:
    """Whether a call makes a module, or may: its name is a class's, or nobody knows it."""
    name = scene.last_name(call.func)
    if scene.qualified(call.func).startswith("torch.nn."):
        return name[:1].isupper() and name not in ("Parameter", "ModuleList", "ModuleDict")
    return bool(re.match(r"_*[A-Z][a-z]", name)) or bool(
        re.match(r"(?:make|build|create|get)_", name)
    )


def _together(parts: list[bool | None]) -> bool | None:
    """One part is enough; one unknown part leaves it open."""
    if any(parts):
        return True
    return None if None in parts else False
