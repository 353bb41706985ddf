"""Whether a place runs on some ranks only."""

from __future__ import annotations

import ast
import re

from torchstone.core.pattern import pattern
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.states import RankBranch
from torchstone.sources.targets import function_named

__all__ = ["RankBranch", "is_rank_test", "rank_branch"]

RANK_CALLS = frozenset(
    ("torch.distributed.get_rank", "torch.distributed.get_node_local_rank")
    + ("torch.distributed.distributed_c10d.get_rank",)
)
_RANK_NAME = pattern(
    r"^(?:(?:global|local|node|world|dp|tp|pp|ddp|data_parallel)_?)?rank$|^RANK$|^LOCAL_RANK$", re.I
)
_HELPER_NAME = pattern(
    r"^(?:is|am|on)_(?:the_)?(?:local_|global_|world_)?(?:main|master|rank_?(?:0|zero)|primary|chief|root|first"
    r"|process_?(?:0|zero)|zero)(?:_?(?:process|rank|node|worker|proc|zero))*$"
)
_ONLY_NAME = pattern(r"^(?:rank_?(?:zero|0)|(?:main|master|chief)_?(?:process|rank)?)_only$")


def is_rank_test(scene: Scene, test: ast.expr, depth: int = 4) -> bool:
    """Whether a condition can differ between the ranks of one job."""
    return _depends(scene, test, depth)


def _depends(scene: Scene, node: ast.AST, depth: int) -> bool:
    if not depth:
        return False
    if isinstance(node, ast.UnaryOp):
        return _depends(scene, node.operand, depth)
    if isinstance(node, ast.BoolOp):
        return any(_depends(scene, part, depth) for part in node.values)
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        if any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            return False  # `rank is None` asks whether there are ranks at all
        if any(scene.literal(side) == -1 for side in sides):
            return False  # `local_rank == -1` is the old way to say "not distributed"
        if len(node.ops) == 1 and _all_ranks(node.ops[0], scene.literal(sides[1])):
            return False
        return any(_is_rank(scene, side, depth) for side in sides)
    if isinstance(node, ast.Call):
        if _HELPER_NAME.match(scene.last_name(node.func)):
            return True
        return _returns_rank_test(scene, node, depth - 1)
    if isinstance(node, ast.Attribute):
        if _HELPER_NAME.match(node.attr):
            return True
        made = _only_value(scene, node)
        return made is not None and _depends(scene, made, depth - 1)
    if isinstance(node, ast.Name):
        if _HELPER_NAME.match(node.id):
            return True
        value = scene.value(node)
        return value is not None and value is not node and _depends(scene, value, depth - 1)
    return False


def _returns_rank_test(scene: Scene, call: ast.Call, depth: int) -> bool:
    """Whether a function of the project answers with something that differs between ranks."""
    target = function_named(scene, call.func) if depth > 0 else None
    return target is not None and any(
        is_rank_test(target[0], item.value, depth)
        for item in target[0].inside(target[1])
        if isinstance(item, ast.Return) and item.value is not None
    )


def _all_ranks(op: ast.cmpop, bound: object) -> bool:
    """`rank >= 0`, `rank > -1`, `rank < 0`: the same on every rank."""
    return bound == 0 and isinstance(op, (ast.GtE, ast.Lt))


def _is_rank(scene: Scene, node: ast.AST, depth: int) -> bool:
    if isinstance(node, ast.Call):
        full = scene.qualified(node.func)
        if full in RANK_CALLS or scene.last_name(node.func) in (
            "get_rank",
            "get_local_rank",
            "get_global_rank",
        ):
            return True
        if full == "int" or scene.last_name(node.func) == "int":
            return any(_is_rank(scene, argument, depth) for argument in node.args)
        if full in ("os.environ.get", "os.getenv") and node.args:
            return scene.literal(node.args[0]) in ("RANK", "LOCAL_RANK")
        return False
    if isinstance(node, ast.Subscript):
        return scene.qualified(node.value) == "os.environ" and scene.literal(node.slice) in (
            "RANK",
            "LOCAL_RANK",
        )
    if isinstance(node, ast.BinOp):
        return _is_rank(scene, node.left, depth) or _is_rank(scene, node.right, depth)
    if isinstance(node, (ast.Name, ast.Attribute)):
        if _RANK_NAME.match(scene.last_name(node)):
            return True
        value = scene.value(node) or _only_value(scene, node)
        return value is not None and depth > 0 and _is_rank(scene, value, depth - 1)
    return False


def _only_value(scene: Scene, node: ast.AST) -> ast.expr | None:
    """What `self.attribute` is always set to, when its class sets it in one place."""
    if not isinstance(node, ast.Attribute) or scene.dotted(node.value) != "self":
        return None
    owner = scene.class_of(node)
    found = scene.attribute_values(owner, node.attr) if owner is not None else []
    return found[0] if len(found) == 1 else None


def rank_branch(scene: Scene, node: ast.AST) -> RankBranch | None:
    """The innermost rank-dependent branch around a node, or an early exit before it."""
    child: ast.AST = node
    for up in scene.ancestors(node):
        if isinstance(up, (ast.If, ast.While, ast.IfExp)) and child is not up.test:
            if is_rank_test(scene, up.test):
                body = up.body if isinstance(up.body, list) else [up.body]
                return RankBranch(up.test, up, False, "body" if child in body else "orelse")
        early = _early_exit(scene, up, child)
        if early is not None:
            return early
        if isinstance(up, FUNCTIONS):
            return _guarding_decorator(scene, up)
        if isinstance(up, ast.Lambda):
            return None
        child = up
    return None


def _guarding_decorator(
    scene: Scene, function: ast.FunctionDef | ast.AsyncFunctionDef
) -> RankBranch | None:
    """A decorator that runs the function on some ranks only: of the project, or by its name."""
    for item in function.decorator_list:
        func = item.func if isinstance(item, ast.Call) else item
        if _ONLY_NAME.match(scene.last_name(func)) or _runs_on_some(scene, func):
            return RankBranch(func, item, True)
    return None


def _runs_on_some(scene: Scene, decorator: ast.expr) -> bool:
    known: dict[ast.AST, bool] = scene.cache.setdefault("rank decorators", {})
    if decorator not in known:
        known[decorator] = False
        target = function_named(scene, decorator)
        if target is not None:
            home, function = target
            names = [item.arg for item in function.args.args[:1]]
            calls = [
                node
                for node in home.inside(function)
                if isinstance(node, ast.Call) and home.dotted(node.func) in names
            ]
            known[decorator] = bool(calls) and all(rank_branch(home, call) for call in calls)
    return known[decorator]


def _early_exit(scene: Scene, block_owner: ast.AST, child: ast.AST) -> RankBranch | None:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(block_owner, name, None)
        if not isinstance(block, list) or child not in block:
            continue
        for statement in block[: block.index(child)]:
            if not isinstance(statement, ast.If) or statement.orelse:
                continue
            last = statement.body[-1]
            if isinstance(last, (ast.Return, ast.Continue, ast.Raise)) and is_rank_test(
                scene, statement.test
            ):
                if isinstance(last, ast.Continue) and isinstance(block_owner, FUNCTIONS):
                    continue
                return RankBranch(statement.test, statement, True)
    return None
