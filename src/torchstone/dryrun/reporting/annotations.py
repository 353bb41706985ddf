"""Annotations that do not hold, and annotations that were written from what was seen."""

from __future__ import annotations

from torchstone.core.evidence import Diff
from torchstone.core.finding import Confidence, Finding
from torchstone.core.measure import Measure
from torchstone.core.pictures import Evidence, Table
from torchstone.core.text import Message, Text, words
from torchstone.dryrun import rules
from torchstone.dryrun.record import Hazard, Stop
from torchstone.dryrun.reporting.findings import TOOL, make_finding, snippet_at
from torchstone.dryrun.shapes.words import shape_text

_TYPE_CHECKERS = ("TypeCheckError", "BeartypeCallHintParamViolation", "BeartypeCallHintReturnViolation")  # fmt: skip
"""What jaxtyping, typeguard and beartype raise in a project that calls them itself."""


def annotation_finding(item: Hazard) -> Finding:
    """A tensor that is not as its annotation says, at the line that made the call or returned."""
    (held,) = item.operands
    places = (item.place, item.declared)
    found: list[Evidence] = [shown for place in places if (shown := snippet_at(place))]
    made = held.history[0] if held.history else None
    rows = (
        (Text("annotation", "注解"), item.detail),
        (Text("shape and dtype", "形状与数值格式"), f"{shape_text(held.shape)} {held.dtype}"),
        (Text("axes that were known", "已确定的轴"), item.axes or "–"),
        (Text("made by", "来源"), f"{made.op} {made.place}" if made else "–"),
        (Text("calls", "次数"), str(item.count)),
    )
    heads = (Text("what", "内容"), Text("value", "值"))
    found.append(Table(Text(f"{held.name} in {item.op}", f"{item.op} 的 {held.name}"), heads, rows))
    return make_finding(
        rules.ANNOTATION,
        Text("{name} of {function} is {shape} {dtype}, annotated {wanted}{axes}",
             "{function} 的 {name} 为 {shape} {dtype}，注解为 {wanted}{axes_zh}"),
        {"name": held.name, "function": item.op, "shape": shape_text(held.shape),
         "dtype": held.dtype, "wanted": words(item.detail, "en"),
         "axes": f" with {item.axes}" if item.axes else "",
         "axes_zh": f"（{item.axes}）" if item.axes else ""},
        rules.ANNOTATION.why,
        Message("annotation-fix", Text("correct the annotation, or the line that made the tensor",
                                       "修正注解，或修正产生该张量的那一行")),
        item.place,
        tuple(found),
        module=item.module,
        op=item.op,
    )  # fmt: skip


def refused_by_type_checker(stop: Stop) -> Finding | None:
    """The project's own type checker ended the program."""
    if stop.exception not in _TYPE_CHECKERS:
        return None
    lines = [line.strip() for line in stop.message.splitlines() if line.strip(" -")]
    found: list[Evidence] = [shown for place in (stop.place,) if (shown := snippet_at(place))]
    heads = (Text("the type checker's message", "类型检查器的信息"),)
    found.append(Table(heads[0], heads, tuple((line,) for line in lines[:12])))
    said = "; ".join(line for line in lines[:4])
    return make_finding(
        rules.ANNOTATION,
        Text("{said}", "{said}"),
        {"said": said},
        rules.ANNOTATION.why,
        Message("annotation-fix", Text("correct the annotation, or the line that made the tensor",
                                       "修正注解，或修正产生该张量的那一行")),
        stop.place,
        tuple(found),
        module=stop.module,
        confidence=Confidence.CERTAIN,
    )  # fmt: skip


def annotation_measure(diff: str, functions: int, written: bool) -> Measure:
    """The annotations as a diff; `written` when the files were changed."""
    how = Text("shown as a diff; --write writes them", "以 diff 显示；--write 才会写入")
    if written:
        how = Text("written into the files", "已写入文件")
    if not functions:
        how = Text("no function of the project that lacks them was called with tensors",
                   "没有缺少注解且以张量调用过的项目函数")  # fmt: skip
    evidence: tuple[Evidence, ...] = (Diff(diff),) if diff else ()
    return Measure("annotated_functions", functions, "", how,
                   Text("annotated functions", "添加注解的函数"), evidence=evidence, tool=TOOL)  # fmt: skip
