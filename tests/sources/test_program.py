"""Who calls what across the files of a project, and what runs in a training step."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.sources.discover import File
from torchstone.sources.program.outline import Key
from torchstone.sources.program.program import Program, read_program


def program_of(**texts: str) -> Program:
    """A program of in-memory files; `__` in a name stands for a slash."""
    files = {}
    for name, text in texts.items():
        path = name.replace("__", "/") + ".py"
        files[path] = File(Path("/nowhere") / path, path, text.encode())
    return read_program(files)


def calls(program: Program) -> set[tuple[str, str]]:
    """Calls as pairs of `path:scope`."""
    return {
        (f"{edge.caller.path}:{edge.caller.scope}", f"{edge.called.path}:{edge.called.scope}")
        for edge in program.edges
        if edge.called.scope
    }


def in_steps(program: Program) -> set[str]:
    return {f"{key.path}:{key.scope}" for key in program.steps.functions}


LOOP = """\
import torch
from model import Net
from ema import Average

def train(loader):
    model = Net()
    average = Average(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler()
    for step, x in enumerate(loader):
        loss = model(x).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        average.update(model)
        if step % 100 == 0:
            evaluate(model)

def evaluate(model):
    return model.score()

if __name__ == "__main__":
    train([])
"""
MODEL = """\
from torch import nn
from blocks import Block

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def norm(self, x):
        return x

    def score(self):
        return 0
"""
BLOCKS = """\
from torch import nn

class Block(nn.Module):
    def forward(self, x):
        return x
"""
AVERAGE = """\
class Average:
    def __init__(self, model):
        self.model = model

    def update(self, model):
        return helper(model)

def helper(model):
    return model
"""
ADMIN = """\
def update(table):
    return table

class Tool:
    def update(self, row):
        return update(row)
"""


@pytest.fixture(scope="module")
def training() -> Program:
    return program_of(train=LOOP, model=MODEL, blocks=BLOCKS, ema=AVERAGE, admin_tool=ADMIN)


def test_a_method_of_a_library_object_is_not_a_function_of_the_same_name(training: Program) -> None:
    assert "admin_tool.py:update" not in in_steps(training)
    assert "admin_tool.py:Tool.update" not in in_steps(training)
    assert not training.runs_in_every_step("admin_tool.py", 2)
    assert Key("admin_tool.py", "update") not in training.reached_from(["train.py"])


def test_forward_runs_in_every_step(training: Program) -> None:
    assert {"model.py:Net.forward", "model.py:Net.norm", "blocks.py:Block.forward"} <= in_steps(training)  # fmt: skip
    assert training.runs_in_every_step("blocks.py", 5)


def test_methods_are_found_through_the_object(training: Program) -> None:
    assert {"ema.py:Average.update", "ema.py:helper"} <= in_steps(training)


def test_what_is_made_before_the_loop_is_not_in_it(training: Program) -> None:
    assert not training.runs_in_every_step("train.py", 6)
    assert training.runs_in_every_step("train.py", 11)
    assert "model.py:Net.__init__" not in in_steps(training)


def test_what_runs_now_and_then_is_not_in_every_step(training: Program) -> None:
    assert "train.py:evaluate" not in in_steps(training)
    assert not training.runs_in_every_step("train.py", 17)
    assert Key("model.py", "Net.score") in training.reached_from(["train.py"])


GAN = """\
from torch import nn

class Gan:
    def __init__(self, generator: "nn.Module", critic):
        self.generator, self.critic = generator, critic

    def step_critic(self, x):
        loss = self.critic(x).mean()
        loss.backward()
        self.critic_optimizer.step()

    def step_generator(self, x):
        loss = self.critic(self.generator(x)).mean()
        loss.backward()
        self.generator_optimizer.step()

class Generator(nn.Module):
    def forward(self, x):
        return x

class Critic(nn.Module):
    def forward(self, x):
        return -x

def epoch(gan, loader):
    for x in loader:
        gan.step_critic(x)
        gan.step_generator(x)
        log(x)

def log(x):
    return x

def report(gan):
    return 1

def main():
    gan = Gan(Generator(), Critic())
    for _ in range(3):
        epoch(gan, [])
        report(gan)
"""


def test_every_step_of_a_gan_is_a_step() -> None:
    program = program_of(gan=GAN)
    assert in_steps(program) == {
        "gan.py:Gan.step_critic",
        "gan.py:Gan.step_generator",
        "gan.py:Generator.forward",
        "gan.py:Critic.forward",
        "gan.py:log",
    }
    assert program.runs_in_every_step("gan.py", 28)
    assert not program.runs_in_every_step("gan.py", 39), "once an epoch"


def test_the_outer_loop_is_the_step_where_gradients_are_accumulated() -> None:
    text = (
        "def train(model, optimizer, loader):\n"
        "    for batch in loader:\n"
        "        for part in batch:\n"
        "            model(part).backward()\n"
        "        optimizer.step()\n"
        "        note(batch)\n"
        "def note(x):\n    return x\n"
    )
    program = program_of(train=text)
    assert "train.py:note" in in_steps(program)
    assert [(item.first, item.last) for item in program.steps.loops] == [(2, 6)]


def test_a_framework_calls_the_methods_of_what_it_is_given() -> None:
    text = (
        "import lightning as L\nfrom torch import nn\n"
        "class Task(L.LightningModule):\n"
        "    def __init__(self):\n        self.net = Net()\n"
        "    def training_step(self, batch, i):\n        return self.net(batch)\n"
        "    def on_train_end(self):\n        return finish()\n"
        "class Net(nn.Module):\n    def forward(self, x):\n        return x\n"
        "def finish():\n    pass\n"
        "L.Trainer().fit(Task())\n"
    )
    program = program_of(task=text)
    assert {"task.py:Task.training_step", "task.py:Net.forward"} <= in_steps(program)
    assert Key("task.py", "finish") in program.reached_from(["task.py"])
    assert "task.py:finish" not in in_steps(program)


ANNOTATED = """\
class A:
    def f(self): pass
class B:
    def f(self): pass
class C:
    def f(self): pass
def use(a: B):
    a.f()
"""
LOADED = """\
from torch.utils.data import DataLoader
class A:
    def __getitem__(self, i): pass
for _ in DataLoader(A()):
    pass
"""
APPENDED = """\
import torch
class A(torch.nn.Module):
    def forward(self, x): pass
class B(torch.nn.Module):
    def forward(self, x): pass
class Net(torch.nn.Module):
    def __init__(self):
        blocks = []
        for _ in range(2):
            blocks.append(A())
        self.blocks = torch.nn.Sequential(*blocks)
        self.heads = torch.nn.ModuleList()
        self.heads.append(B())
    def forward(self, x):
        for head in self.heads:
            head(x)
        return self.blocks(x)
Net()(1)
"""
WRAPPED = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
class A(torch.nn.Module):
    def forward(self, x): pass
    def g(self): pass
m = DDP(A())
m(1)
m.module.g()
"""


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("def f(): pass\nmap(f, [])\n", "f"),
        ("def f(): pass\nimport threading\nthreading.Thread(target=f).start()\n", "f"),
        ("def f(): pass\ntable = {'a': f}\ntable['a']()\n", "f"),
        ("def f(): pass\ntable = {}\ntable['a'] = f\ntable['a']()\n", "f"),
        ("import functools\ndef f(x): pass\ng = functools.partial(f, 1)\ng()\n", "f"),
        ("class A:\n    def f(self): pass\nA().f()\n", "A.f"),
        ("class B:\n    def f(self): pass\nclass A(B):\n    pass\nA().f()\n", "B.f"),
        ("class A:\n    @property\n    def f(self): pass\nA().f\n", "A.f"),
        ("class A:\n    def f(self): pass\ndef make():\n    return A()\nmake().f()\n", "A.f"),
        ("class A:\n    def f(self): pass\ndef use(a):\n    a.f()\nuse(A())\n", "A.f"),
        (ANNOTATED, "B.f"),
        ("class A:\n    def __enter__(self): pass\nwith A():\n    pass\n", "A.__enter__"),
        ("class A:\n    def __getitem__(self, i): pass\nfor _ in A():\n    pass\n", "A.__getitem__"),
        (LOADED, "A.__getitem__"),
        ("class B:\n    def f(self): pass\nclass A(B):\n    def f(self):\n        super().f()\nA().f()\n", "B.f"),
        (WRAPPED, "A.g"),
        (APPENDED, "A.forward"),
        (APPENDED, "B.forward"),
        ("def deco(g):\n    def inner():\n        g()\n    return inner\n@deco\ndef f(): pass\n", "f"),
    ],
)  # fmt: skip
def test_calls_are_resolved(text: str, called: str) -> None:
    assert f"a.py:{called}" in {to for _, to in calls(program_of(a=text))}


def test_names_are_followed_through_packages() -> None:
    program = program_of(
        pkg____init__="from .inner import work as labour\n",
        pkg__inner="def work(): pass\ndef idle(): pass\n",
        main="import pkg\nfrom pkg import inner\npkg.labour()\ninner.work()\n",
        other="from pkg.inner import *\nidle()\n",
    )
    assert calls(program) == {("main.py:", "pkg/inner.py:work"), ("other.py:", "pkg/inner.py:idle")}


def test_imported_files_run_from_an_entry_point() -> None:
    program = program_of(main="import helper\n", helper="setup()\ndef setup(): pass\n", rest="x = 1\n")  # fmt: skip
    reached = program.reached_from(["main.py"])
    assert {Key("helper.py", ""), Key("helper.py", "setup")} <= reached
    assert Key("rest.py", "") not in reached


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("examples__train", "x = 1\n", False),
        ("tests__net", "x = 1\n", False),
        ("tests__test_net", "x = 1\n", True),
        ("net_test", "x = 1\n", True),
        ("checks", "import pytest\n", True),
        ("testing__run", "x = 1\n", False),
    ],
)
def test_a_test_is_known_by_its_own_name(path: str, text: str, expected: bool) -> None:
    program = program_of(**{path: text})
    assert program.is_test(path.replace("__", "/") + ".py") is expected


def test_files_that_do_not_parse_are_named() -> None:
    assert program_of(a="def f(:\n", b="x = 1\n").unread == ("a.py",)


def test_expressions_nested_too_deep_are_named() -> None:
    assert program_of(a="x = " + "f(" * 80 + ")" * 80 + "\n").unread == ()
    assert program_of(a="x = " + "+".join(["1"] * 3000) + "\n").unread == ("a.py",)


STEPS = """\
import torch

def once(): pass
def inner(): pass
def logged(): pass
def outside(): pass

def half(model, loss):
    loss.backward()
    inner()

def whole(model, optimizer, loss):
    loss.backward()
    optimizer.step()

def train(data, model, optimizer):
    outside()
    for epoch in range(3):
        once()
        for batch in data:
            half(model, model(batch))
            if batch.step % 10 == 0:
                logged()
        once()

def evaluate(data, model):
    for batch in data:
        model(batch)

def fit(data, model, optimizer):
    for batch in data:
        whole(model, optimizer, batch)
"""


def test_steps_are_the_innermost_loops_that_reach_a_backward_pass() -> None:
    program = program_of(a=STEPS)
    loops = {(loop.function.scope, loop.first, loop.last) for loop in program.steps.loops}
    lines = STEPS.split("\n")
    first = lines.index("        for batch in data:") + 1
    second = len(lines) - 2
    assert loops == {("train", first, first + 3), ("fit", second, second + 1)}
    names = {key.scope for key in program.steps.functions}
    assert names == {"half", "inner", "whole"}


@pytest.mark.parametrize(("line", "every_step"), [
    ("    inner()", True), ("    optimizer.step()", True), ("            half(model, model(batch))", True),
    ("                logged()", False), ("        once()", False), ("    outside()", False),
    ("        model(batch)", False), ("import torch", False),
])  # fmt: skip
def test_lines_that_run_in_every_step(line: str, every_step: bool) -> None:
    program = program_of(a=STEPS)
    number = STEPS.split("\n").index(line) + 1
    assert program.runs_in_every_step("a.py", number) is every_step
    assert not program.runs_in_every_step("none.py", number)


def test_what_is_known_of_a_function() -> None:
    program = program_of(a="def f():\n    def g():\n        pass\n    g()\n\nf()\nf()\n")
    inner = program.function_at("a.py", 3)
    assert inner is not None
    assert inner.key == Key("a.py", "f.g")
    outer = program.function_at("a.py", 4)
    assert outer is not None
    assert (outer.key.scope, outer.name) == ("f", "f")
    assert program.function_at("a.py", 6) is None
    assert program.function_at("b.py", 1) is None
    assert program.callers_of(Key("a.py", "f")) == 2
    assert program.callers_of(Key("a.py", "none")) == 0
    assert program.first_line(Key("a.py", "f.g")) == 2
    assert program.first_line(Key("a.py", "none")) == 0
    lines = {edge.called.scope: program.line_of(edge) for edge in program.edges}
    assert lines == {"f.g": 4, "f": 7} or lines == {"f.g": 4, "f": 6}
    assert not program.is_test("b.py")


def test_what_runs_without_a_call_has_the_first_line_of_its_function() -> None:
    text = "class A:\n    def __iter__(self): pass\n\ndef use():\n    x = 1\n    for _ in A():\n        pass\nuse()\n"
    program = program_of(a=text)
    [edge] = [item for item in program.edges if item.called.scope == "A.__iter__"]
    assert edge.site == -1
    assert program.line_of(edge) == 4
    assert program.callers_of(edge.called) == 0


GUESSED = "class A:\n    def go(self): pass\nclass B:\n    def go(self): pass\n"


@pytest.mark.parametrize(("text", "called"), [
    (GUESSED + "def f(x):\n    x.go()\n", {"A.go", "B.go"}),
    (GUESSED + "class C:\n    def go(self): pass\ndef f(x):\n    x.go()\n", set()),
    ("class A:\n    def append(self, x): pass\ndef f(x):\n    x.append(1)\n", set()),
    ("class A:\n    def go(self): pass\ndef f():\n    g = A\n    g().go()\n", {"A.go"}),
    ("class A:\n    def go(self): pass\nclass C:\n    a = A()\nC().a.go()\n", {"A.go"}),
    ("class A:\n    def go(self): pass\nclass C:\n    pass\nC.a = A()\nC().a.go()\n", {"A.go"}),
    ("def f(): pass\ndef g(*rest):\n    rest[0]()\ng(1, f)\n", {"f", "g"}),
    ("def f(): pass\ndef g(**rest):\n    rest['a']()\ng(a=f)\n", {"f", "g"}),
    ("def f(): pass\ndef g(a, b):\n    b()\ng(b=f, a=1)\n", {"f", "g"}),
    ("def f(): pass\ndef g(a, b):\n    a()\ng(1, f)\n", {"g"}),
    ("import a.b\ndef f(): pass\na.b.run(f)\n", {"f"}),
    ("import lib\nclass A(lib.Base):\n    def go(self): pass\n    def _own(self): pass\nlib.run(A())\n", {"A.go"}),
    ("import torch\nclass A(torch.Base):\n    def go(self): pass\n    def forward(self): pass\ntorch.run(A())\n",
     {"A.forward"}),
    ("import lib\nclass A:\n    def go(self): pass\n    def __len__(self): pass\nlib.run(A())\n", {"A.__len__"}),
    ("class A:\n    def __call__(self): pass\n    def forward(self): pass\nA()()\n", {"A.__call__"}),
    ("class A:\n    def __init__(self, f):\n        f()\ndef g(): pass\nA(g)\n", {"A.__init__", "g"}),
    ("def f():\n    def g(): pass\n    return g\nf()()\n", {"f", "f.g"}),
    ("def g(): pass\ndef f(g):\n    g()\nf(1)\n", {"f"}),
    ("class A:\n    def f(self):\n        self.g()\n    @classmethod\n    def h(cls):\n        cls.g()\n    def g(self): pass\n",
     {"A.g"}),
    ("def f() -> A: ...\nclass A:\n    def go(self): pass\nf().go()\n", {"A.go", "f"}),
    ("class A:\n    def go(self): pass\nwith A() as a:\n    a.go()\n", {"A.go"}),
    ("class A:\n    def go(self): pass\nfor a in [A()]:\n    a.go()\n", {"A.go"}),
    ("class A:\n    def go(self): pass\na = A() if x else None\na.go()\n", {"A.go"}),
    ("class A:\n    def go(self): pass\nm = lib.wrap(A())\nm.module.go()\nm._orig_mod.go()\n", {"A.go"}),
])  # fmt: skip
def test_values_are_followed(text: str, called: set[str]) -> None:
    found = {to.removeprefix("a.py:") for _, to in calls(program_of(a=text))}
    assert found == called


def test_a_function_that_only_goes_backward_is_no_step_of_its_own() -> None:
    text = "def f(loss):\n    loss.backward()\n    go()\ndef go(): pass\ndef g(loss, optimizer):\n    loss.backward()\n"
    program = program_of(a=text + "    optimizer.step()\n    run()\ndef run(): pass\n")
    assert {key.scope for key in program.steps.functions} == {"g", "run"}
