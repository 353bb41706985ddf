"""The static report as files: JSON, Markdown, and a table in fvcore's layout."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchstone.core.files import write_atomically
from torchstone.core.text import Text
from torchstone.cost.counting.engine import run
from torchstone.cost.ocr.analysis.folding import full_analysis
from torchstone.cost.ocr.analysis.table import module_table, stage_table

_TOP = 3
_TIERS = (
    ("flops_extracted", Text("Extracted FLOPs", "Extracted FLOPs（取自整体）")),
    ("flops_isolated", Text("Isolated FLOPs", "Isolated FLOPs（单独计数）")),
    ("flops_analytic", Text("Analytical FLOPs", "Analytical FLOPs（解析公式）")),
)
_WORDS = {
    "title": Text("Static Compute Report", "静态计算报告"),
    "configuration": Text("Configuration", "配置"),
    "total": Text("Total Model", "整个模型"),
    "stages": Text("Per-Stage Breakdown", "各阶段明细"),
    "notes": Text("Notes", "说明"),
    "details": Text("Per-Stage Details", "各阶段详情"),
    "stage": Text("Stage", "阶段"),
    "params": Text("Params", "参数"),
    "flops": Text("FLOPs", "FLOPs"),
    "activations": Text("Activations", "激活元素"),
    "source": Text("Source", "来源"),
    "vector": Text("Other arithmetic", "其他运算"),
    "bytes": Text("Bytes moved", "访存字节"),
    "peak": Text("Peak memory", "峰值内存"),
    "token": Text("FLOPs for each generated token", "每生成一个 token 的 FLOPs"),
    "operators": Text("Top operators", "主要算子"),
    "fvcore-failed": Text(
        "fvcore could not make its table ({error}); this is torchstone's own count",
        "fvcore 无法生成表格（{error}）；以下为 torchstone 自己的计数",
    ),
    "fvcore": Text(
        "Made by fvcore: its #flops are multiply-adds (1 x MAC), and operators that it does not "
        "know, fused attention among them, count as nothing",
        "由 fvcore 生成：其 #flops 为乘加次数（1 x MAC），它不认识的算子（包括融合注意力）计为零",
    ),
    "own": Text(
        "#flops are 2 x MAC of matrix products, attention (full) and convolutions; fvcore itself "
        "prints 1 x MAC",
        "#flops 为矩阵乘、注意力（完整）和卷积的 2 x MAC；fvcore 自身输出的是 1 x MAC",
    ),
}


def write_static_compute_json(report: Mapping[str, Any], path: Path | str) -> None:
    """The report as JSON."""
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(Path(path), text + "\n")


def write_static_compute_markdown(report: Mapping[str, Any], path: Path | str) -> None:
    """The report as Markdown, in the language that the analyzer spoke."""
    write_atomically(Path(path), static_compute_markdown(report))


def write_static_compute_fvcore_table(
    analysis: Any, path: Path | str, max_depth: int = 3, lang: str = "en"
) -> None:
    """A table of modules in the layout of fvcore's `flop_count_table`, as Markdown.

    `analysis` is fvcore's own `FlopCountAnalysis`, the result of `analyze_full_model`, or a static
    report. Where fvcore is missing or fails, the table is torchstone's own in the same layout; the
    page says which convention its figures follow.
    """
    write_atomically(Path(path), fvcore_table(analysis, max_depth, lang))


def static_compute_markdown(report: Mapping[str, Any]) -> str:
    """The text of the Markdown report."""
    lang = report["metadata"].get("lang", "en")

    def say(name: str) -> str:
        return _WORDS[name].get(lang)

    lines = [f"# {say('title')}", "", f"## {say('configuration')}", ""]
    lines += [f"- **{key}**: {_value(value)}" for key, value in report["metadata"].items()]
    lines += ["", f"## {say('total')}", "", *_total_lines(report["total"], say), ""]
    lines += [f"## {say('stages')}", ""]
    heads = [say("stage"), f"{say('params')} (M)", f"{say('flops')} (G)"]
    heads += [f"{say('activations')} (M)", say("source")]
    lines += [_row(heads), "|---|---:|---:|---:|---|"]
    for name, stage in report["stages"].items():
        figures = [stage["params"] / 1e6, stage["flops"] / 1e9, stage["activations"] / 1e6]
        lines.append(_row([name, *(f"{value:,.3f}" for value in figures), tier_of(stage)]))
    lines += ["", f"## {say('notes')}", "", *(f"- {item}" for item in report["notes"])]
    lines += ["", f"## {say('details')}", ""]
    for name, stage in report["stages"].items():
        lines += [f"### {name}", "", *_stage_lines(stage, say, lang), ""]
    return "\n".join(lines).rstrip() + "\n"


def tier_of(stage: Mapping[str, Any]) -> str:
    """Which of the three figures a stage's `flops` is."""
    names = {"isolated": "flops_isolated", "extracted": "flops_extracted"}
    known = (name for name, key in names.items() if stage.get(key) is not None)
    return next(known, "analytical" if stage.get("flops_analytic") is not None else "-")


def fvcore_table(analysis: Any, max_depth: int, lang: str) -> str:
    """The text of the table, with the convention above it."""
    if isinstance(analysis, Mapping):
        own = module_table if "by_module" in analysis else stage_table
        return _page([_WORDS["own"].get(lang)], own(analysis, max_depth))
    try:
        statistics: Any = importlib.import_module("fvcore.nn")
        table = statistics.flop_count_table(analysis, max_depth=max_depth)
        return _page([_WORDS["fvcore"].get(lang)], table)
    except Exception as error:  # whatever tracing the user's model raises; the page names it
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        failed = _WORDS["fvcore-failed"].get(lang).replace("{error}", first)
        counted = _counted(analysis)
        return _page([failed, _WORDS["own"].get(lang)], module_table(counted, max_depth))


def _counted(analysis: Any) -> dict[str, Any]:
    """The same model and inputs, counted by the engine."""
    return full_analysis(run(analysis._model, analysis._inputs))


def _page(remarks: list[str], table: str) -> str:
    return "\n".join([*remarks, "", "```", table, "```", ""])


def _total_lines(total: Mapping[str, Any], say: Any) -> list[str]:
    lines = [
        f"- **{say('params')}**: {total['params'] / 1e6:,.3f} M",
        f"- **{say('flops')}**: {total['flops'] / 1e9:,.3f} G",
        f"- **{say('activations')}**: {total['activations'] / 1e6:,.3f} M",
    ]
    extra = (
        ("vector_flops", "vector", 1e9, "GFLOP"),
        ("bytes", "bytes", 1e9, "GB"),
        ("peak_memory_bytes", "peak", 2**30, "GiB"),
        ("decode_flops_per_token", "token", 1e9, "G"),
    )
    for key, word, unit, name in extra:
        if total.get(key) is not None:
            lines.append(f"- **{say(word)}**: {total[key] / unit:,.3f} {name}")
    return lines


def _stage_lines(stage: Mapping[str, Any], say: Any, lang: str) -> list[str]:
    lines = [f"- **{say('params')}**: {stage['params']:,}"]
    for key, name in _TIERS:
        value = stage.get(key)
        shown = "-" if value is None else f"{value / 1e9:,.6f} G"
        lines.append(f"- **{name.get(lang)}**: {shown}")
    top = sorted(stage["operators"].items(), key=lambda item: -item[1])[:_TOP]
    if top:
        lines += ["", f"**{say('operators')}**", ""]
        whole = sum(stage["operators"].values()) or 1.0
        lines += [
            f"{place}. `{name}`: {value / 1e9:,.3f} G ({value / whole:.1%})"
            for place, (name, value) in enumerate(top, 1)
        ]
    return lines + (["", *(f"- {item}" for item in stage["notes"])] if stage["notes"] else [])


def _value(value: Any) -> str:
    if isinstance(value, Mapping):  # the model: its name here, its dimensions in the JSON
        return _value(value.get("name"))
    if isinstance(value, str):
        return f"`{value}`".replace("\n", "\\n") if value else "-"
    if isinstance(value, list | tuple):
        return " x ".join(_value(item) for item in value)
    return "-" if value is None else str(value)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
