"""Everything that was changed comes back, in reverse order, also after an interrupt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.utils._device

from torchstone.observe.undo import Undo, heal, keep_modes, leave_inference_mode


def test_attributes_come_back_as_they_were() -> None:
    holder = SimpleNamespace(a=1)
    with Undo() as undo:
        undo.set(holder, "a", 2)
        undo.set(holder, "a", 3)
        undo.set(holder, "b", 4)
        assert (holder.a, holder.b) == (3, 4)
    assert vars(holder) == {"a": 1}


def test_steps_are_taken_in_reverse_order() -> None:
    taken: list[int] = []
    with Undo() as undo:
        for number in range(3):
            undo.later(lambda number=number: taken.append(number))  # type: ignore[misc]
    assert taken == [2, 1, 0]


def test_an_interrupted_step_is_taken_again_and_the_interrupt_is_raised() -> None:
    taken: list[str] = []
    interrupts = [KeyboardInterrupt()]

    def step() -> None:
        if interrupts:
            raise interrupts.pop()
        taken.append("second")

    undo = Undo()
    undo.later(lambda: taken.append("first"))
    undo.later(step)
    with pytest.raises(KeyboardInterrupt):
        undo.close()
    assert taken == ["second", "first"]


def test_a_step_that_always_fails_does_not_hold_up_the_others() -> None:
    taken: list[str] = []

    def step() -> None:
        taken.append("tried")
        raise ZeroDivisionError

    undo = Undo()
    undo.later(lambda: taken.append("first"))
    undo.later(step)
    with pytest.raises(ZeroDivisionError):
        undo.close()
    assert taken == ["tried"] * 3 + ["first"]
    undo.close()


def test_what_a_run_left_open_is_closed_when_the_next_begins() -> None:
    holder = SimpleNamespace(a=1)
    undo = Undo().__enter__()
    undo.set(holder, "a", 2)
    heal()
    assert holder.a == 1


def test_modes_are_those_of_before() -> None:
    with Undo() as undo:
        keep_modes(undo)
        torch.set_grad_enabled(False)
        mode = torch.utils._device.DeviceContext("cpu")
        mode.__enter__()
    assert torch.is_grad_enabled()
    assert not torch.overrides._get_current_function_mode_stack()


def test_inference_mode_is_left_and_entered_again() -> None:
    with torch.inference_mode():
        with Undo() as undo:
            leave_inference_mode(undo)
            assert not torch.is_inference_mode_enabled()
        assert torch.is_inference_mode_enabled()
