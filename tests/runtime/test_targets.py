"""Models from what the user calls them; the user's code may do anything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from torchstone.core.errors import InputError, TorchstoneError, UsageError
from torchstone.runtime.targets import Target, build_target

HEAD = "import torch\nfrom torch import nn\n"
NET = """
class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.layer = nn.Linear(width, 2)
    def forward(self, x):
        return self.layer(x)
"""

Write = Callable[..., str]


@pytest.fixture(autouse=True)
def untouched_imports(tmp_path: Path) -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def make(source: str, name: str = "net.py") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return name

    return make


def weights(target: Target) -> int:
    return sum(item.numel() for item in target.model.parameters())


def on_meta(target: Target) -> bool:
    return all(item.is_meta for item in target.model.parameters())


@pytest.mark.parametrize(
    ("more", "name", "inputs", "meta"),
    [
        ("def build(): return Net()", "build", False, True),
        ("def build(width=8): return Net(), torch.zeros(1, 4)", "build", True, True),
        ("def build(): return [Net(), {'x': torch.zeros(1, 4)}]", "build", True, True),
        ("", "Net", False, True),
        ("model = Net()", "model", False, False),
        ("build = lambda: Net()", "build", False, True),
        ("class Holder:\n    model = Net()", "Holder.model", False, False),
        ("class Maker:\n    def __call__(self): return Net()\nmake = Maker()", "make", False, True),
    ],
)
def test_forms(write: Write, more: str, name: str, inputs: bool, meta: bool) -> None:
    target = build_target(f"{write(HEAD + NET + more)}:{name}")
    assert weights(target) == 10
    assert (target.inputs is not None) is inputs
    assert on_meta(target) is meta
    assert target.notes == ()
    assert target.name == f"net.py:{name}"


def test_a_module_of_a_package_found_from_the_current_folder(write: Write) -> None:
    write("", "mine/__init__.py")
    write(HEAD + NET, "mine/parts.py")
    write("from .parts import Net\ndef build(): return Net()", "mine/models.py")
    assert weights(build_target("mine.models:build")) == 10


def test_a_file_inside_a_package_may_import_its_neighbours(write: Write) -> None:
    write("", "mine/__init__.py")
    write(HEAD + NET, "mine/parts.py")
    write("from .parts import Net\ndef build(): return Net()", "mine/models.py")
    assert weights(build_target("mine/models.py:build")) == 10


def test_a_file_may_import_what_lies_beside_it(write: Write) -> None:
    write(HEAD + NET, "deep/neighbour_parts.py")
    file = write("from neighbour_parts import Net\ndef build(): return Net()", "deep/entry.py")
    assert weights(build_target(f"{file}:build")) == 10


def test_a_file_may_bear_the_name_of_a_standard_module(write: Write) -> None:
    import queue

    assert weights(build_target(f"{write(HEAD + NET, 'queue.py')}:Net")) == 10
    assert sys.modules["queue"] is queue


def test_what_cannot_be_built_on_meta_is_built_on_the_cpu_and_said(write: Write) -> None:
    source = HEAD + NET + "def build():\n    torch.ones(2).sum().item()\n    return Net()\n"
    target = build_target(f"{write(source)}:build")
    assert not on_meta(target)
    assert [note.id for note in target.notes] == ["built-on-cpu"]
    assert "cannot be built on the meta device" in target.notes[0].say("en")
    assert "CPU" in target.notes[0].say("zh")


# scripts


def test_the_one_model_of_a_script(write: Write) -> None:
    script = HEAD + NET + "model = Net()\nalias = model\ncriterion = nn.CrossEntropyLoss()\n"
    assert weights(build_target(write(script))) == 10


def test_parts_of_a_model_are_no_models_of_their_own(write: Write) -> None:
    script = HEAD + NET + "encoder = Net()\nmodel = nn.Sequential(encoder, nn.ReLU())\n"
    assert isinstance(build_target(write(script)).model, nn.Sequential)


def test_the_one_class_of_a_script(write: Write) -> None:
    script = HEAD + NET + "class Wide(Net):\n    def __init__(self, size): super().__init__(size)\n"
    assert on_meta(build_target(write(script)))


def test_what_stands_under_main_is_not_run(write: Write) -> None:
    script = HEAD + NET + "if __name__ == '__main__':\n    raise SystemExit('trained')\n"
    assert weights(build_target(write(script))) == 10


def test_several_models_are_listed(write: Write) -> None:
    with pytest.raises(UsageError, match=r"got 2 models.*net\.py:first, net\.py:second"):
        build_target(write(HEAD + NET + "first = Net()\nsecond = Net()\n"))


@pytest.mark.parametrize(
    "source", ["x = 1\n", HEAD + "class Net(nn.Module):\n    def __init__(self, a): ...\n"]
)
def test_a_script_without_a_model(write: Write, source: str) -> None:
    with pytest.raises(InputError, match=r"net\.py:build"):
        build_target(write(source))


# mistakes, and code that means harm


@pytest.mark.parametrize(
    "name",
    ["", " ", ":", "model", ":build", "x.py:", "net.py:a b", "a:b:", "net.py:a..b", "/", "..:x"],
)
def test_wrong_form(name: str) -> None:
    with pytest.raises(TorchstoneError) as caught:
        build_target(name)
    assert caught.value.say("zh")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nowhere.py:build", "no such file"),
        ("no_such_package.models:build", "no module named 'no_such_package'"),
        ("torch.no_such_module:build", "no module named 'torch.no_such_module'"),
        ("net:missing", "no module named 'net'|a known name"),
        ("my-net:build", "a Python module or a .py file"),
        (".:build", "a Python module or a .py file"),
    ],
)
def test_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TorchstoneError, match=says):
        build_target(name)


def test_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    import os

    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    for name in ("folder.py", "pipe.py"):
        with pytest.raises(InputError, match="Python file"):
            build_target(f"{tmp_path / name}:build")


def test_a_path_without_its_ending_is_completed_in_the_answer(write: Write) -> None:
    write(HEAD + NET, "models/net.py")
    with pytest.raises(UsageError, match=r"models/net\.py:"):
        build_target("models/net:Net")


BAD = {
    "raises on import": ("1 / 0\n", "Net", r"net\.py:1\): got ZeroDivisionError"),
    "exits on import": ("import sys\nsys.exit(3)\n", "Net", r"net\.py:2\): got sys\.exit\(3\)"),
    "syntax": ("def build(:\n", "build", r"net\.py:1\): got SyntaxError"),
    "null bytes": ("x = '\0'\n", "x", "got SyntaxError|got ValueError"),
    "missing import": ("import no_such_thing\n", "x", r"net\.py:1\): got ModuleNotFoundError"),
    "raises when built": (
        "def inner(): raise RuntimeError('first\\nsecond')\ndef build():\n    return inner()\n",
        "build",
        r"net\.py:1\): got RuntimeError: first, ",
    ),
    "raises inside torch": (
        HEAD + "def build():\n    return nn.Linear(4, -1)\n", "build", r"net\.py:4\): got RuntimeError"
    ),
    "exits when built": ("def build(): raise SystemExit\n", "build", r"sys\.exit\(None\)"),
    "own base exception": (
        "class Stop(BaseException): pass\ndef build(): raise Stop('x')\n", "build", "got Stop: x"
    ),
    "cannot say what it is": (
        "class Bad(Exception):\n    def __str__(self): raise ValueError\ndef build(): raise Bad\n",
        "build",
        "got Bad, ",
    ),
    "endless": ("def build(): return build()\n", "build", "got RecursionError"),
    "long message": ("def build(): raise ValueError('x' * 10**6)\n", "build", "x…, expected"),
    "no model": ("thing = 3\n", "thing", "got a int, expected a torch.nn.Module"),
    "returns no model": ("def build(): return {}\n", "build", "returned a dict"),
    "returns a class": (HEAD + NET + "def build(): return Net\n", "build", "returned a type"),
    "returns three": (HEAD + NET + "def build(): return Net(), 1, 2\n", "build", "returned a tuple"),
    "needs arguments": ("def build(depth, *, width): ...\n", "build", "needs depth, width"),
    "a class that needs arguments": (
        HEAD + "class Net(nn.Module):\n    def __init__(self, depth): ...\n", "Net", "needs depth"
    ),
    "a class of something else": ("class Thing: pass\n", "Thing", "returned a Thing"),
    "a near name": (HEAD + NET, "Nett", "did you mean 'Net'"),
    "every attribute there is": (
        "def __getattr__(name): return __getattr__\n", "anything.at.all", "expected|needs name|known name"
    ),
    "an attribute that raises": (
        """
class Meta(type):
    @property
    def model(cls): raise KeyError('gone')
class A(metaclass=Meta): pass
""",
        "A.model",
        "got KeyError",
    ),
    "lies about its class": (
        HEAD + "class Liar:\n    @property\n    def __class__(self): return nn.Module\n"
        "model = Liar()\n",
        "model",
        "got a Liar",
    ),
    "a signature that raises": (
        """
class A:
    @property
    def __signature__(self): raise OSError('no')
    def __call__(self): return 1
a = A()
""",
        "a",
        "got OSError|returned a int",
    ),
    "a generator": ("def build(): yield 1\n", "build", "returned a generator"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_code(write: Write, case: str) -> None:
    source, name, says = BAD[case]
    with pytest.raises(InputError, match=says) as caught:
        build_target(f"{write(source)}:{name}")
    assert "Traceback" not in str(caught.value)
    assert len(str(caught.value)) < 800
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_interrupts_pass() -> None:
    def build() -> nn.Module:
        raise KeyboardInterrupt

    sys.modules[__name__].interrupted = build  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        build_target(f"{__name__}:interrupted")


def test_what_the_code_prints_stays_off_the_standard_output(
    write: Write, capsys: pytest.CaptureFixture[str]
) -> None:
    build_target(
        f"{write('print(1)' + chr(10) + HEAD + NET + 'def build(): print(2); return Net()')}:build"
    )
    assert capsys.readouterr() == ("", "1\n2\n")


def test_the_code_does_not_see_our_arguments(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["torchstone", "cost", "--flag"])
    source = HEAD + NET + "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    assert weights(build_target(f"{write(source)}:Net")) == 10
    assert sys.argv == ["torchstone", "cost", "--flag"]


def test_a_failed_import_leaves_no_module_behind(write: Write) -> None:
    file = write("1 / 0\n", "halfway.py")
    with pytest.raises(InputError):
        build_target(f"{file}:x")
    assert "halfway" not in sys.modules
    write(HEAD + NET, "halfway.py")
    assert weights(build_target("halfway.py:Net")) == 10


def test_the_default_device_is_as_before(write: Write) -> None:
    build_target(f"{write(HEAD + NET)}:Net")
    assert torch.empty(1).device.type == "cpu"


def test_the_two_names_for_transformers_and_timm_are_taken_first() -> None:
    with pytest.raises(TorchstoneError, match="no name"):
        build_target("hf:")
