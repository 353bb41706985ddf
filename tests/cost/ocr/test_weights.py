"""Weights under the vendor's names, transformers' names and our own give the same model."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from torchstone.core.errors import InputError
from torchstone.cost.ocr.model.composed import build
from torchstone.cost.ocr.model.session import DeepSeekOCRSession
from torchstone.cost.ocr.model.shapes import SMALL
from torchstone.cost.ocr.model.weights import places

Weights = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def own() -> Weights:
    model = build(SMALL, "cpu", torch.float32, seed=5)
    return {name: item.clone() for name, item in model.named_parameters()}


def vendor(own: Weights) -> Weights:
    """The same weights as the vendor stores them."""
    made: Weights = {"model.vision_model.embeddings.position_ids": torch.arange(257)[None]}
    for name, item in own.items():
        if found := re.match(r"(.*\.mlp\.experts)\.(gate_up|down)_proj$", name):
            for expert, one in enumerate(item):
                if found[2] == "down":
                    made[f"{found[1]}.{expert}.down_proj.weight"] = one.clone()
                else:
                    gate, up = one.chunk(2)
                    made[f"{found[1]}.{expert}.gate_proj.weight"] = gate.clone()
                    made[f"{found[1]}.{expert}.up_proj.weight"] = up.clone()
        elif "vision_model" in name and (found := re.match(r"(.*)\.q_proj\.(\w+)$", name)):
            three = [own[f"{found[1]}.{part}_proj.{found[2]}"] for part in "qkv"]
            made[f"{found[1]}.qkv_proj.{found[2]}".replace(".encoder.", ".transformer.")] = (
                torch.cat(three)
            )
        elif "vision_model" in name and re.search(r"\.[kv]_proj\.", name):
            continue
        else:
            made[_vendor_name(name)] = item.clone()
    return made


def _vendor_name(name: str) -> str:
    name = name.replace("vision_model.encoder.", "vision_model.transformer.")
    if "sam_model" not in name:
        return name
    for new, old in (("patch_embed.projection", "patch_embed.proj"), ("neck.conv1", "neck.0"),
                     ("neck.layer_norm1", "neck.1"), ("neck.conv2", "neck.2"),
                     ("neck.layer_norm2", "neck.3"), ("proj.conv1", "net_2"),
                     ("proj.conv2", "net_3"), ("sam_model.layers", "sam_model.blocks"),
                     (".layer_norm", ".norm")):  # fmt: skip
        if new == ".layer_norm" and "neck" in name:
            continue
        name = name.replace(new, old)
    return name


@pytest.mark.parametrize("naming", [dict, vendor])
def test_a_folder_with_weights(
    folder: Path, own: Weights, naming: Callable[[Weights], Weights]
) -> None:
    stored = naming(own)
    names = sorted(stored)
    parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: stored[name].contiguous() for name in some}, folder / file)
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    session = DeepSeekOCRSession.from_local(folder, "cpu")
    assert session.m_device.type == "cpu"
    assert session.m_notes == ()
    for name, item in session.m_model.named_parameters():
        assert torch.equal(item, own[name]), name
    with torch.no_grad():
        expected = build(SMALL, "cpu", torch.float32, seed=5)(torch.tensor([[1, 2, 3]])).logits
        assert torch.equal(session.m_model(torch.tensor([[1, 2, 3]])).logits, expected)


@pytest.mark.parametrize(
    ("stored", "target"),
    [
        ("model.vision_tower.sam_encoder.neck.conv1.weight", "model.sam_model.neck.conv1.weight"),
        ("model.vision_tower.query_768_resolution.weight",
         "model.vision_model.query_768_resolution.weight"),
        ("model.qwen2_model.query_1024.weight", "model.vision_model.query_1024_resolution.weight"),
        ("model.qwen2_model.model.model.layers.3.mlp.up_proj.weight",
         "model.vision_model.encoder.layers.3.mlp.up_proj.weight"),
        ("model.vision_tower.vision_encoder.norm.weight", "model.vision_model.encoder.norm.weight"),
        ("model.language_model.layers.0.mlp.up_proj.weight", "model.layers.0.mlp.up_proj.weight"),
        ("model.multi_modal_projector.bias", "model.projector.layers.bias"),
        ("model.view_separator", "model.view_seperator"),
        ("lm_head.weight", "lm_head.weight"),
    ],
)  # fmt: skip
def test_names_of_the_second_generation(stored: str, target: str) -> None:
    assert [place.name for place in places(stored, 4)] == [target]


def save(folder: Path, stored: Weights) -> None:
    save_file(
        {name: item.contiguous() for name, item in stored.items()}, folder / "all.safetensors"
    )


def test_missing_foreign_and_misshapen_weights(folder: Path, own: Weights) -> None:
    save(folder, {name: item for name, item in own.items() if name != "lm_head.weight"})
    with pytest.raises(InputError, match=r"nothing for lm_head\.weight"):
        DeepSeekOCRSession.from_local(folder, "cpu")
    save(folder, {**own, "model.extra.weight": torch.zeros(2)})
    with pytest.raises(InputError, match=r"got model\.extra\.weight"):
        DeepSeekOCRSession.from_local(folder, "cpu")
    save(folder, {**own, "lm_head.weight": torch.zeros(3, 64)})
    with pytest.raises(InputError, match=r"lm_head\.weight \(3, 64\), expected \(512, 64\)"):
        DeepSeekOCRSession.from_local(folder, "cpu")


def test_broken_files(folder: Path) -> None:
    (folder / "all.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(InputError, match=r"all\.safetensors"):
        DeepSeekOCRSession.from_local(folder, "cpu")
    (folder / "all.safetensors").unlink()
    for text in ("{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": "../../etc/passwd"}}'):
        (folder / "model.safetensors.index.json").write_text(text, "utf-8")
        with pytest.raises(InputError, match=r"index\.json"):
            DeepSeekOCRSession.from_local(folder, "cpu")


def test_an_index_without_its_files_is_a_configuration(folder: Path) -> None:
    index = {"weight_map": {"lm_head.weight": "gone.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    assert DeepSeekOCRSession.from_local(folder, "cpu").m_device.type == "meta"


class Evil:
    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return (exec, ("raise SystemExit('ran')",))


def test_pickles_are_refused_and_never_loaded(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(InputError, match=r"pytorch_model\.bin, expected weights as \.safetensors"):
        DeepSeekOCRSession.from_local(folder, "cpu")
    assert DeepSeekOCRSession.from_local(folder, "meta").m_device.type == "meta"
