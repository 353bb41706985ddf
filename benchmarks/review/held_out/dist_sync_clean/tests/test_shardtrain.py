import torch

from shardtrain.checkpoint import gather_full_state
from shardtrain.data import ShardedBatches, make_dataset
from shardtrain.layers import Net, RowLinear
from shardtrain.mesh import Mesh, coordinates, dp_groups, tp_groups
from shardtrain.reducer import clip_gradients
from shardtrain.train import Config, Trainer


def test_groups_cover_the_world():
    assert tp_groups(4, 2) == [[0, 1], [2, 3]]
    assert dp_groups(4, 2) == [[0, 2], [1, 3]]
    assert [coordinates(r, 4, 1) for r in range(4)] == [(r, 0) for r in range(4)]
    assert [coordinates(r, 2, 2) for r in range(2)] == [(0, 0), (0, 1)]


def test_row_linear_without_groups_is_linear():
    layer = RowLinear(8, 4, Mesh())
    x = torch.randn(3, 8)
    torch.testing.assert_close(layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))


def test_shards_are_disjoint_and_change_with_the_epoch():
    data = make_dataset(64, 4, 3, 0)
    a, b = (ShardedBatches(data, 8, r, 2, 0) for r in range(2))
    assert sorted(a.indices(0).tolist() + b.indices(0).tolist()) == list(range(64))
    assert a.indices(0).tolist() != a.indices(1).tolist()


def test_clip_limits_the_norm():
    model = Net(Config(), Mesh())
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    clip_gradients(model, Mesh(), 1.0)
    norm = torch.cat([p.grad.flatten() for p in model.parameters()]).norm()
    assert abs(norm.item() - 1) < 1e-3


def test_export_has_all_parameters():
    model = Net(Config(), Mesh())
    assert set(gather_full_state(model, Mesh())) == set(model.state_dict())


def test_training_learns_and_resumes(tmp_path):
    cfg = Config(epochs=2, out=str(tmp_path))
    _, accuracy = Trainer(cfg, Mesh()).fit()
    assert accuracy > 0.6
    again = Trainer(cfg, Mesh())
    assert again.start_epoch == 2
    assert again.evaluate()[1] == accuracy


def test_time_limit_ends_the_epoch():
    trainer = Trainer(Config(max_seconds=0.0, log_every=1), Mesh())
    assert trainer.train_epoch(0) is False
