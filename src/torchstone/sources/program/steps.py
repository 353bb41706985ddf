"""What runs inside a training step.

A step is one round of the innermost loop that reaches a backward pass or an optimizer step, through
however many functions. A function that does both on its own, and one that a framework calls once a
step, is a step too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from torchstone.sources.program.flow import Edge
from torchstone.sources.program.outline import Function, Key, Outline

_BY_FRAMEWORKS = ("training_step", "compute_loss", "optimizer_step", "training_step_end")
"""Methods that Lightning and the Trainer of transformers call once a step."""


@dataclass(frozen=True, slots=True)
class StepLoop:
    """A loop whose every round is a training step."""

    function: Key
    loop: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Steps:
    """The loops that train, and the functions that run in every round of one."""

    loops: tuple[StepLoop, ...]
    functions: frozenset[Key]


def find_steps(outlines: dict[str, Outline], edges: tuple[Edge, ...]) -> Steps:
    """Every training step of a program."""
    functions = {item.key: item for one in outlines.values() for item in one.functions.values()}
    calls: dict[Key, list[Edge]] = defaultdict(list)
    for edge in edges:
        calls[edge.caller].append(edge)
    step_like = _step_like(functions, edges)
    loops = [
        loop
        for key, function in functions.items()
        for loop in _loops(key, function, calls, step_like)
    ]
    start = {
        edge.called
        for loop in loops
        for edge in calls[loop.function]
        if _is_in(functions[loop.function], edge, loop.loop)
    }
    start |= {key for key, item in functions.items() if _is_step(item)}
    return Steps(tuple(loops), reachable(start, edges, functions))


def _step_like(functions: dict[Key, Function], edges: tuple[Edge, ...]) -> set[Key]:
    """Functions that reach a backward pass or an optimizer step without a loop of their own."""
    callers: dict[Key, list[Key]] = defaultdict(list)
    for edge in edges:
        site = functions[edge.caller].sites[edge.site] if edge.site >= 0 else None
        if site is not None and site.loop < 0 and not edge.handed:
            callers[edge.called].append(edge.caller)
    found = {
        key
        for key, item in functions.items()
        if key.scope and any(site.trains and site.loop < 0 for site in item.sites)
    }
    waiting = list(found)
    while waiting:
        for caller in callers[waiting.pop()]:
            if caller not in found and caller.scope:
                found.add(caller)
                waiting.append(caller)
    return found


def _loops(
    key: Key, function: Function, calls: dict[Key, list[Edge]], step_like: set[Key]
) -> list[StepLoop]:
    """The loops of a function that train directly or through a call, outer ones left out."""
    numbers = {site.loop for site in function.sites if site.trains}
    numbers |= {
        function.sites[edge.site].loop
        for edge in calls[key]
        if edge.site >= 0 and edge.called in step_like
    }
    numbers.discard(-1)
    outer: set[int] = set()
    for number in numbers:
        around = function.loops[number].outer
        while around >= 0:
            outer.add(around)
            around = function.loops[around].outer
    kept = _whole_steps(function, numbers - outer)
    return [
        StepLoop(key, number, function.loops[number].first, function.loops[number].last)
        for number in sorted(kept)
    ]


def _whole_steps(function: Function, numbers: set[int]) -> set[int]:
    """Where the loop around a loop also trains (gradients are accumulated in the inner one and the
    step is made in the outer one), the outer one is the step."""
    direct = {site.loop for site in function.sites if site.trains}
    found = set()
    for number in numbers:
        outer = function.loops[number].outer
        found.add(outer if outer in direct else number)
    return found


def _is_in(function: Function, edge: Edge, loop: int) -> bool:
    """Whether a call stands in a loop, or in one inside of it, and runs in every round."""
    if edge.site < 0:
        return False
    site = function.sites[edge.site]
    number = site.loop
    while number >= 0 and number != loop:
        number = function.loops[number].outer
    return number == loop and not site.seldom


def _is_step(function: Function) -> bool:
    if function.owner and function.name in _BY_FRAMEWORKS:
        return True
    return sum(site.trains and site.loop < 0 for site in function.sites) > 1 and bool(
        function.key.scope
    )


def reachable(
    start: set[Key], edges: tuple[Edge, ...], functions: dict[Key, Function]
) -> frozenset[Key]:
    """The functions that a set of functions runs, themselves included."""
    following: dict[Key, set[Key]] = defaultdict(set)
    for edge in edges:
        following[edge.caller].add(edge.called)
    found, waiting = set(start), list(start)
    while waiting:
        for key in following[waiting.pop()]:
            if key not in found and key in functions:
                found.add(key)
                waiting.append(key)
    return frozenset(found)
