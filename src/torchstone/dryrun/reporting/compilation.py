"""Graph breaks and recompilations, as findings."""

from __future__ import annotations

from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Table
from torchstone.core.text import Message, Text
from torchstone.dryrun import rules
from torchstone.dryrun.record import Compilation, CompileNote
from torchstone.dryrun.reporting.findings import TOOL, make_finding, snippet_at

_RULES = {
    "break": rules.GRAPH_BREAK,
    "fullgraph": rules.NO_FULL_GRAPH,
    "recompile": rules.RECOMPILED,
}

_BRANCH = "generic_jump"
"""The compiler's name for `if` and `while` on a tensor."""


def compile_findings(compilation: Compilation) -> list[Finding]:
    return [_finding(note) for note in compilation.notes]


def _finding(note: CompileNote) -> Finding:
    """One cut or one recompilation, with the compiler's own words beside it."""
    rule = _RULES[note.kind]
    found: list[Evidence] = [shown] if (shown := snippet_at(note.place)) else []
    heads = (Text("the compiler's reason", "编译器给出的原因"),)
    rows = tuple((line,) for line in (note.what, note.why, note.hint) if line)
    found.append(Table(heads[0], heads, rows))
    what = Text("torch.compile breaks the graph: {what}", "torch.compile 中断计算图：{what}")
    remedy = Message("compiler-hint", Text("{hint}", "{hint}"), {"hint": note.hint}) if note.hint else Message("none")  # fmt: skip
    if note.what.startswith(_BRANCH):
        what = Text("torch.compile breaks the graph: a branch on the value of a tensor",
                    "torch.compile 中断计算图：依张量取值的分支")  # fmt: skip
        remedy = Message("where", Text("torch.where(condition, a, b), or torch.cond for two blocks",
                                       "使用 torch.where(condition, a, b)，两段代码用 torch.cond"))  # fmt: skip
    if rule is rules.RECOMPILED:
        what = Text("{scope} is compiled again: {what}", "{scope} 被重新编译：{what}")
        remedy = Message("dynamic", Text(
            "sizes that change from call to call: torch._dynamo.mark_dynamic(tensor, axis), "
            "dynamic=True, or drop_last=True for the remainder batch; values: pass them as tensors",
            "逐次变化的大小：使用 torch._dynamo.mark_dynamic(tensor, axis)、dynamic=True，或以 drop_last=True "
            "丢弃余数批；逐次变化的数值：改为张量传入"))  # fmt: skip
    return make_finding(
        rule, what, {"what": note.what, "scope": note.place.scope}, rule.why, remedy, note.place,
        tuple(found),
    )  # fmt: skip


def compile_gaps(compilation: Compilation) -> list[Gap]:
    if not compilation.failed:
        return []
    text = Text("torch.compile was not followed to the end ({reason})", "torch.compile 未能分析到底（{reason}）")  # fmt: skip
    return [Gap("compile", Message("not-compiled", text, {"reason": compilation.failed}),
                "run the program with TORCH_LOGS=graph_breaks,recompiles", tool=TOOL)]  # fmt: skip


def compile_measures(compilation: Compilation) -> tuple[Measure, ...]:
    how = Text(
        f"of {compilation.calls} calls with different shapes or flags; tensors without values, backend eager",
        f"来自 {compilation.calls} 次形状或标志不同的调用；张量无数值，后端为 eager",
    )
    return (Measure("graphs", compilation.graphs, "", how, Text("compiled graphs", "编译出的图"), tool=TOOL),)  # fmt: skip
