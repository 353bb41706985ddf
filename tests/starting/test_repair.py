"""What is supplied for an obstacle, and when nothing is."""

from __future__ import annotations

import io
import json
import linecache
import pickle
import wave
from pathlib import Path

import numpy as np
import pytest

from torchstone.core.place import Place
from torchstone.starting.files.forms import forms_of
from torchstone.starting.files.makers import make_bytes
from torchstone.starting.files.reading import Reading, read_code
from torchstone.starting.files.refining import refine_files
from torchstone.starting.loop import MOST_RUNS, Attempt, run_with_repairs
from torchstone.starting.misfits import find_misfit
from torchstone.starting.obstacles import (
    EmptyData,
    MissingFile,
    MissingPackage,
    NoNetwork,
    Obstacle,
    OtherVersion,
)
from torchstone.starting.repair import Repair
from torchstone.starting.supplies import (
    MadeFile,
    NameStandIn,
    OldName,
    SearchPath,
    StandIn,
    Supply,
    WorkFolder,
)


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
    found = Repair(project, project / "train.py").supply_for(MissingPackage("tools"), (), ())
    assert found == (SearchPath(str(project / "lib"), "tools"),)


def test_all_missing_packages_are_stood_in_for_at_once(project: Path) -> None:
    found = Repair(project, project / "train.py").supply_for(
        MissingPackage("plotting_pack"), (), ()
    )
    assert found == (StandIn("plotting_pack"), StandIn("fallback_pack"))


def test_a_package_that_a_library_needs_is_seen_by_it(project: Path) -> None:
    repair = Repair(project, project / "train.py")
    given = (StandIn("parser_pack"), StandIn("tensorboard"))
    found = repair.supply_for(MissingPackage("parser_pack"), (), given)
    assert found == (StandIn("parser_pack", for_libraries=True),)
    found = repair.supply_for(MissingPackage("tensorboard"), (), given)
    assert found == (NameStandIn("torch.utils", "tensorboard"),)


def test_a_relative_path_may_be_right_from_another_folder(project: Path) -> None:
    (project / "lib/run.py").write_text("")
    (project / "data").mkdir()
    repair, obstacle = Repair(project, project / "lib/run.py"), MissingFile("../data/a.png")
    moved = repair.supply_for(obstacle, (), ())
    assert moved == (WorkFolder(str(project / "lib"), "../data/a.png"),)
    assert repair.supply_for(obstacle, (), moved) == (
        MadeFile(str(project / "data/a.png"), "image"),
    )


@pytest.mark.parametrize(
    "obstacle",
    [MissingPackage("torch"), NoNetwork("x"), OtherVersion("numpy", "no_such"), MissingFile("tools.py")],
)  # fmt: skip
def test_nothing_is_guessed(obstacle: Obstacle, project: Path) -> None:
    assert Repair(project, project / "train.py").supply_for(obstacle, (), ()) == ()


def test_a_name_that_was_renamed_has_a_successor(project: Path) -> None:
    found = Repair(project, project / "train.py").supply_for(OtherVersion("numpy", "float"), (), ())
    assert found == (OldName("numpy", "float", "builtins:float"),)


def test_what_did_not_help_is_not_supplied_again(project: Path) -> None:
    repair, obstacle = Repair(project, project / "train.py"), MissingFile("a.png")
    first = repair.supply_for(obstacle, (), ())
    assert first == (MadeFile(str(project / "a.png"), "image"),)
    assert repair.supply_for(obstacle, (), first) == ()


def reading(text: str, line: int = 0) -> Reading:
    """The code around a line: the first that is indented most where none is named."""
    lines = text.splitlines()
    deepest = max(range(len(lines)), key=lambda at: len(lines[at]) - len(lines[at].lstrip()))
    return read_code([(Place("train.py", line or deepest + 1), text)])


CODE = {
    "u.rating": "def load(path):\n    return pd.read_csv(path, sep='\\t', header=None, names=['user', 'item'])\n",
    "train.bin": "def load(path):\n    return np.memmap(path, dtype=np.int32, mode='r')\n",
    "rows.json": "def load(path):\n    rows = json.load(open(path))\n    for row in rows:\n        use(row['question'], int(row['label']))\n",
    "scene.json": (
        "def load(path):\n    metas = {}\n    metas[path] = json.load(open(path))\n    meta = metas[path]\n    for frame in meta['frames'][::2]:\n"
        "        images.append(imread(os.path.join(base, frame['file_path'] + '.png')))\n"
        "        poses.append(np.array(frame['matrix']))\n    return float(meta['angle'])\n"
    ),
    "list.txt": (
        "class Data(Dataset):\n    def __init__(self, path):\n        for line in open(path):\n            name, x, label = line.split()\n"
        "    def __getitem__(self, at):\n        return Image.open(self.names[at])\n"
    ),
    "words.txt": "def load(path):\n    return open(path).read()\n",
    "split.pkl": "def load(path):\n    data = pickle.load(open(path, 'rb'))\n    return data['train'][0], len(data['train'])\n",
    "last.pth": "def load(path):\n    model.load_state_dict(torch.load(path))\n",
    "set.npz": "def load(path):\n    data = np.load(path)\n    return data['imgs'], data['labels']\n",
}


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """What is made for each file of the code above."""
    found = {}
    for name, text in CODE.items():
        (file,) = forms_of(f"/d/{name}", False, reading(text, 3 if name == "list.txt" else 2))
        found[name] = make_bytes(file.form, file.content)
    return found


def test_the_reading_code_says_what_a_file_holds(made: dict[str, bytes]) -> None:
    assert made["u.rating"].splitlines()[0].count(b"\t") == 1
    assert np.frombuffer(made["train.bin"], np.int32).max() < 10
    row = json.loads(made["rows.json"])[0]
    assert isinstance(row["question"], str)
    assert isinstance(row["label"], int)
    scene = json.loads(made["scene.json"])
    assert isinstance(scene["angle"], float)
    assert np.shape(scene["frames"][0]["matrix"]) == (4, 4)
    assert len({frame["file_path"] for frame in scene["frames"]}) == 8
    assert made["list.txt"].splitlines()[9] == b"images/0001.png 1 1"
    assert made["words.txt"].count(b"\n") > 100
    assert len(pickle.loads(made["split.pkl"])["train"]) > 0
    assert made["last.pth"] == b"made\n"
    arrays = np.load(io.BytesIO(made["set.npz"]))
    assert len(arrays["imgs"]) == len(arrays["labels"])
    assert arrays["imgs"].ndim == 4


def test_folders_and_patterns_hold_what_is_looked_for() -> None:
    plain = forms_of("/d/imgs", True, reading("def f(root):\n    glob(root + '/*.jpg')\n"))
    assert {Path(item.path).suffix for item in plain} == {".jpg"}
    by_class = forms_of("/d/train", True, reading("def f(root):\n    ImageFolder(root)\n"))
    assert len({Path(item.path).parent.name for item in by_class}) == 2
    parts = "import numpy as np\ndef load(path):\n    return np.load(path)\nclass Loader:\n    def __init__(self, split):\n        assert split in ('train', 'val')\n        self.shards = [name for name in os.listdir(root) if split in name]\n"
    shards = {Path(item.path).name for item in forms_of("/d/shards", True, reading(parts))}
    assert {"train_0000.npy", "val_0007.npy"} <= shards
    nothing = Reading()
    masks = forms_of("/d/masks/0003_mask.*", False, nothing)  # the partner of a made file
    assert [item.path for item in masks][:2] == ["/d/masks/0000_mask.png", "/d/masks/0001_mask.png"]
    assert masks[0].form == "image:mask"
    nested = forms_of("/d/*/*.jpg", False, nothing)
    assert nested[0].path == "/d/class0/0000.jpg"
    assert len(forms_of("/d/imgs/0003.png", False, nothing)) == 256  # all at once


TABLE, FIELDS = "table:|date|a|b", "fields:space|path.png|int"


@pytest.mark.parametrize(
    ("form", "code", "refined"),
    [
        (TABLE, "raise RuntimeError('expected input[8, 2, 9] to have 7 channels, but got 2 channels instead')",
         "table:|date|v0|v1|v2|v3|v4|a|b"),
        (TABLE, "raise RuntimeError('mat1 and mat2 shapes cannot be multiplied (8x2 and 3x4)')", "table:|date|v0|a|b"),
        (TABLE, "raise RuntimeError('mat1 and mat2 shapes cannot be multiplied (8x5 and 3x4)')", ""),
        (TABLE, "raise KeyError('OT')  # pandas", "table:|date|a|b|OT"),
        (TABLE, "columns, target = ['a'], 'OT'; columns.remove(target)", "table:|date|a|b|OT"),
        (FIELDS, "a, b, c = '1 2'.split()", "fields:space|path.png|int|int"),
        (FIELDS, "'1 2'.split()[2]", "fields:space|path.png" + "|int" * 11),
        (FIELDS, "int('images/0000.png')", "fields:space|int|int"),
        ("text", "int('the')", "fields:space|int|int"),
        ("image", "int('the')", ""),
        ("image", "raise ValueError('could not broadcast input array from shape (8,8,3) into shape (8,8,4)')", "image:RGBA"),
        (FIELDS, "{}['x']", ""),
    ],
)  # fmt: skip
def test_made_files_are_refined_by_what_the_program_says(
    form: str, code: str, refined: str
) -> None:
    file = "/x/pandas/core.py" if "pandas" in code else "program.py"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    try:
        exec(compile(code, file, "exec"), {})
    except Exception as error:
        misfit = find_misfit(error)
    files = (MadeFile("/d/x", form), MadeFile("/d/y", form))
    found = refine_files(files, misfit) if misfit else ()
    assert {item.form for item in found} == ({refined} if refined else set())


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

    done = run_with_repairs(run, project, project / "train.py")
    assert done.runs == MOST_RUNS == len(given)
    assert done.supplies == given[-1]
    assert run_with_repairs(lambda _: Attempt(1, None), project, project / "train.py").runs == 1
    late = run_with_repairs(
        lambda _: Attempt(1, EmptyData(("imgs",)), (), 1e9), project, project / "train.py"
    )
    assert late.runs == 1
