"""The forecaster and the distillation of the examples: what their runs show, the check for what they do not, and nothing of
their clean twins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from torchstone.conductor.experiments.checks.reading import read_checks
from torchstone.conductor.experiments.checks.running import run_seeds
from torchstone.conductor.experiments.recording.session import Start
from torchstone.conductor.experiments.running import run_experiments

HOME = Path(__file__).parents[3] / "examples" / "review"
ARGUMENTS = ("--epochs", "2", "--meters", "6", "--hours", "360")

KEPT = """
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(8):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
    if step == 2:
        best = model.state_dict()
torch.save({"model": best}, "best.pt")
"""


def lines_of(folder: Path, name: str) -> dict[str, tuple[str, int]]:
    copy = Path(shutil.copytree(HOME / name, folder / name))
    report = run_experiments(Start(copy, "train.py", ARGUMENTS if "forecast" in name else ()))
    assert not [gap for gap in report.gaps if gap.reason.id == "experiments.own"]
    return {item.rule: (item.path, item.location.line) for item in report.findings}


def test_what_its_runs_show(tmp_path: Path) -> None:
    planted = {
        rule: (fault["file"], fault["line"])
        for fault in json.loads((HOME / "forecast.faults.json").read_text("utf-8"))
        for rule in fault["rules"]
        if rule.startswith("EX")
    }
    found = lines_of(tmp_path, "forecast")
    # the table is made where the column meets the row
    assert found.pop("EX106") == ("metrics.py", 17)
    assert planted.pop("EX106") == ("model.py", 33)
    assert found.keys() == planted.keys()
    for rule, (path, line) in planted.items():
        assert found[rule][0] in (path, "data.py"), (
            rule
        )  # data sets are judged where they give samples
        assert found[rule][0] != path or abs(found[rule][1] - line) <= 3, rule


def test_its_clean_twin_and_the_check(tmp_path: Path) -> None:
    assert not lines_of(tmp_path, "forecast_clean")
    (check,) = read_checks(str(HOME / "forecast_checks"), HOME / "forecast")
    states = [
        run_seeds(check, HOME / name, (0,))[0].state for name in ("forecast", "forecast_clean")
    ]
    assert states == ["broken", "holds"]


def test_distillation_hides_one_fault_behind_another(tmp_path: Path) -> None:
    """The evaluation differs from run to run while reading a sample changes it."""
    assert not lines_of(tmp_path, "distill_clean")
    assert lines_of(tmp_path, "distill").keys() == {"EX121", "EX126", "EX128"}
    data = tmp_path / "distill" / "data.py"
    data.write_text(data.read_text().replace(".sub_(", ".sub("))
    report = run_experiments(Start(tmp_path / "distill", "train.py"))
    assert {item.rule for item in report.findings} == {"EX107", "EX126", "EX128"}


def test_a_state_that_is_saved_after_the_weights_moved_on(tmp_path: Path) -> None:
    copied = KEPT.replace(
        "model.state_dict()", "{k: v.clone() for k, v in model.state_dict().items()}"
    )
    found = []
    for number, text in enumerate((KEPT, copied)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "train.py").write_text(text)
        report = run_experiments(Start(tmp_path / str(number), "train.py"))
        found.append([(item.rule, item.location.line) for item in report.findings])
    assert found == [[("EX126", 11)], []]
