"""What a function does to what it is given, its callees included.

Calls that cannot be followed make a fact unknown: what they are handed is `opaque`, and a rule that
needs to know says nothing about it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchstone.lint.facts.effects import Effect, Event, cleared_by_hand, effect_of
from torchstone.lint.knowledge.flow import made, own_nodes, parameters, passed
from torchstone.sources.scene import FUNCTIONS, LOOPS, Function, Scene
from torchstone.sources.targets import is_outside, method_of, target_of, unwrapped

_DEPTH = 3  # calls of calls; deeper chains are rare and cost a parsed file each
_DECIDING = (ast.If, ast.IfExp, ast.Try, ast.Match, ast.BoolOp, *LOOPS)


@dataclass(frozen=True, slots=True)
class Summary:
    """The effects of a function in order, and what it hands to code that nobody can read."""

    events: tuple[Event, ...] = ()
    opaque: frozenset[str] = frozenset()

    def has(self, effect: Effect, subject: str = "") -> bool:
        """Whether the effect may happen, to this subject if one is named."""
        return any(
            event.effect is effect and (not subject or _same(event.subject, subject))
            for event in self.events
        )

    def hides(self, subject: str) -> bool:
        """Whether something unknown may happen to a subject, or to what it is part of."""
        return any(subject == name or subject.startswith(f"{name}.") for name in self.opaque)


NOTHING = Summary()


def _same(one: str, other: str) -> bool:
    """Whether an effect on one chain concerns the other: `model` and `model.module`."""
    return not one or one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


def summary_of(scene: Scene, function: Function, depth: int = _DEPTH) -> Summary:
    """The summary of a function of the project; worked out once for each depth."""
    known: dict[tuple[str, int, int], Summary] = scene.project.summaries
    key = (scene.path, function.lineno, depth)
    if key not in known:
        known[key] = NOTHING  # a function that calls itself adds nothing
        known[key] = summary_within(scene, function, depth)
    return known[key]


def summary_within(scene: Scene, root: ast.AST, depth: int = _DEPTH) -> Summary:
    """The effects of everything below a function, a loop or another statement."""
    events: list[Event] = []
    opaque: set[str] = set()
    for call in calls_below(root):
        own = effect_of(scene, call)
        sure = not is_decided(scene, call, root)
        if own is not None:
            events.append(Event(own[0], scene.dotted(own[1]), sure))
            if own[0] is not Effect.BACKWARD or target_of(scene, call) is None:
                continue  # `strategy.backward(loss)` may do more than its name says
        inner = summary_at(scene, call, depth)
        if inner is None:
            opaque |= handed(scene, call)
            continue
        events += [event._replace(sure=event.sure and sure) for event in inner.events]
        opaque |= inner.opaque
    for node in cleared_by_hand(scene, root):
        if scene.function(node) is scene.function(root) or scene.function(node) is root:
            events.append(Event(Effect.ZERO_GRAD, "", not is_decided(scene, node, root)))
    return Summary(tuple(events), frozenset(opaque))


def summary_at(scene: Scene, call: ast.Call, depth: int = _DEPTH) -> Summary | None:
    """What a call does, in the names of the place that calls; None when nobody can tell."""
    if is_outside(scene, call) or _is_of_accelerator(scene, call):
        return NOTHING
    found = target_of(scene, call) if depth else None
    if found is None:
        return None
    inner = summary_of(found[0], found[1], depth - 1)
    if not inner.events and not inner.opaque:
        return inner
    names = _names_at(scene, call, found[1])
    outer = _outer_names(found[0], found[1]) if found[0] is scene else frozenset()

    def renamed(subject: str) -> str:
        base, dot, rest = subject.partition(".")
        if base == "self" and rest and (same := _given_to_object(scene, call, rest)):
            return same
        if base in names:
            return f"{names[base]}{dot}{rest}" if names[base] else ""
        return subject if base in outer else ""  # a local: nothing that the caller could name

    events = [event._replace(subject=renamed(event.subject)) for event in inner.events]
    opaque = {renamed(name) for name in inner.opaque}
    return Summary(tuple(events), frozenset(opaque - {""}))


def _is_of_accelerator(scene: Scene, call: ast.Call) -> bool:
    """Whether a call is of accelerate, by the name of its object: nothing of it switches a mode."""
    func = call.func
    return (
        isinstance(func, ast.Attribute)
        and func.attr in _OF_ACCELERATOR
        and "accelerator" in scene.last_name(func.value).lower()
    )


_OF_ACCELERATOR = frozenset(
    "unwrap_model accumulate prepare gather gather_for_metrics wait_for_everyone autocast no_sync "
    "clip_grad_norm_ clip_grad_value_ print log save_state load_state register_for_checkpointing "
    "reduce pad_across_processes init_trackers end_training free_memory get_state_dict save".split()
)


def _given_to_object(scene: Scene, call: ast.Call, rest: str) -> str:
    """What the caller calls the field of an object that it made from it: after
    `self.judge = Judge(self.net)`, the `net` of `self.judge` is `self.net`."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    source = made(scene, receiver) if receiver is not None else None
    if not isinstance(source, ast.Call) or isinstance(receiver, ast.Call):
        return ""
    found = scene.project.class_named(scene, source.func, scene.qualified(source.func))
    start = method_of(found[0], found[1], "__init__") if found is not None else None
    if found is None or start is None:
        return ""
    field, dot, further = rest.partition(".")
    values = found[0].attribute_values(found[1], field)
    if len(values) != 1 or not isinstance(values[0], ast.Name):
        return ""
    given = scene.dotted(passed(scene, source, start[1], values[0].id))
    local = scene.scope(source) is scene.scope(call) or given.startswith("self.")
    return f"{given}{dot}{further}" if given and local else ""


def _names_at(scene: Scene, call: ast.Call, function: Function) -> dict[str, str]:
    """What the parameters of a function are called at the place that calls it."""
    names = {
        name: scene.dotted(passed(scene, call, function, name)) for name in parameters(function)
    }
    if names and next(iter(names)) == "self" and isinstance(call.func, ast.Attribute):
        receiver = unwrapped(scene, call.func.value)
        names["self"] = "self" if isinstance(receiver, ast.Call) else scene.dotted(receiver)
    return names


def _outer_names(scene: Scene, function: Function) -> frozenset[str]:
    """The names that a function reads and does not bind: globals, and those of a closure."""
    known: dict[ast.AST, frozenset[str]] = scene.cache.setdefault("outer names", {})
    if function not in known:
        known[function] = _read_only(scene, function)
    return known[function]


def _read_only(scene: Scene, function: Function) -> frozenset[str]:
    own = {
        node.id if isinstance(node, ast.Name) else node.arg
        for node in scene.inside(function)
        if isinstance(node, ast.arg)
        or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return frozenset(
        node.id for node in own_nodes(function) if isinstance(node, ast.Name) and node.id not in own
    )


def calls_below(root: ast.AST) -> list[ast.Call]:
    """The calls below a node in the order in which they are written; inner functions left out."""
    kept: list[ast.Call] | None = getattr(root, "calls_in_order", None)
    if kept is not None:
        return kept
    found = [node for node in own_nodes(root) if isinstance(node, ast.Call)]
    if isinstance(root, ast.Call):
        found.append(root)
    found.sort(key=lambda call: (call.lineno, call.col_offset))
    if isinstance(root, (*FUNCTIONS, *LOOPS)):
        root.calls_in_order = found  # type: ignore[union-attr]
    return found


def handed(scene: Scene, call: ast.Call) -> set[str]:
    """The chains of names that a call passes on, the value it is called on included."""
    given: Iterable[ast.expr] = (*call.args, *(keyword.value for keyword in call.keywords))
    names = {scene.dotted(item.value if isinstance(item, ast.Starred) else item) for item in given}
    if isinstance(call.func, ast.Attribute) and call.func.attr not in _PLAIN_METHODS:
        names.add(_owner(scene, call.func))
    return names - {""}


# methods of modules, tensors and containers that switch nothing
_PLAIN_METHODS = frozenset(
    "parameters named_parameters state_dict load_state_dict to cuda cpu half float double forward "
    "module modules children named_modules named_children requires_grad_ no_sync buffers append "
    "extend items keys values get add update size dim view reshape log info debug warning format "
    "join write add_scalar set_description set_postfix detach mean sum clone save_pretrained "
    "generate encode decode save_checkpoint clip_grad_norm_ join register_hook".split()
)


def _owner(scene: Scene, func: ast.Attribute) -> str:
    """What an unknown method may change: its object; not an imported module, and not the object
    that merely holds what is called (`self.model(x)`)."""
    name = scene.dotted(func.value)
    if name.partition(".")[0] in scene.imports.aliases:
        return ""
    owner = scene.class_of(func) if name == "self" else None
    if owner is not None and (
        scene.attribute_values(owner, func.attr) or _has_no_more(scene, owner)
    ):
        return ""
    return name


def _has_no_more(scene: Scene, owner: ast.ClassDef) -> bool:
    """Whether all methods of a class are to be seen: what is called beside them is a field."""
    return all(
        scene.project.class_named(scene, base, scene.qualified(base)) is not None
        or scene.last_name(base) in ("object", "ABC", "Generic", "Module")
        for base in owner.bases
    )


def is_decided(scene: Scene, node: ast.AST, root: ast.AST) -> bool:
    """Whether a branch or loop below `root` decides if a node runs."""
    for up in scene.ancestors(node):
        if up is root:
            return False
        if isinstance(up, _DECIDING):
            return True
        if isinstance(up, FUNCTIONS):
            return False
    return False


def sites_of(scene: Scene, root: ast.AST, effect: Effect) -> Iterator[tuple[ast.Call, Event]]:
    """The calls below a node that have an effect, by themselves or through what they call."""
    for call in calls_below(root):
        own = effect_of(scene, call)
        if own is not None:
            if own[0] is effect:
                yield call, Event(effect, scene.dotted(own[1]), not is_decided(scene, call, root))
            continue
        inner = summary_at(scene, call)
        for event in inner.events if inner else ():
            if event.effect is effect:
                yield call, event
                break
