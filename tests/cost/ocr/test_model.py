"""The composed models are the published ones: parameters, names, and what they compute."""

from __future__ import annotations

import torch

from torchstone.cost.ocr.analysis.analyzer import DeepseekOCRStaticAnalyzer
from torchstone.cost.ocr.analysis.stages import parameters
from torchstone.cost.ocr.model import parts
from torchstone.cost.ocr.model.composed import QueryEncoder, build
from torchstone.cost.ocr.model.session import DeepSeekOCRSession
from torchstone.cost.ocr.model.shapes import SMALL, OcrShape, QueryShape


def count(model: torch.nn.Module, path: str) -> int:
    return parameters([model.get_submodule(path)])


def test_published_parameters_by_part(published: DeepseekOCRStaticAnalyzer) -> None:
    model = published.m_session.m_model
    assert sum(item.numel() for item in model.parameters()) == 3_336_106_240
    assert {name: count(model, name) for name in (
        "model.sam_model", "model.vision_model", "model.projector", "model.embed_tokens",
        "model.layers", "model.norm", "lm_head",
    )} == {
        "model.sam_model": 95_569_152,
        "model.vision_model": 303_177_728,
        "model.projector": 2_622_720,
        "model.embed_tokens": 165_478_400,
        "model.layers": 2_603_776_000,
        "model.norm": 1_280,
        "lm_head": 165_478_400,
    }  # fmt: skip
    assert model.get_parameter("model.image_newline").numel() == 1_280
    assert model.get_parameter("model.view_seperator").numel() == 1_280


def test_second_generation_has_the_parameters_of_transformers(
    second: DeepseekOCRStaticAnalyzer,
) -> None:
    ours = sum(item.numel() for item in second.m_session.m_model.parameters())
    shape = second._shape
    with torch.device("meta"):
        theirs = parts.parts().SecondModel(parts.second_config(shape, "sdpa"))
    assert ours == sum(item.numel() for item in theirs.parameters()) == 3_389_119_360


def run_small(session: DeepSeekOCRSession, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    source = torch.Generator().manual_seed(1)
    crops = torch.randn((4, 3, 128, 128), generator=source)
    whole = torch.randn((1, 3, 256, 256), generator=source)
    with torch.no_grad():
        output = session.m_model(ids, [(crops, whole)], mask, torch.tensor([[2, 2]]))
    logits: torch.Tensor = output.logits
    return logits


def small_prompt() -> tuple[torch.Tensor, torch.Tensor]:
    image = (4 + 1) * 4 + 1 + (2 * 2 + 1) * 2 * 2
    ids = torch.tensor([[0, *[500] * image, 7, 8]])
    return ids, ids == 500


def test_a_step_with_the_cache_equals_the_whole_pass(small: DeepSeekOCRSession) -> None:
    ids, mask = small_prompt()
    whole = run_small(small, ids, mask)
    source = torch.Generator().manual_seed(1)
    views = (
        torch.randn((4, 3, 128, 128), generator=source),
        torch.randn((1, 3, 256, 256), generator=source),
    )
    with torch.no_grad():
        first = small.m_model(ids[:, :-1], [views], mask[:, :-1], [[2, 2]])
        step = small.m_model(ids[:, -1:], past_key_values=first.past_key_values)
    assert first.past_key_values.get_seq_length() == ids.shape[1]
    torch.testing.assert_close(step.logits[:, -1], whole[:, -1], atol=1e-5, rtol=1e-4)


def test_the_page_changes_what_is_read(small: DeepSeekOCRSession) -> None:
    ids, mask = small_prompt()
    with torch.no_grad():
        blind = small.m_model(ids).logits
    assert not torch.allclose(run_small(small, ids, mask)[:, -1], blind[:, -1], atol=1e-4)


def test_weights_come_from_the_seed(small: DeepSeekOCRSession) -> None:
    again = build(SMALL, "cpu", torch.float32, seed=0)
    other = build(SMALL, "cpu", torch.float32, seed=1)
    name = "model.layers.1.mlp.experts.down_proj"
    assert torch.equal(again.get_parameter(name), small.m_model.get_parameter(name))
    assert not torch.equal(again.get_parameter(name), other.get_parameter(name))


def test_second_generation_computes_what_transformers_computes() -> None:
    shape = OcrShape("tiny", SMALL.sam, QueryShape(64, 2, 4, 2, 128, 100), SMALL.text, 6, 768, 500)
    theirs = parts.parts().SecondModel(parts.second_config(shape, "sdpa")).eval()
    ours = build(shape, "cpu", torch.float32)
    text, tower = theirs.model.language_model, theirs.model.vision_tower
    ours.model.sam_model, ours.model.vision_model = tower.sam_encoder, QueryEncoder(tower)
    ours.model.projector.layers = theirs.model.multi_modal_projector
    ours.model.view_seperator = theirs.model.view_separator
    for name in ("embed_tokens", "layers", "norm", "rotary_emb"):
        setattr(ours.model, name, getattr(text, name))
    ours.lm_head = theirs.lm_head
    crops, whole = torch.randn(2, 3, 768, 768), torch.randn(1, 3, 1024, 1024)
    ids = torch.tensor([[0, *[500] * (257 + 2 * 144), 7]])
    with torch.no_grad():
        expected = theirs(
            input_ids=ids, pixel_values=whole, pixel_values_local=crops, num_local_patches=[2]
        )
        got = ours(ids, [(crops, whole)], ids == 500, [[2, 1]])
    assert torch.equal(got.logits, expected.logits)


def test_eager_and_fused_attention_agree() -> None:
    ids, mask = small_prompt()
    fused = DeepSeekOCRSession.from_config("small", "cpu", True, torch.float32)
    eager = DeepSeekOCRSession.from_config("small", "cpu", False, torch.float32)
    torch.testing.assert_close(
        run_small(fused, ids, mask), run_small(eager, ids, mask), atol=1e-5, rtol=1e-4
    )


def test_crops_are_laid_out_as_one_picture(small: DeepSeekOCRSession) -> None:
    model = small.m_model.get_submodule("model")
    # two tiles across, three down, of 2 x 2 tokens: each token says its tile, row and column
    tiles = torch.tensor(
        [[[t, r, c] for r in range(2) for c in range(2)] for t in range(6)], dtype=torch.float32
    )
    features = torch.nn.functional.pad(tiles, (0, 61))
    lines = model._lay_out(features, (2, 3)).view(6, 5, 64)  # type: ignore[operator]
    for row in range(6):
        for column in range(4):
            tile = (row // 2) * 2 + column // 2
            assert lines[row, column, :3].tolist() == [tile, row % 2, column % 2]
        assert torch.equal(lines[row, 4], model.get_parameter("image_newline"))


def test_a_page_is_crops_then_the_whole_then_the_separator(small: DeepSeekOCRSession) -> None:
    model = small.m_model.get_submodule("model")
    crops, whole = torch.randn(2, 3, 128, 128), torch.randn(1, 3, 256, 256)
    with torch.no_grad():
        page = model.page((crops, whole), (1, 2))  # type: ignore[operator]
        first = model._lay_out(model.see(crops), (1, 2))  # type: ignore[operator]
        then = model._lay_out(model.see(whole), (1, 1))  # type: ignore[operator]
    assert torch.equal(page[:12], first)
    assert torch.equal(page[12:-1], then)
    assert torch.equal(page[-1], model.get_parameter("view_seperator"))


def test_the_features_of_both_encoders_are_joined_without_the_class(
    small: DeepSeekOCRSession,
) -> None:
    model = small.m_model.get_submodule("model")
    view = torch.randn(1, 3, 256, 256)
    with torch.no_grad():
        low = model.sam_model(view).last_hidden_state  # type: ignore[operator]
        high = model.vision_model(view, low)  # type: ignore[operator]
        joined = torch.cat([high[:, 1:], low.flatten(2).transpose(1, 2)], dim=2)
        expected = model.projector(joined)  # type: ignore[operator]
        assert torch.equal(model.see(view), expected)  # type: ignore[operator]
    assert high.shape == (1, 17, 64)
    assert joined.shape == (1, 16, 128)
