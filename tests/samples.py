"""Small whole values that tests share."""

from __future__ import annotations

from typing import Any

from torchstone.core.evidence import Command, Diff, Number, Snippet
from torchstone.core.finding import Confidence, Finding, Location, Severity
from torchstone.core.fix import Edit, Fix, Safety
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import (
    Branch,
    DataGraph,
    DataVertex,
    Edge,
    Evidence,
    Graph,
    Heatmap,
    Link,
    Plot,
    Series,
    Table,
    TensorStats,
    TraceStep,
    Tree,
    Vertex,
)
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text


def finding(line: int = 3, mark: str = "abcdef0123456789", **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "rule": "TS101",
        "name": "manual-half-cast",
        "severity": Severity.HIGH,
        "confidence": Confidence.CERTAIN,
        "what": Message(
            "TS101.say", Text("`{call}` <b>cast</b>", "`{call}` <b>转换</b>"), {"call": "x.half()"}
        ),
        "why": Message("TS101.why", Text("it bypasses AMP", "绕过AMP保护")),
        "remedy": Message("TS101.suggest", Text("use autocast", "使用autocast")),
        "location": Location("model.py", line, 9, line, 17, scope="Net.forward"),
        "evidence": (Snippet("model.py", line, "    x = x.half()  # <script>", line, 8, 16),),
        "fingerprint": mark,
    }
    return Finding(**{**values, **changes})


def every_evidence() -> tuple[Evidence, ...]:
    """One of each kind."""
    series = Series(
        "loss", (0, 1, 2, 3), (3.0, float("inf"), 1.0, 2.0), "nats", "read back", marks=(1,)
    )
    return (
        Snippet("a.py", 1, "x = 1\ny = 2", 2, 0, 1),
        Number("wait", 41.0, "ms", "measured 5 times", 2.0),
        series,
        Table("ops", ("name", "count"), (("matmul", 3), ("add", None)), "counted"),
        TensorStats("w", (2, 3), "float16", {"min": -1.0, "max": 2.0}, "read"),
        Diff("@@ 1 @@\n-x = x.half()\n+x = x"),
        Command("pytest -q", 1, "1 failed"),
        TraceStep("run1", 2, "DO_CODER", "wrote a kernel"),
        Plot("curves", (series,), "step", "nats", log_y=True),
        Heatmap(
            "errors", ("layer 1", "层 2"), ("a", "b"), ((0.1, None), (1.0, 10.0)), "ulp", "compared"
        ),
        Tree("time", Branch("all", 10.0, (Branch("a", 6.0), Branch("b", 4.0))), "ms", "traced"),
        Graph("flow", (Vertex("a", "load"), Vertex("b", "resize")), (Edge("a", "b", "image"),)),
        DataGraph(
            "pipeline",
            (
                DataVertex("load", 0, 0.5, 8),
                DataVertex("resize", 1, 1.5, 4, ("cpu", "cuda:0"), "a.py:3"),
            ),
            (Link(0, 1),),
            ("before", "after"),
        ),
    )


def full_report() -> Report:
    """One of everything."""
    fix = Fix(
        (Edit("model.py", 3, 8, 3, 16, "x"),), Safety.SAFE, Message("fix", Text("drop it", "删除"))
    )
    gap = Gap(
        "bad.py",
        Message("source.syntax", Text("does not parse", "无法解析")),
        "python -m py_compile bad.py",
        Location("bad.py", 2),
        failed=True,
    )
    info = RuleInfo(
        "TS101",
        "manual-half-cast",
        "precision",
        Severity.HIGH,
        Text("a cast", "转换"),
        Text("why", "原因"),
        Text("do", "办法"),
        "https://example.org/",
    )
    return Report(
        "check",
        (finding(fix=fix), finding(9, "0123456789abcdef", severity=Severity.LOW)),
        (Measure("files", 2, "files", "counted", Text("files", "文件"), evidence=every_evidence()),),
        (gap,),
        {"python": "3.11"},
        {"TS101": info},
        "src",
    )  # fmt: skip
