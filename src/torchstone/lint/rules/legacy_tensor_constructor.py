"""torch.Tensor is a type; torch.tensor makes tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import torch_name
from torchstone.lint.rule import CERTAIN, LIKELY, LOW, MEDIUM, Hit, Rule, safe, unsafe
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS117",
    "legacy-tensor-constructor",
    severity=LOW,
    confidence=CERTAIN,
    say=Text(en="`{call}` turns whole numbers into float32", zh="`{call}` 会把整数变成 float32"),
    why=Text(
        en="torch.Tensor is float32 whatever it is given; as labels or indices these values raise, "
        "and above 2^24 they are not exact",
        zh="torch.Tensor 无论传入什么都是 float32；这些值作为标签或索引会报错，超过 2^24 也不再精确",
    ),
    suggest=Text(
        en="use torch.tensor(…), which keeps int64, or write the numbers with a decimal point",
        zh="改用 torch.tensor(…)（保持 int64），或把数字写成小数",
    ),
    title=Text(
        en="Whole numbers given to torch.Tensor(…) become float32",
        zh="传给 torch.Tensor(…) 的整数会变成 float32",
    ),
    page=Text(
        en="""\
`torch.Tensor` is the class of all tensors and, as a constructor, an alias of `FloatTensor`:
`torch.Tensor([1, 2])` is float32, `torch.Tensor(5)` is not a 5 but five numbers of uninitialised
memory. `torch.tensor` infers the type, `torch.empty` says that memory is uninitialised.

Reported for a literal list of whole numbers or booleans (LOW), and for a single whole number (MEDIUM)
whose memory nothing fills. The old way to make parameters, `nn.Parameter(torch.Tensor(n, m))` with
an initialisation after it, is left alone, and so are lists whose content is not written down, and
tests.

The fix writes `torch.tensor([1, …], dtype=torch.float32)`, which keeps the values and the type.""",
        zh="""\
`torch.Tensor` 是所有张量的类，作为构造函数它等同于 `FloatTensor`：`torch.Tensor([1, 2])` 是 float32，
`torch.Tensor(5)` 不是数值 5，而是五个未初始化的数。`torch.tensor` 会推断类型，`torch.empty` 则表明内存未初始化。

对整数或布尔字面量列表报告（LOW），对单个整数且其内存未被填充时报告（MEDIUM）。旧式的参数写法
`nn.Parameter(torch.Tensor(n, m))`（随后初始化）不报告，内容未写明的列表以及测试中也不报告。

修复写成 `torch.tensor([1, …], dtype=torch.float32)`，数值与类型都不变。""",
    ),
    bad="""\
import torch

labels = torch.Tensor([0, 1, 1])
""",
    fixed="""\
@@ -3 +3 @@
-labels = torch.Tensor([0, 1, 1])
+labels = torch.tensor([0, 1, 1], dtype=torch.float32)
""",
    good="""\
import torch

labels = torch.tensor([0, 1, 1])
""",
)


@RULE.on_call("Tensor")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.Tensor([1, 2])` and `torch.Tensor(5)`."""
    if scene.qualified(call.func) != "torch.Tensor" or len(call.args) != 1 or call.keywords:
        return
    if scene.is_test:
        return
    torch, given = torch_name(scene), call.args[0]
    if isinstance(given, (ast.List, ast.Tuple)):
        if not _all_whole(given) or _is_flag(given):
            return
        new = f"{torch}.tensor({scene.text(given)}, dtype={torch}.float32)"
        fix = safe(scene.replace(call, new)) if torch else None
        yield RULE.at(call, fix=fix, call=scene.brief(call))
    elif (
        isinstance(given, ast.Constant)
        and type(given.value) is int
        and given.value > 0  # `torch.Tensor(0)` is a plain way to write an empty tensor
        and not _is_filled(call, scene)
    ):
        fix = unsafe(scene.replace(call, f"{torch}.tensor({given.value})")) if torch else None
        yield RULE.at(
            call,
            severity=MEDIUM,
            confidence=LIKELY,
            say=_UNINITIALISED,
            why=_GARBAGE,
            suggest=_MEANT,
            fix=fix,
            call=scene.brief(call),
            size=str(given.value),
        )


_UNINITIALISED = Text(
    en="`{call}` is {size} uninitialised numbers, not the number {size}",
    zh="`{call}` 是 {size} 个未初始化的数，而不是数值 {size}",
)
_GARBAGE = Text(
    en="a whole number is taken as the size: the values are whatever the memory held",
    zh="整数被当作大小：其值是内存中残留的任意内容",
)
_MEANT = Text(
    en="use torch.tensor({size}) for the number, torch.zeros({size}) for {size} numbers",
    zh="要数值用 torch.tensor({size})，要 {size} 个数用 torch.zeros({size})",
)


def _all_whole(node: ast.expr) -> bool:
    stack, found = [node], False
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.List, ast.Tuple)):
            stack.extend(item.elts)
        elif isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub):
            stack.append(item.operand)
        elif isinstance(item, ast.Constant) and isinstance(item.value, int):
            found = True
        else:
            return False
    return found


def _is_flag(node: ast.List | ast.Tuple) -> bool:
    """`torch.Tensor([True])`: a flag kept in a float buffer on purpose."""
    return all(isinstance(item, ast.Constant) and item.value is True for item in node.elts)


def _is_filled(call: ast.Call, scene: Scene) -> bool:
    """Whether the memory is a parameter's, or something writes to it afterwards."""
    up = scene.parent(call)
    if isinstance(up, (ast.Call, ast.Attribute)):
        return True
    if not isinstance(up, ast.Assign):
        return False
    names = {scene.dotted(target) for target in up.targets}
    for item in scene.all(ast.Call):
        written = [scene.receiver(item)] if scene.last_name(item.func).endswith("_") else []
        written += item.args if "init" in scene.dotted(item.func) else []
        if any(scene.dotted(part) in names for part in written if part is not None):
            return True
    return any(
        scene.dotted(target.value) in names
        for target in scene.all(ast.Subscript)
        if isinstance(target.ctx, ast.Store)
    )
