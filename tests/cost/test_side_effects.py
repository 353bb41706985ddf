"""A run leaves nothing behind: no patch in torch, no change in the user's tensors, no silence about
what it did not see."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from torchstone.cost import count_step, measure_cost
from torchstone.cost.counting.engine import run
from torchstone.cost.records.ledger import BACKWARD, FORWARD
from torchstone.observe.undo import Undo, heal


class Threaded(nn.Module):
    """Calls its second half in another thread."""

    def __init__(self, call: Callable[[Callable[[], torch.Tensor]], torch.Tensor]) -> None:
        super().__init__()
        self.here, self.there, self.call = nn.Linear(8, 8), nn.Linear(8, 8), call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.here(x)
        return self.call(lambda: self.there(y))


def new_thread(code: Callable[[], torch.Tensor]) -> torch.Tensor:
    found: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: found.append(code()))
    thread.start()
    thread.join()
    return found[0]


POOL = ThreadPoolExecutor(1)


@pytest.mark.parametrize("call", [new_thread, lambda code: POOL.submit(code).result()])
@pytest.mark.parametrize("train", [False, True])
def test_modules_in_other_threads_are_told(call: Any, train: bool) -> None:
    POOL.submit(int).result()  # its thread is there before the run
    model = Threaded(call)
    report = measure_cost(model, torch.randn(4, 8), train=train)
    assert report.cost.total(FORWARD).flops == 2 * 4 * 8 * 8, "the first half is counted"
    gap = next(item for item in report.gaps if item.reason.id == "cost-other-thread")
    assert gap.subject.split(", ")[0] == "there"
    assert gap.failed
    assert report.failed
    assert "线程" in gap.reason.say("zh")
    with count_step(model) as step:
        model(torch.randn(4, 8))
    assert step.cost.elsewhere == {"there": 1}


def test_operators_in_other_threads_are_told() -> None:
    class Functional(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ new_thread(lambda: x.T @ x)

    cost = run(Functional(), torch.randn(4, 8))
    assert cost.total().flops == 2 * 4 * 8 * 8
    assert "aten.mm" in cost.elsewhere


def test_a_thread_without_tensors_is_no_matter() -> None:
    class Logged(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            thread = threading.Thread(target=lambda: torch.zeros(3).sum())
            thread.start()
            thread.join()
            return x @ x

    assert not measure_cost(Logged(), torch.randn(4, 4)).gaps


class Writing(nn.Module):
    """Changes tensors that it keeps as plain attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = torch.zeros(())
        self.table = torch.arange(6.0).reshape(2, 3)
        self.turned = torch.arange(6.0).reshape(2, 3)
        self.grown = torch.arange(3.0)
        self.rows = [torch.ones(2), torch.ones(2)]
        self.seen: list[float] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.table[1] = 7.0
        self.turned.t_()
        self.grown.resize_(40).fill_(1.0)
        torch._foreach_mul_(self.rows, 3.0)
        self.seen.append(self.calls.item() + self.rows[0][0].item())
        return self.layer(x) * self.table[1, 1].item()


@pytest.mark.parametrize("train", [False, True])
def test_tensors_in_plain_attributes_are_unharmed(train: bool) -> None:
    model = Writing()
    cost = run(model, torch.randn(2, 4), train=train)
    assert cost.failure is None
    assert model.seen == [4.0], "while it runs, the code sees what it wrote"
    assert model.calls == 0
    assert torch.equal(model.table, torch.arange(6.0).reshape(2, 3))
    assert torch.equal(model.turned, torch.arange(6.0).reshape(2, 3))
    assert model.turned.stride() == (3, 1)
    assert torch.equal(model.grown, torch.arange(3.0))
    assert all(torch.equal(row, torch.ones(2)) for row in model.rows)


def test_hooks_that_a_forward_installs_do_not_stay() -> None:
    class Lazy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not hasattr(self, "ready"):
                self.layer.register_forward_hook(lambda *_: None)
                self.ready = True
            result: torch.Tensor = self.layer(x)
            return result

    model = Lazy()
    run(model, torch.randn(2, 4))
    assert not model.layer._forward_hooks
    assert not hasattr(model, "ready")


class Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.once, self.twice = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.cond(
            x.sum() > 0, lambda y: self.once(y), lambda y: self.twice(self.twice(y)), (x,)
        )
        return result


class Looping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = torch.zeros((), dtype=torch.long, device=x.device)
        y = while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, self.layer(y)), (count, x))[1]
        carry, _ = scan(lambda c, v: (c + self.layer(v), c * 2), y[0], y)
        result: torch.Tensor = carry
        return result


@pytest.mark.parametrize(("sign", "products"), [(1, 1), (-1, 2)])
def test_a_real_step_takes_the_branch_that_is_taken(sign: int, products: int) -> None:
    model = Branching()
    with count_step(model) as step:
        model(torch.full((4, 8), float(sign))).sum().backward()
    one = 2 * 4 * 8 * 8
    assert step.cost.total(FORWARD).flops == products * one
    assert step.cost.total(BACKWARD).flops == (2 * products - 1) * one, "the input needs none"
    assert {key.module for key, tally in step.cost.entries.items() if tally.flops} == (
        {"once"} if sign > 0 else {"twice"}
    )


@pytest.mark.parametrize("model", [Branching(), Looping()])
def test_branches_and_loops_train_on_meta_as_for_real(model: nn.Module) -> None:
    x = torch.ones(4, 8)
    with count_step(model) as step:
        model(x).sum().backward()
    cost = run(model, x, train=True)
    assert cost.failure is None
    for phase in (FORWARD, BACKWARD):
        assert cost.total(phase).flops == step.cost.total(phase).flops > 0


class Small(nn.Module):
    """Has a stack of equal layers, attention and an autocast region."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
        self.told: Callable[[], object] = lambda: None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.layers(x)
        y = nn.functional.scaled_dot_product_attention(y, y, y)
        self.told()
        return y.sum()


def state(model: Small) -> dict[str, Any]:
    """Everything that a run changes while it lasts."""
    kind: Any = torch.amp.autocast_mode.autocast
    modes: Any = sys.modules["torch.utils._python_dispatch"]
    return {
        "call": nn.Module.__call__,
        "patched": (torch.compile, torch.tensor, torch.Tensor.__format__, threading.Thread.run),
        "cond": sys.modules["torch._higher_order_ops.cond"].cond_op,
        "stance": sys.modules["torch._dynamo.eval_frame"]._stance,
        "autocast": (kind.__init__, kind.__enter__, kind.__exit__),
        "attention": torch._C._dispatch_has_kernel_for_dispatch_key(
            "aten::scaled_dot_product_attention", "AutogradMeta"
        ),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "modes": (
            torch.is_grad_enabled(),
            torch.is_inference_mode_enabled(),
            len(modes._get_current_dispatch_mode_stack()),
            len(torch.overrides._get_current_function_mode_stack()),
            modes._is_in_torch_dispatch_mode,
            torch._C._autograd._top_saved_tensors_default_hooks(True),
        ),
        "collector": gc.isenabled(),
        "random": torch.random.get_rng_state().tolist(),
        "kinds": [type(layer) for layer in model.layers],
        "devices": [parameter.device.type for parameter in model.parameters()],
        "training": model.training,
    }


PLAIN = ("storage.py", "shadow.py", "kept.py", "books.py", "facts.py", "ledger.py")
"""Files that change nothing outside of a run; in the callbacks of some an interrupt is lost."""


class Interrupt:
    """Raises KeyboardInterrupt at the n-th line that Torchstone runs after it was armed."""

    def __init__(self, line: int) -> None:
        self.left, self.armed = line, False

    def __call__(self, frame: Any, event: str, _: Any) -> Any:
        folder, _, file = frame.f_code.co_filename.rpartition("/")
        if "torchstone/" not in folder or file in PLAIN:
            return None
        if event == "line" and self.armed:
            self.left -= 1
            if self.left == 0:
                self.armed = False
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("replay", [False, True])
def test_an_interrupt_at_any_line_on_the_way_out_leaves_nothing_behind(replay: bool) -> None:
    """From the end of the forward on, through the books and the whole way out."""
    model, x = Small(), torch.randn(1, 1, 4, 8)
    run(model, x, replay=replay)
    before = state(model)
    line, done = 0, False
    while not done:
        line += 1
        interrupt = Interrupt(line)

        def told(armed: Interrupt = interrupt) -> None:
            armed.armed = True

        model.told = told
        sys.settrace(interrupt)
        try:
            run(model, x, replay=replay)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert interrupt.left <= 0 or interrupt.armed
        done = interrupt.left > 0
        assert state(model) == before, f"line {line}"
    assert line > 100, "there were lines to interrupt"


def test_what_two_interrupts_left_is_put_right_by_the_next_run() -> None:
    before = torch.compile
    undo = Undo()
    undo.__enter__()
    undo.set(torch, "compile", None)  # and the way out never comes
    assert torch.compile is None
    run(nn.Linear(2, 2), torch.randn(1, 2))
    assert torch.compile is before
    heal()


def test_a_step_back_that_fails_does_not_keep_the_others() -> None:
    taken: list[str] = []

    def fails() -> None:
        taken.append("fails")
        raise ValueError("no way")

    undo = Undo()
    undo.later(lambda: taken.append("first"))
    undo.later(fails)
    with pytest.raises(ValueError, match="no way"):
        undo.close()
    assert taken == ["fails"] * 3 + ["first"]


class Recording(nn.Module):
    """Puts hooks on its layers when it is first called, and takes what they saw, as transformers
    does for hidden states."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))
        self.blocks = nn.ModuleList(nn.Linear(8, 8) for _ in range(7))
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen: list[torch.Tensor] = []
        if not hasattr(self, "ready"):
            self.ready = True
            for layer in self.layers:
                layer.register_forward_hook(lambda module, args, out: seen.append(out))
        for layer in self.layers:
            x = layer(x)
        x = seen[-2]
        for block in self.blocks:
            x = block(x)
        result: torch.Tensor = self.head(x)
        return result


def test_layers_that_get_hooks_on_the_way_are_not_copied() -> None:
    model = Recording()
    costs = [run(model, torch.randn(2, 8), train=True, replay=flag) for flag in (True, True, False)]
    assert costs[0].failure is None
    assert costs[0].entries == costs[1].entries == costs[2].entries
    assert costs[0].memory.peaks == costs[1].memory.peaks == costs[2].memory.peaks
    copied = {path for path, facts in costs[0].modules.items() if facts.replayed}
    assert copied == {f"blocks.{index}" for index in range(2, 6)}, "the other stack still is"
