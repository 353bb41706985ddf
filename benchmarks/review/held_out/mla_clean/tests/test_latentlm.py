import torch

from latentlm.attention import LatentCache, apply_rope, build_mask
from latentlm.config import ModelConfig, TrainConfig
from latentlm.data import BOS, IGNORE, batches
from latentlm.generate import generate
from latentlm.model import LatentLM
from latentlm.train import train

CFG = ModelConfig(dropout=0.0)


def test_logits_shape():
    model = LatentLM(CFG)
    assert model(torch.randint(0, 64, (4, 12))).shape == (4, 12, 64)


def test_model_is_causal():
    torch.manual_seed(0)
    model = LatentLM(CFG).eval()
    a = torch.randint(2, 64, (1, 10))
    b = a.clone()
    b[:, 7:] = 3
    torch.testing.assert_close(model(a)[:, :7], model(b)[:, :7])


def test_cached_decoding_matches_full_pass():
    torch.manual_seed(0)
    model = LatentLM(CFG).eval()
    ids = torch.randint(2, 64, (1, 9))
    cache = LatentCache(CFG.n_layers)
    steps = [model(ids[:, i : i + 1], cache=cache) for i in range(9)]
    torch.testing.assert_close(torch.cat(steps, 1), model(ids), atol=1e-4, rtol=1e-3)


def test_mask_keeps_documents_apart():
    docs = torch.tensor([[0, 0, 1, 1]])
    mask = build_mask(docs, docs, 0).reshape(4, 4)
    assert mask.tolist()[2] == [False, False, True, False]


def test_rope_keeps_norm():
    x = torch.randn(2, 5, 3, 8)
    y = apply_rope(x, torch.arange(5), 10000.0)
    torch.testing.assert_close(x.norm(dim=-1), y.norm(dim=-1))


def test_labels_stop_at_document_ends():
    batch = next(batches(64, 4, 64, seed=1))
    starts = batch.ids[:, 1:] == BOS
    assert (batch.labels[:, :-1][starts] == IGNORE).all()


def test_training_lowers_the_loss_and_generates():
    losses = []
    model = train(ModelConfig(), TrainConfig(steps=20), log=lambda s: losses.append(float(s.split()[4])))
    assert losses[-1] < losses[0]
    assert generate(model, [[BOS, 2, 4]] * 4, 3).shape == (4, 3)
