"""A rank that swallows an error before a collective leaves the others waiting."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.summary import calls_below
from torchstone.lint.knowledge.collectives import NAMES, collective, collectives_in, reached
from torchstone.lint.knowledge.flow import before
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import FUNCTIONS, Scene
from torchstone.sources.targets import is_outside

RULE = Rule(
    "TS402",
    "collective-in-swallowing-try",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` is skipped when `{risky}` fails on one rank, and `except {caught}` goes on",
        zh="若某个 rank 上 `{risky}` 失败，`{call}` 会被跳过，而 `except {caught}` 继续执行",
    ),
    why=Text(
        en="an error on one rank jumps over {name} there while the other ranks wait in it: the job "
        "hangs far from the error, or the ranks pair up wrong collectives",
        zh="某个 rank 出错会跳过 {name}，其他 rank 却在里面等待：任务挂在远离出错点的地方，或各 rank 的集合通信错位",
    ),
    suggest=Text(
        en="take {name} out of the try block, or re-raise; to go on, let all ranks agree first "
        "(all_reduce a failure flag)",
        zh="把 {name} 移出 try，或重新抛出异常；若要继续，先让所有 rank 达成一致（all_reduce 一个失败标志）",
    ),
    title=Text(
        en="A collective in a try block is skipped on a rank that fails and goes on, and the "
        "others hang",
        zh="集合通信位于 try 中：某个 rank 出错后跳过它继续执行，其余 rank 会卡住",
    ),
    page=Text(
        en="Fires when a collective stands in a `try` body after other calls that can fail, and a "
        "broad handler (bare, `Exception`, `RuntimeError`, out of memory) neither raises nor ends "
        "the process.\n\n"
        "- Quiet for narrow handlers, for a handler that runs the same collective, and when the "
        "collective comes first in the block.",
        zh="当集合通信位于 `try` 体内、前面还有可能失败的调用，而宽泛的异常处理（裸 except、`Exception`、"
        "`RuntimeError`、显存不足）既不抛出也不结束进程时报告。\n\n"
        "- 不报告：异常类型很窄；处理代码执行了相同的集合通信；集合通信是块内第一个调用。",
    ),
    bad="""\
import torch.distributed as dist

def step(model, x):
    try:
        loss = model(x)
        dist.all_reduce(loss)
    except RuntimeError as error:
        print(error)
        return None
    return loss
""",
    good="""\
@@ -9 +9 @@
-        return None
+        raise
""",
)
_BROAD = ("Exception", "BaseException", "RuntimeError", "OutOfMemoryError", "Error")
_TAME = ("print", "info", "debug", "warning", "len", "str", "int", "float", "getattr", "get",
         "range", "isinstance", "to", "size", "item", "append")  # fmt: skip
_ENDS = ("exit", "_exit", "abort", "fail", "kill")


@RULE.on(ast.Try)
def check_callee(block: ast.Try, scene: Scene) -> Iterator[Hit]:
    """A function of the project that runs a collective, called in a try block"""
    if not any(_caught(scene, handler) for handler in block.handlers):
        return
    for call in calls_below(ast.Module(block.body, [])):
        if collective(scene, call) is None and not is_outside(scene, call):
            found = reached(scene, call)
            if found is not None:
                yield from _swallowed(call, scene, found.name)
                return


@RULE.on_call(*NAMES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    what = collective(scene, call)
    if what is not None:
        yield from _swallowed(call, scene, what.name)


def _swallowed(call: ast.Call, scene: Scene, name: str) -> Iterator[Hit]:
    block: ast.Try | None = None
    child: ast.AST = call
    for up in scene.ancestors(call):
        if isinstance(up, ast.Try) and child in up.body:
            block = up
            break
        if isinstance(up, (*FUNCTIONS, ast.Lambda)):
            return
        child = up
    if block is None:
        return
    if _starts(scene, block):
        return
    risky = _risky(scene, block, call)
    if risky is None:
        return
    for handler in block.handlers:
        caught = _caught(scene, handler)
        if not caught or _ends(scene, handler):
            continue
        if any(other.name == name for _, other in collectives_in(scene, handler.body)):
            continue
        yield RULE.at(
            call, call=scene.brief(call), name=name, caught=caught, risky=scene.brief(risky, 32)
        )
        return


def _starts(scene: Scene, block: ast.Try) -> bool:
    """Whether the `try` sets up the ranks and falls back to one process when there are none."""
    return any(scene.within(item, block) for item in scene.calls.get("init_process_group", ()))


def _risky(scene: Scene, block: ast.Try, call: ast.Call) -> ast.Call | None:
    """A call in the block that runs before the collective and can fail on one rank alone."""
    arguments = {id(node) for node in scene.inside(call)}
    for statement in block.body:
        for node in scene.inside(statement):
            if not isinstance(node, ast.Call) or id(node) in arguments or not before(node, call):
                continue
            full = scene.qualified(node.func)
            if full.startswith(("torch.", "time.", "logging.", "os.environ")):
                continue
            if scene.last_name(node.func) in _TAME:
                continue
            return node
    return None


def _caught(scene: Scene, handler: ast.ExceptHandler) -> str:
    """The broad exception that a handler takes; "" for narrow ones."""
    if handler.type is None:
        return "(all)"
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return next((n for n in map(scene.last_name, kinds) if n in _BROAD), "")


def _ends(scene: Scene, handler: ast.ExceptHandler) -> bool:
    return any(
        isinstance(node, ast.Raise)
        or (isinstance(node, ast.Call) and scene.last_name(node.func) in _ENDS)
        for statement in handler.body
        for node in scene.inside(statement)
    )
