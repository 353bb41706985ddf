"""What "runs" covers: parts that were reached, output that is kept, limits, devices, loaders."""

from __future__ import annotations

from tests.dryrun.conftest import Run

_LOOP = """
import argparse, torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Linear(4, 2)
net.register_forward_hook(lambda module, given, out: None)
opt = torch.optim.SGD(net.parameters(), 0.1)
for step in range(STEPS):
    opt.zero_grad()
    net(torch.randn(3, 4)).sum().backward()
    opt.step()
    print("step", step)
net.eval()
with torch.no_grad():
    net(torch.randn(3, 4))
torch.save(net.state_dict(), "net.pt")
"""


def test_a_check_mark_means_that_every_part_was_reached(run: Run) -> None:
    whole = run(_LOOP.replace("STEPS", "2"))
    assert str(whole.to("text", "en")).startswith("✓ Runs")
    said = next(item for item in whole.measures if item.name == "covered").how.en  # type: ignore[union-attr]
    assert said == (
        "forward (2), backward (2), optimizer step (2), evaluation (1), checkpoint saved (1), hook (3)"
    )
    assert "step 1" in whole.to("text", "en", detail=2)
    cut = run(_LOOP.replace("STEPS", "20"))
    first = str(cut.to("text", "en")).splitlines()[0]
    assert "Ran as far as 4 optimizer steps; not reached: evaluation, saving a checkpoint" in first
    assert "尚未到达" in cut.to("text", "zh")


def test_the_second_line_of_an_error_is_said(run: Run) -> None:
    report = run("import torch\ntorch.nn.Linear(4, 2).load_state_dict({'scale': torch.ones(2)})\n")
    assert 'Missing key(s) in state_dict: "weight", "bias"' in report.findings[0].message("en")


def test_the_second_gpu_is_there_where_the_source_names_it(run: Run) -> None:
    text = (
        "import torch\nx = torch.nn.Linear(4, 2).to('cuda:1')(torch.randn(3, 4, device='cuda:1'))\n"
    )
    text += "assert torch.cuda.device_count() == 2, torch.cuda.device_count()\n"
    report = run(text)
    assert not report.findings
    assert next(item.value for item in report.measures if item.name == "gpus") == 2
    mixed = run(
        "import torch\ntorch.ones(2, device='cuda:1') + torch.nn.Parameter(torch.ones(2)).to('cuda:0')\n"
    )
    assert [item.rule for item in mixed.findings] == ["DR104"]


def test_batches_by_number_are_all_there(run: Run) -> None:
    """A `for` sees the full and the remainder batch; who counts by `len` gets as many as it says."""
    report = run("""
import torch
from torch.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(torch.randn(100, 4)), 10)
batches = iter(loader)
for _ in range(len(loader)):
    next(batches)
assert next(batches, None) is None
assert len(list(loader)) == len([1 for _ in loader]) == 1
assert 3 % (len(loader) // 10) == 0
""")
    assert not report.findings
    assert not report.gaps


def test_a_full_graph_that_would_break_raises(run: Run) -> None:
    program = """
import torch
net = torch.nn.Linear(4, 2)
@torch.compile(fullgraph=True)
def step(x):
    return net(x).sum() * 2
@torch.compile(fullgraph=True)
def other(x):
    y = net(x).sum()
    return y * y.item()
(step(torch.randn(3, 4)) + other(torch.randn(3, 4))).backward()
"""
    (finding,) = run(program).findings
    assert (finding.rule, finding.line) == ("DR403", 10)
