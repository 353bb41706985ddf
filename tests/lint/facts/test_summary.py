"""What functions do to what they are given, across files."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import Summary, summary_of, summary_within
from torchstone.sources.discover import discover
from torchstone.sources.project import Project
from torchstone.sources.scene import Scene


def project(folder: Path, **files: str) -> dict[str, Scene]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    found, _ = discover([str(folder)])
    whole = Project(found)
    scenes = {name: whole._load(str((folder / f"{name}.py").resolve())) for name in files}
    return {name: scene for name, scene in scenes.items() if scene is not None}


def of(scene: Scene, name: str) -> Summary:
    function = next(f for f in scene.all(ast.FunctionDef) if f.name == name)
    return summary_of(scene, function)


def test_effects_travel_through_imports_under_the_names_of_the_caller(tmp_path: Path) -> None:
    scenes = project(
        tmp_path,
        helper="def check(net, data):\n    net.eval()\n    return net(data)\n",
        main="from helper import check\n\ndef run(model, x):\n    return check(model, x)\n",
    )
    does = of(scenes["main"], "run")
    assert does.has(Effect.EVAL, "model")
    assert not does.has(Effect.TRAIN)
    assert not does.hides("model")


def test_methods_of_an_attribute_set_in_init(tmp_path: Path) -> None:
    scenes = project(
        tmp_path,
        steps="class Steps:\n    def go(self, opt):\n        opt.zero_grad()\n        opt.step()\n",
        main="from steps import Steps\n\nclass Run:\n    def __init__(self):\n        self.steps = Steps()\n\n"
        "    def all(self, opt):\n        self.steps.go(opt)\n",
    )
    does = of(scenes["main"], "all")
    assert does.has(Effect.ZERO_GRAD, "opt")
    assert does.has(Effect.STEP, "opt")


def test_methods_of_a_base_class_in_another_file(tmp_path: Path) -> None:
    scenes = project(
        tmp_path,
        base="class Base:\n    def finish(self, loss):\n        loss.backward()\n",
        main="from base import Base\n\nclass Run(Base):\n    def all(self, loss):\n        self.finish(loss)\n",
    )
    assert of(scenes["main"], "all").has(Effect.BACKWARD, "loss")


def test_unknown_calls_make_what_they_get_unknown(tmp_path: Path) -> None:
    scenes = project(
        tmp_path, main="import elsewhere\n\ndef run(model, x):\n    elsewhere.prepare(model)\n"
    )
    assert of(scenes["main"], "run").hides("model")
    assert of(scenes["main"], "run").hides("model.head")
    assert not of(scenes["main"], "run").hides("x")


@pytest.mark.parametrize("call", ["print(model)", "torch.save(model, 'm.pt')", "len(model)"])
def test_calls_that_are_known_hide_nothing(tmp_path: Path, call: str) -> None:
    scenes = project(tmp_path, main=f"import torch\n\ndef run(model):\n    {call}\n")
    assert not of(scenes["main"], "run").hides("model")


def test_a_branch_makes_an_event_unsure(tmp_path: Path) -> None:
    scenes = project(tmp_path, main="def run(model, flag):\n    if flag:\n        model.train()\n")
    event = of(scenes["main"], "run").events[0]
    assert event.effect is Effect.TRAIN
    assert not event.sure


def test_a_function_of_another_scope_is_not_meant(tmp_path: Path) -> None:
    text = "def one():\n    def inner(m):\n        m.eval()\n\ndef two(model):\n    inner(model)\n"
    scenes = project(tmp_path, main=text)
    assert not of(scenes["main"], "two").has(Effect.EVAL)


def test_recursion_ends(tmp_path: Path) -> None:
    text = "def run(model):\n    model.eval()\n    run(model)\n"
    scenes = project(tmp_path, main=text)
    assert of(scenes["main"], "run").has(Effect.EVAL, "model")


def test_a_global_keeps_its_name(tmp_path: Path) -> None:
    text = "model = build()\n\ndef quiet():\n    model.eval()\n\nfor x in data:\n    quiet()\n"
    scene = project(tmp_path, main=text)["main"]
    assert summary_within(scene, scene.all(ast.For)[0]).has(Effect.EVAL, "model")
