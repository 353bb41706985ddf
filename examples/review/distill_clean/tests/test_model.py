import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from losses import hint_loss  # noqa: E402
from model import Bridge, Network  # noqa: E402


def test_shapes():
    outputs, features = Network(8, 2)(torch.randn(4, 1, 12, 12))
    assert outputs.shape == (4, 10)
    assert Bridge(8, 24)(features).shape == (4, 24, 12, 12)


def test_equal_features_have_no_loss():
    features = torch.randn(2, 3, 4, 4)
    assert hint_loss(features, features) == 0
