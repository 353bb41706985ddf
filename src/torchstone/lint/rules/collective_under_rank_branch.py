"""A collective that only some ranks reach makes them wait for ever."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.paths import conditions
from torchstone.lint.knowledge.collectives import (
    NAMES,
    RANK_WORDS,
    STATE,
    asks_rank,
    collective,
    collectives_in,
    collectives_of,
    reached,
)
from torchstone.lint.knowledge.flow import callee, own_calls
from torchstone.lint.knowledge.wrapping import FSDP, FULLY_SHARD, wraps
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule
from torchstone.sources.ranks import RankBranch, is_rank_test
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside

RULE = Rule(
    "TS401",
    "collective-under-rank-branch",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` runs only on ranks where `{test}`",
        zh="`{call}` 只在满足 `{test}` 的 rank 上执行",
    ),
    why=Text(
        en="{name} returns when every rank has called it: the ranks that skip it leave the others "
        "waiting until the timeout (10 minutes with NCCL, 30 with gloo), or it pairs up with a "
        "later collective and mixes data",
        zh="{name} 要等所有 rank 都调用才会返回：跳过它的 rank 会让其他 rank 一直等到超时"
        "（NCCL 10 分钟，gloo 30 分钟），或与之后的集合通信错位配对，导致数据混乱",
    ),
    suggest=Text(
        en="call it on every rank, and keep only the printing or saving inside the branch",
        zh="让所有 rank 都调用它，分支里只保留打印或保存",
    ),
    title=Text(
        en="A collective under a rank-dependent branch or after an early return hangs the other "
        "ranks",
        zh="集合通信位于依赖 rank 的分支或提前返回之后，其余 rank 会卡住",
    ),
    page=Text(
        en="Fires for collectives of torch.distributed, distributed checkpoints, accelerate, "
        "deepspeed, horovod and torch_xla that stand in an arm of a condition which differs between "
        "ranks (`rank == 0`, `get_rank()`, `is_main_process()`, a helper of the project that asks "
        "such a thing), or after an early `return` of some ranks. Also fires where such an arm "
        "calls a function of the project that runs a collective itself.\n\n"
        "- Quiet when a process group is given: it may hold just these ranks. Sends and receives "
        "are not collectives.\n"
        "- Quiet when the other arm runs the same collective (scatter, broadcast), and for the pair "
        "`if rank != 0: barrier()` … `if rank == 0: barrier()`.\n"
        "- `get_model_state_dict` and its kin talk to the other ranks only for a sharded model: "
        "`possible` unless the file shards one.\n"
        "- An early `raise` is quiet: the job ends anyway.",
        zh="torch.distributed、分布式检查点、accelerate、deepspeed、horovod、torch_xla 的集合通信，若位于随 rank 不同而"
        "不同的条件（`rank == 0`、`get_rank()`、`is_main_process()`、项目中做此判断的辅助函数）的某个分支，或位于部分 "
        "rank 提前 `return` 之后，则报告；这样的分支调用了内部执行集合通信的项目函数时，也会报告。\n\n"
        "- 指定了进程组时不报告：组里可能正好是这些 rank。点对点收发不算集合通信。\n"
        "- 另一分支执行相同集合通信（scatter、broadcast），或 `if rank != 0: barrier()` 与 "
        "`if rank == 0: barrier()` 成对出现时，不报告。\n"
        "- `get_model_state_dict` 一类函数只有对分片模型才与其他 rank 通信：文件中没有分片时置信度为 `possible`（可能）。\n"
        "- 提前 `raise` 不报告：任务本来就会结束。",
    ),
    bad="""\
import torch.distributed as dist

def log(loss, rank):
    if rank == 0:
        dist.all_reduce(loss)
        print(loss.item())
""",
    good="""\
import torch.distributed as dist

def log(loss, rank):
    dist.all_reduce(loss)
    if rank == 0:
        print(loss.item())
""",
    words=(*NAMES, *RANK_WORDS),
)
_OWN_STATE = ("save_state", "load_state")
# plain data parallelism saves on one rank; only sharded states need them all
_SHARDING = pattern(r"deepspeed|fsdp", re.I)
_GROUP_RANK = pattern(
    r"(?:^|[^a-z])(?:dp|tp|pp|ep|cp|sp|mp|data_parallel|tensor\w*|pipeline\w*|expert\w*|model_parallel)"
    r"_\w*rank|group_rank|get_\w*parallel_rank",
    re.I,
)
_HARMLESS = pattern(
    r"log|print|warn|\.(?:append|join|format|update|mkdir|exists|info|debug|items|get)$", re.I
)
_THROUGH = Text(
    en="`{call}` runs {name} (line {line}), but only on ranks where `{test}`",
    zh="`{call}` 内部会执行 {name}（第 {line} 行），却只在满足 `{test}` 的 rank 上调用",
)


@RULE.on_call(*NAMES)
def direct(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    what = collective(scene, call)
    if what is None or not what.world:
        return
    branch = scene.rank_branch(call)
    if branch is None or _raises(branch) or _matched(scene, call, what.name, branch):
        return
    if _expected(scene, call):
        return
    sure = (
        _needs_all(scene, what.name)
        and _is_plain(scene, branch.test)
        and not _unknown_beside(scene, call, branch)
    )
    sure = sure and not _asks_more(scene, branch)
    yield RULE.at(
        call,
        call=scene.brief(call),
        name=what.name,
        test=_holds(scene, branch),
        severity=MEDIUM if what.name in _OWN_STATE else None,
        confidence=LIKELY if sure else POSSIBLE,
    )


def _needs_all(scene: Scene, name: str) -> bool:
    """Whether a collective waits in plain data parallelism too; saving a state waits for the others
    only when it is sharded."""
    if name not in (*STATE, *_OWN_STATE):
        return True
    named = name in _OWN_STATE and _SHARDING.search(scene.source.text) is not None
    return named or bool(wraps(scene, FSDP | FULLY_SHARD))


def _is_plain(scene: Scene, test: ast.expr) -> bool:
    """Whether a test is about the rank in the whole job and nothing else can let others in."""
    if _GROUP_RANK.search(scene.text(test)):
        return False
    return not any(
        isinstance(part, ast.BoolOp)
        and isinstance(part.op, ast.Or)
        and not all(is_rank_test(scene, item) for item in part.values)
        for part in scene.inside(test)
    )


def _asks_more(scene: Scene, branch: RankBranch) -> bool:
    """Whether an early return (or the other arm) depends on a second condition: the ranks that are
    left out may be kept in by it."""
    passed_by = branch.early or branch.arm == "orelse"
    return passed_by and isinstance(branch.test, ast.BoolOp) and isinstance(branch.test.op, ast.And)


def _unknown_beside(scene: Scene, call: ast.Call, branch: RankBranch) -> bool:
    """Whether the other ranks run something that cannot be read: it may hold the counterpart."""
    node = branch.node
    if not isinstance(node, ast.If):
        return False
    block = node.body if branch.early else _other_arms(scene, node, call)
    return any(
        callee(scene, item) is None
        and not is_outside(scene, item)
        and not _HARMLESS.search(scene.dotted(item.func) or "logger")
        for item in _project_calls(scene, block)
    )


def _expected(scene: Scene, call: ast.Call) -> bool:
    """Whether a test waits for the error that this gives."""
    return any(
        isinstance(up, ast.With)
        and any("aises" in scene.text(item.context_expr) for item in up.items)
        for up in scene.ancestors(call)
    )


def _raises(branch: RankBranch) -> bool:
    body = getattr(branch.node, "body", None)
    return branch.early and isinstance(body, list) and isinstance(body[-1], ast.Raise)


def _holds(scene: Scene, branch: RankBranch) -> str:
    """The condition under which the place is reached."""
    text = scene.brief(branch.test)
    return f"not ({text})" if branch.early or branch.arm == "orelse" else text


def _matched(scene: Scene, call: ast.Call, name: str, branch: RankBranch) -> bool:
    """Whether the ranks on the other side run the same collective."""
    node = branch.node
    if isinstance(node, ast.If):
        other = node.body if branch.early else _other_arms(scene, node, call)
        if name in _all_names(scene, other):
            return True
        arm = node.body if branch.arm == "body" else node.orelse
        if arm and isinstance(arm[-1], (ast.Return, ast.Continue)) and not branch.early:
            block = scene.block_of(node)
            if name in _names(scene, block[block.index(node) + 1 :]):
                return True
    home = scene.class_of(call) if _is_context(scene, call) else scene.function(call)
    for same in scene.calls.get(scene.last_name(call.func), ()):
        around = scene.class_of(same) if _is_context(scene, same) else scene.function(same)
        if same is call or not (around is home or (around and scene.within(call, around))):
            continue
        second = scene.rank_branch(same)
        if second is not None and (second.node is not node or second.arm != branch.arm):
            return True
    return False


def _other_arms(scene: Scene, node: ast.If, call: ast.AST) -> list[ast.stmt]:
    """What the arms of a whole if/elif/else hold, but for the arm with the call."""
    top: ast.If = node
    while isinstance(up := scene.parent(top), ast.If) and up.orelse == [top]:
        top = up
    found: list[ast.stmt] = []
    arms: list[list[ast.stmt]] = []
    while True:
        arms.append(top.body)
        if len(top.orelse) == 1 and isinstance(top.orelse[0], ast.If):
            top = top.orelse[0]
            continue
        arms.append(top.orelse)
        break
    for arm in arms:
        if not any(scene.within(call, item) for item in arm):
            found += arm
    return found


def _is_context(scene: Scene, call: ast.Call) -> bool:
    return getattr(scene.function(call), "name", "") in ("__enter__", "__exit__")


def _names(scene: Scene, block: list[ast.stmt]) -> set[str]:
    return {what.name for _, what in collectives_in(scene, block)}


@RULE.on(ast.If)
def through_function(node: ast.If, scene: Scene) -> Iterator[Hit]:
    """Functions of the project that run a collective, called in one arm only."""
    if not asks_rank(scene, node.test):
        return
    arms: list[tuple[list[ast.stmt], list[ast.stmt], bool]] = [
        (node.body, node.orelse, False),
        (node.orelse, node.body, True),
    ]
    if isinstance(node.body[-1], ast.Return) and not node.orelse:
        block = scene.block_of(node)
        rest = block[block.index(node) + 1 :]
        arms = [(node.body, rest, False), (rest, node.body, True)]
    known: bool | None = None
    for block, other, negated in arms:
        for call in _project_calls(scene, block):
            found = reached(scene, call)
            if found is None:
                continue
            inner, name = found.call, found.name
            if known is None:
                known = is_rank_test(scene, node.test)
            if not known:
                return
            branch = scene.rank_branch(call)
            if branch is None or branch.node is not node:
                continue
            beside = other if branch.early else _other_arms(scene, node, call)
            if name in _all_names(scene, beside) or _paired(scene, call, node):
                continue
            test = scene.brief(node.test)
            plain = _is_plain(scene, node.test) and not _unknown_beside(scene, call, branch)
            plain = plain and not _elsewhere(scene, node, name) and not _asks_more(scene, branch)
            plain = plain and _needs_all(scene, name)
            yield RULE.at(
                call,
                severity=MEDIUM if name in _OWN_STATE else None,
                confidence=LIKELY if plain else POSSIBLE,
                say=_THROUGH,
                call=scene.brief(call, 40),
                name=name,
                line=str(inner.lineno),
                test=f"not ({test})" if negated else test,
            )


def _elsewhere(scene: Scene, node: ast.If, name: str) -> bool:
    """Whether the function runs the same collective under a condition in another place."""
    home = scene.function(node)
    return home is not None and any(
        what.name == name and not scene.within(call, node) and conditions(scene, call)
        for call, what in collectives_of(scene, home)
    )


def _project_calls(scene: Scene, block: list[ast.stmt]) -> Iterator[ast.Call]:
    for statement in block:
        for call in own_calls(statement):
            if collective(scene, call) is None:
                yield call


def _all_names(scene: Scene, block: list[ast.stmt]) -> set[str]:
    """The collectives of a block, those of the functions it calls included."""
    names = _names(scene, block)
    for call in _project_calls(scene, block):
        found = callee(scene, call)
        if found is not None:
            names |= {what.name for _, what in collectives_of(*found)}
            deeper = reached(scene, call)
            names |= {deeper.name} if deeper is not None else set()
    return names


def _paired(scene: Scene, call: ast.Call, node: ast.If) -> bool:
    """Whether the same function is called under another rank test of this function."""
    for same in scene.calls.get(scene.last_name(call.func), ()):
        if same is not call and scene.function(same) is scene.function(call):
            branch = scene.rank_branch(same)
            if branch is not None and branch.node is not node:
                return True
    return False
