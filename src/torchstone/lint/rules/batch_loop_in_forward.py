"""A Python loop over the samples of a batch launches small kernels one after another."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.scene import Scene

_SIZES = frozenset(("batch_size", "bsz", "bs", "batch", "n_batch", "num_batch", "batchsize"))
_TIME = frozenset(
    ("t", "step", "time", "ts", "tt", "timestep", "pos", "layer", "k", "head", "level")
)
_SAMPLE = frozenset(
    ("b", "bi", "bid", "bidx", "b_idx", "batch_idx", "batch_index", "batch_id", "sample_idx")
)

RULE = Rule(
    "TS310",
    "batch-loop-in-forward",
    severity=MEDIUM,
    confidence=LIKELY,
    title=Text(
        en="The samples of a batch are handled one by one in Python in `forward`",
        zh="`forward` 用 Python 循环逐个处理批内样本",
    ),
    say=Text(
        en="`forward` handles the samples of `{batch}` one by one in Python",
        zh="`forward` 用 Python 循环逐个处理 `{batch}` 的样本",
    ),
    why=Text(
        en="every sample launches its own kernels: a batch of 64 pays 64 launches of some 5 µs per "
        "operation, and none of them fills the device",
        zh="每个样本各自发射核函数：批大小为 64 时，每个操作要付出 64 次约 5 µs 的发射开销，且都填不满设备",
    ),
    suggest=Text(
        en="work on the whole batch: broadcasting, `torch.bmm`, `gather`, masks or `torch.vmap`",
        zh="对整个批次计算：广播、`torch.bmm`、`gather`、掩码或 `torch.vmap`",
    ),
    page=Text(
        en="Fires in a module's `forward` on `for i in range(x.size(0))` (also `x.shape[0]`, "
        "`len(x)`, or a name such as `batch_size` taken from it) whose body indexes an argument of "
        "`forward` with `i` (or any tensor with an index called `b` or `batch_idx`) and computes with "
        "the sample.\n\n"
        "Quiet when one turn of the loop needs the result of the turn before (a recurrent cell "
        "that goes over time), when the index is called `t` or `step`, and when the loop only "
        "reads lengths or builds strings. Samples of different length may need the loop: nested "
        "tensors or padding with a mask are the alternatives.",
        zh="检查模块 `forward` 中的 `for i in range(x.size(0))`（也包括 `x.shape[0]`、`len(x)` 以及由此"
        "得到的 `batch_size` 等名字），且循环体用 `i` 索引 `forward` 的参数（或用名为 `b`、`batch_idx` 的索引访问任意"
        "张量）并对样本进行计算。\n\n"
        "若每次迭代依赖上一次的结果（沿时间展开的循环单元）、索引名为 `t` 或 `step`、或循环只读取长度或"
        "拼接字符串，则不报告。样本长度不一时可能确实需要循环，可考虑嵌套张量，或填充加掩码。",
    ),
    words=("forward",),
    bad="""\
import torch

class Attend(torch.nn.Module):
    def forward(self, query, key):
        scores = []
        for i in range(query.size(0)):
            scores.append(torch.matmul(query[i], key[i].t()))
        return torch.stack(scores)
""",
    good="""\
import torch

class Attend(torch.nn.Module):
    def forward(self, query, key):
        return torch.bmm(query, key.transpose(1, 2))
""",
)


@RULE.on(ast.For)
def check(loop: ast.For, scene: Scene) -> Iterator[Hit]:
    """`for i in range(x.size(0)):`"""
    if not isinstance(loop.target, ast.Name) or loop.target.id.lower() in _TIME:
        return
    batch = _batch(loop, scene)
    if not batch or scene.forward_of(loop) is None:
        return
    function = scene.function(loop)
    if function is None:
        return
    arguments = {
        a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    }
    if _works_on_samples(loop, scene, arguments - {"self"}) and not _carries(loop, scene):
        yield RULE.at(loop, batch=batch)


def _batch(loop: ast.For, scene: Scene) -> str:
    """`x` of `range(x.size(0))`, `range(x.shape[0])`, or of a batch size taken from it."""
    call = loop.iter
    if not (
        isinstance(call, ast.Call) and scene.last_name(call.func) == "range" and len(call.args) == 1
    ):
        return ""
    size: ast.expr | None = call.args[0]
    if isinstance(size, ast.Name):
        if size.id.lower() not in _SIZES:
            return ""
        value = scene.value(size)
        if value is None:
            return size.id if _unpacked_first(size, scene) else ""
        size = value
    return _sized(size, scene)


def _sized(size: ast.expr | None, scene: Scene) -> str:
    if isinstance(size, ast.Call) and scene.method(size) == "size" and len(size.args) == 1:
        return _name(scene.receiver(size), scene) if scene.literal(size.args[0]) == 0 else ""
    if (
        isinstance(size, ast.Subscript)
        and isinstance(size.value, ast.Attribute)
        and size.value.attr == "shape"
        and scene.literal(size.slice) == 0
    ):
        return _name(size.value.value, scene)
    return ""


def _name(node: ast.AST | None, scene: Scene) -> str:
    return scene.dotted(node)


def _unpacked_first(size: ast.Name, scene: Scene) -> bool:
    """`batch_size, length, width = x.shape`"""
    for row in scene.bindings(size):
        statement = row.statement
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
            value = statement.value
            shape = isinstance(value, ast.Attribute) and value.attr == "shape"
            shape = shape or (isinstance(value, ast.Call) and scene.method(value) == "size")
            return shape and statement.targets[0].elts[0] is row.node
    return False


def _works_on_samples(loop: ast.For, scene: Scene, arguments: set[str]) -> bool:
    """Whether the body computes with `argument[i]`, not only reads or collects it."""
    assert isinstance(loop.target, ast.Name)
    for node in scene.inside(loop):
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and (node.value.id in arguments or loop.target.id.lower() in _SAMPLE)
            and isinstance(node.ctx, ast.Load)
            and _first_index(node) == loop.target.id
            and _computed(node, scene)
        ):
            return True
    return False


def _first_index(node: ast.Subscript) -> str:
    index = node.slice
    if isinstance(index, ast.Tuple) and index.elts:
        index = index.elts[0]
    return index.id if isinstance(index, ast.Name) else ""


def _computed(node: ast.AST, scene: Scene) -> bool:
    """Whether a sample is an operand, or an argument of torch's or a module's call."""
    up = scene.parent(node)
    while isinstance(up, ast.Subscript) and up.value is node:
        node, up = up, scene.parent(up)
    if isinstance(up, ast.BinOp):
        return True
    if isinstance(up, ast.Attribute):
        return up.attr in (
            "mean",
            "sum",
            "max",
            "t",
            "matmul",
            "mm",
            "view",
            "unsqueeze",
            "mul",
            "T",
        )
    if isinstance(up, ast.Call) and node in up.args:
        full = scene.qualified(up.func)
        return full.startswith("torch.") or scene.dotted(up.func).startswith("self.")
    return False


def _carries(loop: ast.For, scene: Scene) -> bool:
    """Whether a turn reads a name that an earlier turn may have bound."""
    stored: dict[str, tuple[int, int]] = {}
    loads: dict[str, tuple[int, int]] = {}
    for statement in loop.body:
        for node in scene.inside(statement):
            if isinstance(node, ast.Name):
                table = stored if isinstance(node.ctx, ast.Store) else loads
                where = (statement.lineno, 1 if isinstance(node.ctx, ast.Store) else 0)
                table[node.id] = min(where, table.get(node.id, where))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                loads[node.target.id] = (0, 0)
    return any(name in loads and loads[name] < where for name, where in stored.items())
