"""What is supplied for an obstacle, and when nothing is."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path

import numpy as np
import pytest

from torchstone.starting.files.forms import forms_of
from torchstone.starting.files.makers import make_bytes
from torchstone.starting.loop import MOST_RUNS, Attempt, run_with_repairs
from torchstone.starting.obstacles import (
    EmptyData,
    MissingFile,
    MissingPackage,
    NoNetwork,
    Obstacle,
    OtherVersion,
)
from torchstone.starting.repair import Repair
from torchstone.starting.supplies import MadeFile, OldName, SearchPath, StandIn, Supply


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "README.md").write_text("x")
    (tmp_path / "lib/tools").mkdir(parents=True)
    (tmp_path / "lib/tools/__init__.py").write_text("")
    (tmp_path / "train.py").write_text(
        "import plotting_pack\nfrom tools import x\ntry:\n    import optional_pack\n"
        "except ImportError:\n    import fallback_pack\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_modules_of_the_project_are_found(project: Path) -> None:
    found = Repair(project).supply_for(MissingPackage("tools"), (), ())
    assert found == (SearchPath(str(project / "lib"), "tools"),)


def test_all_missing_packages_are_stood_in_for_at_once(project: Path) -> None:
    found = Repair(project).supply_for(MissingPackage("plotting_pack"), (), ())
    assert found == (StandIn("plotting_pack"), StandIn("fallback_pack"))


@pytest.mark.parametrize(
    "obstacle",
    [MissingPackage("torch"), NoNetwork("x"), OtherVersion("numpy", "no_such"), MissingFile("model.pkl")],
)  # fmt: skip
def test_nothing_is_guessed(obstacle: Obstacle, project: Path) -> None:
    assert Repair(project).supply_for(obstacle, (), ()) == ()


def test_a_name_that_was_renamed_has_a_successor(project: Path) -> None:
    found = Repair(project).supply_for(OtherVersion("numpy", "float"), (), ())
    assert found == (OldName("numpy", "float", "builtins:float"),)


def test_what_did_not_help_is_not_supplied_again(project: Path) -> None:
    repair, obstacle = Repair(project), MissingFile("a.png")
    first = repair.supply_for(obstacle, (), ())
    assert first == (MadeFile(str(project / "a.png"), "image"),)
    assert repair.supply_for(obstacle, (), first) == ()


def test_the_reading_code_says_what_a_file_holds() -> None:
    read = (
        "import numpy as np, pandas as pd\n"
        "frame = pd.read_csv(path, sep='\\t', header=None, names=['user', 'item'])\n"
        "tokens = np.memmap(path, dtype=np.int32, mode='r')\nrow['question'], row['label']\n"
    )
    (table,) = forms_of("/d/u.rating", False, [read])
    assert make_bytes(table.form).splitlines()[0].count(b"\t") == 1
    (tokens,) = forms_of("/d/train.bin", False, [read])
    assert np.frombuffer(make_bytes(tokens.form), np.int32).max() < 10
    (rows,) = forms_of("/d/train.json", False, [read])
    assert set(json.loads(make_bytes(rows.form))[0]) == {"question", "label"}


def test_folders_hold_what_is_looked_for() -> None:
    plain = forms_of("/d/imgs", True, ["glob(root + '/*.jpg')"])
    assert {Path(item.path).suffix for item in plain} == {".jpg"}
    by_class = forms_of("/d/train", True, ["ImageFolder(root)"])
    assert len({Path(item.path).parent.name for item in by_class}) == 2


def test_made_files_are_what_their_names_say() -> None:
    assert np.load(io.BytesIO(make_bytes("array:<i8,5,3"))).shape == (5, 3)
    with wave.open(io.BytesIO(make_bytes("sound"))) as sound:
        assert sound.getframerate() == 16000
    assert make_bytes("image").startswith(b"\x89PNG")
    assert make_bytes("image") == make_bytes("image")
    dated = make_bytes("table:|date|value").decode().splitlines()
    assert dated[0] == "date,value"
    assert dated[1].startswith("2016-01-01 00:00:00,")


def test_the_loop_ends(project: Path) -> None:
    given: list[tuple[Supply, ...]] = []

    def run(supplies: tuple[Supply, ...]) -> Attempt[int]:
        given.append(supplies)
        return Attempt(len(supplies), EmptyData((f"{len(given)}/imgs",)), (), 1.0)

    done = run_with_repairs(run, project)
    assert done.runs == MOST_RUNS == len(given)
    assert done.supplies == given[-1]
    assert run_with_repairs(lambda _: Attempt(1, None), project).runs == 1
    late = run_with_repairs(lambda _: Attempt(1, EmptyData(("imgs",)), (), 1e9), project)
    assert late.runs == 1
