import pytest
import torch

from framenet.average import WeightAverage
from framenet.data import loader, make_frames, to_input
from framenet.losses import total_loss, z_loss
from framenet.model import FrameNet, RMSNorm
from framenet.settings import autocast, grad_scaler, parse
from framenet.train import fit


def test_input_is_standardised():
    frames, _ = make_frames(200, 16, 6, 0)
    x = to_input(frames, torch.float32)
    assert abs(x.mean()) < 0.1 and 0.5 < x.std() < 1.5


def test_rmsnorm_has_unit_rms():
    y = RMSNorm(32)(3 * torch.randn(4, 32))
    torch.testing.assert_close(y.pow(2).mean(-1), torch.ones(4), atol=1e-3, rtol=1e-3)


def test_z_loss_value():
    logits = torch.randn(5, 7)
    torch.testing.assert_close(z_loss(logits), logits.logsumexp(-1).pow(2).mean())


def test_loss_is_finite_in_low_precision():
    cfg = parse(["precision=bf16"])
    with autocast(cfg):
        logits = FrameNet(cfg)(torch.randn(2, 16, 16))
    assert torch.isfinite(total_loss(logits, torch.tensor([0, 1]), cfg))


def test_scaler_only_for_fp16():
    assert grad_scaler(parse(["precision=fp16"])).is_enabled()
    assert not grad_scaler(parse(["precision=bf16"])).is_enabled()


def test_average_follows_the_model():
    model = torch.nn.Linear(2, 2)
    ema = WeightAverage(model, 0.5)
    with torch.no_grad():
        model.weight += 1.0
    before = ema.shadow["weight"].clone()
    ema.update(model)
    torch.testing.assert_close(ema.shadow["weight"] - before, torch.full_like(before, 0.5), atol=1e-2, rtol=0)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_training_runs(precision, tmp_path):
    path = tmp_path / "run.pt"
    run, accuracy = fit(parse([f"precision={precision}", "epochs=3", f"ckpt={path}"]), log=lambda s: None)
    assert accuracy > 0.4
    again, _ = fit(parse([f"precision={precision}", "epochs=3", f"ckpt={path}"]), log=lambda s: None)
    assert again.epoch == 3


def test_loader_covers_all_frames():
    frames, labels = make_frames(50, 8, 3, 0)
    assert sum(len(y) for _, y in loader(frames, labels, 16, seed=1)) == 50
