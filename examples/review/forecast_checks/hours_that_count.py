"""the mean divides by all hours instead of those that were reported

place: metrics.py:12
severity: HIGH
"""

import torch
from metrics import masked_mean


def test_hours_that_nobody_reported_do_not_count():
    predicted, loads, seen = torch.rand(2, 8), torch.rand(2, 8), torch.zeros(2, 8)
    seen[:, :3] = 1
    error = masked_mean(predicted, loads, seen)
    assert abs(error - ((predicted - loads)[:, :3] ** 2).mean()) < 1e-6
