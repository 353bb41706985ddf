"""`if step % n:` is true when the counter is no multiple of n."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import loop_around
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.training import backward_calls, step_calls

RULE = Rule(
    "TS238",
    "step-when-no-multiple",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{step}` runs whenever `{test}` is not 0, on all batches but every {count}th",
        zh="只要 `{test}` 不为 0，`{step}` 就会执行：除了每第 {count} 个批次之外的所有批次",
    ),
    why=Text(
        en="a remainder is true when the counter is no multiple: gradients are not added up as the name of "
        "the number says",
        zh="计数器不是倍数时余数才为真：梯度并没有按这个数字的含义累积",
    ),
    suggest=Text(en="test `{test} == 0`", zh="改为判断 `{test} == 0`"),
    title=Text(
        en="The optimizer steps when the counter is no multiple of the accumulation steps",
        zh="计数器不是累积步数的倍数时优化器才更新",
    ),
    page=Text(
        en="Fires for `if step % n:` without `else` around the only `optimizer.step()` of a loop that goes "
        "backward each time, when `n` is named after accumulating, or the gradients are cleared in the same "
        "branch.\n\n- `if step % n == 0:` is what gradient accumulation needs.\n"
        "- The fix adds `== 0`; unsafe, since it changes how often the weights move.",
        zh="当循环每次都反向传播，而其中唯一的 `optimizer.step()` 位于没有 `else` 的 `if step % n:` 之内，且 `n` 的名字与累积有关，"
        "或梯度在同一分支中清空时报告。\n\n- 梯度累积需要的是 `if step % n == 0:`。\n"
        "- 修复会补上 `== 0`；不安全，因为会改变权重更新的频率。",
    ),
    bad="""\
import torch

def train(model, loader, opt, accumulate):
    for i, x in enumerate(loader):
        model(x).backward()
        if i % accumulate:
            opt.step()
            opt.zero_grad()
""",
    fixed="""\
@@ -6 +6 @@
-        if i % accumulate:
+        if i % accumulate == 0:
""",
    good="""\
@@ -5,2 +5,2 @@
-        model(x).backward()
-        if i % accumulate:
+        (model(x) / accumulate).backward()
+        if (i + 1) % accumulate == 0:
""",
    words=("step",),
    needs=("backward", "step"),
)
_COUNT = pattern(r"accum|micro|update_freq|iter_size|grad_?acc|virtual_batch|batch_split", re.I)


@RULE.on(ast.If)
def check(node: ast.If, scene: Scene) -> Iterator[Hit]:
    remainder, bare = _remainder(scene, node.test)
    loop = loop_around(scene, node)
    if remainder is None or node.orelse or loop is None or scene.is_test:
        return
    steps = step_calls(scene).inside(scene, loop)
    if not steps or not all(scene.within(call, node) for call in steps):
        return
    if not any(
        scene.within(call, loop) and not scene.within(call, node) for call in backward_calls(scene)
    ):
        return
    named = _COUNT.search(scene.last_name(remainder.right)) is not None
    cleared = any(scene.within(call, node) for call in scene.calls.get("zero_grad", ()))
    if not named and not (bare and cleared):
        return
    yield RULE.at(
        node.test,
        step=scene.brief(steps[0]),
        test=scene.brief(remainder),
        count=scene.brief(remainder.right),
        fix=unsafe(scene.insert_after(remainder, " == 0")) if bare else None,
    )


def _remainder(scene: Scene, test: ast.expr) -> tuple[ast.BinOp | None, bool]:
    """The `a % b` of `if a % b:` (bare) or of `if a % b != 0:`."""
    bare = True
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.NotEq):
        if scene.literal(test.comparators[0]) != 0:
            return None, False
        test, bare = test.left, False
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod):
        return test, bare
    return None, False
