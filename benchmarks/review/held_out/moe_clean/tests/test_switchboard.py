import torch

from switchboard import comm
from switchboard.config import get_args
from switchboard.moe import MoE
from switchboard.router import Router
from switchboard.train import run, utilisation


def test_router_picks_distinct_experts():
    args = get_args([])
    idx, weights, probs = Router(args).eval()(torch.randn(50, args.dim))
    assert idx.shape == weights.shape == (50, args.topk)
    assert (idx[:, 0] != idx[:, 1]).all()
    torch.testing.assert_close(probs.sum(-1), torch.ones(50))


def test_one_expert_equals_plain_ffn():
    args = get_args(["--experts", "1", "--topk", "1", "--capacity-factor", "2", "--jitter", "0"])
    moe = MoE(args).eval()
    x = torch.randn(2, 5, args.dim)
    y, _ = moe(x, torch.ones(2, 5, dtype=torch.bool))
    want = torch.nn.functional.gelu(x @ moe.experts.w1[0]) @ moe.experts.w2[0]
    torch.testing.assert_close(y, want, atol=1e-5, rtol=1e-4)


def test_padding_gets_no_output():
    args = get_args([])
    mask = torch.tensor([[True, True, False]])
    y, _ = MoE(args)(torch.randn(1, 3, args.dim), mask)
    assert (y[0, 2] == 0).all()


def test_bias_moves_and_load_is_reset():
    router = Router(get_args([]))
    router(torch.randn(64, 32))
    router.update_bias(0.1, comm.all_sum)
    assert router.bias.abs().max() > 0 and router.load.sum() == 0


def test_balance_loss_is_one_when_uniform():
    router = Router(get_args([]))
    probs = torch.full((16, 8), 1 / 8)
    idx = torch.arange(32).view(16, 2) % 8
    assert abs(router.balance_loss(probs, idx).item() - 1) < 1e-5


def test_utilisation_bounds():
    assert abs(utilisation(torch.ones(8)) - 1) < 1e-5
    assert utilisation(torch.tensor([5.0, 0, 0, 0])) < 0.01


def test_training_improves_and_checkpoint_loads(tmp_path):
    path = str(tmp_path / "ck.pt")
    _, first = run(get_args(["--steps", "1"]), log=lambda *_: None)
    _, acc = run(get_args(["--steps", "30", "--save", path]), log=lambda *_: None)
    assert acc > first + 0.1
    run(get_args(["--steps", "32", "--resume", path]), log=lambda *_: None)
