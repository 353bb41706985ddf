"""Which loops run a training step, and what in them runs only now and then."""

from __future__ import annotations

import ast

import pytest

from tests.sources.test_scene import scene_of
from torchstone.sources.training import backward_calls, step_calls, step_loops

LOOP = """
for epoch in epochs:
    for batch in data:
        loss = model(batch)
        loss.backward()
        if i % 10 == 0:
            a()
        if should_log:
            b()
        if ready:
            c()
        if done:
            d()
            break
        try:
            e()
        except E:
            f()
        g() if i % 2 else h()
        if verbose and k():
            pass
        else:
            l()
        optimizer.step()
    m()
"""


@pytest.mark.parametrize(("name", "in_loop", "each_step"), [
    ("a", True, False), ("b", True, False), ("c", True, True), ("d", True, False), ("e", True, True),
    ("f", True, False), ("g", True, False), ("h", True, False), ("k", True, True), ("l", True, False),
    ("m", False, False), ("model", True, True),
])  # fmt: skip
def test_what_runs_on_every_step(name: str, in_loop: bool, each_step: bool) -> None:
    scene = scene_of(LOOP)
    [call] = scene.calls[name]
    assert (scene.step_loop(call) is not None) is in_loop
    assert scene.in_step_loop(call) is each_step


@pytest.mark.parametrize(("text", "backward", "steps"), [
    ("loss.backward()", 1, 0), ("scaler.scale(loss).backward()", 1, 0), ("backward()", 0, 0),
    ("accelerator.backward(loss)", 1, 0), ("ctx.backward()", 0, 0), ("self.backward()", 0, 0),
    ("def backward(x):\n    x.backward()", 0, 0), ("def f(x):\n    x.backward()", 1, 0),
    ("optimizer.step()", 0, 1), ("scaler.step(optimizer)", 0, 1), ("env.step(action)", 0, 0),
    ("step()", 0, 0), ("scaler.step(a, optimizer)", 0, 0),
])  # fmt: skip
def test_calls_that_train(text: str, backward: int, steps: int) -> None:
    scene = scene_of(text)
    assert (len(backward_calls(scene)), len(step_calls(scene))) == (backward, steps)


@pytest.mark.parametrize(("text", "count"), [
    ("while True:\n    loss.backward()", 1), ("for x in y:\n    pass\nelse:\n    loss.backward()", 0),
    ("def f():\n    loss.backward()\n    optimizer.step()", 1), ("def f():\n    loss.backward()", 0),
    ("for x in y:\n    def f():\n        loss.backward()", 0), ("loss.backward()", 0),
    ("for a in b:\n    for x in y:\n        loss.backward()\n    optimizer.step()", 2),
])  # fmt: skip
def test_loops_that_train(text: str, count: int) -> None:
    scene = scene_of(text)
    assert len(step_loops(scene)) == count
    assert step_loops(scene) is step_loops(scene)


def test_calls_of_a_block_and_of_a_function() -> None:
    scene = scene_of(
        "a.backward()\ndef f():\n    b.backward()\n    def g():\n        c.backward()\nd.backward()\n"
    )
    calls = backward_calls(scene)
    [f, g] = sorted(scene.all(ast.FunctionDef), key=lambda node: node.lineno)
    assert [scene.text(c)[0] for c in calls] == ["a", "b", "c", "d"]
    assert [scene.text(c)[0] for c in calls.inside(scene, f)] == ["b", "c"]
    assert [scene.text(c)[0] for c in calls.inside(scene, scene.root)] == ["a", "b", "c", "d"]
    assert [scene.text(c)[0] for c in calls.of(scene, f)] == ["b"]
    assert [scene.text(c)[0] for c in calls.of(scene, g)] == ["c"]
    assert [scene.text(c)[0] for c in calls.of(scene, None)] == ["a", "d"]
    assert calls[0] in calls
    assert scene.root not in calls
