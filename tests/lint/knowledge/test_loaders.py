"""Who iterates over a DataLoader, and where its batches go."""

from __future__ import annotations

import ast

from torchstone.lint.knowledge import loaders
from torchstone.lint.knowledge.torchvision_api import WEIGHTS, backbone_of, model_of
from torchstone.sources.project import Project, parse
from torchstone.sources.scene import Scene
from torchstone.sources.source import Source


def scene_of(text: str) -> Scene:
    text = f"import torch\nfrom torch.utils.data import DataLoader\n{text}"
    tree = parse(Source("sample.py", text))
    assert isinstance(tree, ast.Module)
    return Project().scene(Source("sample.py", text), tree)


def moved(text: str) -> list[str]:
    """The calls that move what comes out of the file's one DataLoader."""
    scene = scene_of(text)
    (made,) = scene.calls["DataLoader"]
    return [
        scene.text(call)
        for loop in loaders.loops_over(scene, made)
        for call in loaders.moves(scene, loop)
    ]


def test_batches_are_followed_to_the_device() -> None:
    body = "    for i, (x, y) in enumerate(tqdm(loader)):\n        f(x.cuda(), y.to(device), z.cuda())\n"
    assert moved(f"def f(d):\n    loader = DataLoader(d)\n{body}") == ["x.cuda()", "y.to(device)"]


def test_a_function_that_takes_the_loader_counts() -> None:
    inner = "def train(loader):\n    for x in loader:\n        x.cuda()\n"
    assert moved(f"{inner}def main(d):\n    loader = DataLoader(d)\n    train(loader)\n") == [
        "x.cuda()"
    ]


def test_another_functions_loader_of_the_same_name_does_not() -> None:
    other = "def other():\n    loader = make()\n    for x in loader:\n        x.cuda()\n"
    assert moved(f"{other}def main(d):\n    loader = DataLoader(d)\n") == []


def test_use_in_a_loop_is_seen() -> None:
    scene = scene_of("loader = DataLoader(d)\nfor epoch in range(3):\n    train(loader)\n")
    (made,) = scene.calls["DataLoader"]
    assert loaders.used_in_loop(scene, made, frozenset({"loader"}))
    scene = scene_of("loader = DataLoader(d)\nfor x in loader:\n    train(x)\n")
    (made,) = scene.calls["DataLoader"]
    assert not loaders.used_in_loop(scene, made, frozenset({"loader"}))


def test_torchvision_models_know_their_weights() -> None:
    assert len(WEIGHTS) > 100
    assert model_of("torchvision.models.resnet.resnet50") == "resnet50"
    assert WEIGHTS["resnet50"] == "ResNet50_Weights.IMAGENET1K_V1"
    assert model_of("torchvision.models.vgg.make_layers") == ""
    assert WEIGHTS["vit_h_14"] == "None"
    assert backbone_of("detection.ssd300_vgg16") == "VGG16_Weights.IMAGENET1K_FEATURES"
    assert backbone_of("resnet50") == ""
