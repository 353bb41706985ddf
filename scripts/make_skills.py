"""The page `unsafe_ops` of the skills, from the tables that the rules use."""

from __future__ import annotations

from pathlib import Path

from torchstone.lint.catalog import all_rules
from torchstone.lint.knowledge.autocast_ops import BANNED, FP32, LOWER, TORCH, WIDEST

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "src" / "torchstone" / "skills" / "unsafe_ops"


def pages() -> dict[Path, str]:
    """Both languages."""
    return {FOLDER / "SKILL.md": page("en"), FOLDER / "SKILL.zh.md": page("zh")}


def page(lang: str) -> str:
    zh = lang == "zh"
    version = ".".join(map(str, TORCH))
    head = (
        "PyTorch 中在半精度或 autocast 下不安全的算子列表，以及 autocast 对每个算子的处理。编写或审查混合精度代码时使用。"
        if zh
        else "Operators of PyTorch that are unsafe in half precision or under autocast, and what autocast does to each. "
        "Use when writing or reviewing mixed-precision code."
    )
    intro = (
        f"取自 torch {version} 的 autocast 列表，与 `torchstone check` 的规则使用同一份表。`case_autocast_lists.py` 展示其行为。"
        if zh
        else f"From the autocast lists of torch {version}, the same tables that the rules of `torchstone check` use. "
        "`case_autocast_lists.py` shows what they do."
    )
    out = ["---", "name: unsafe-ops", f"description: {head}", "---", "",
           f"# {'不安全的算子' if zh else 'Unsafe operators'}", "", intro, ""]  # fmt: skip
    out += _rules(zh)
    titles = (
        (BANNED, "Raise an error under autocast", "在 autocast 下报错"),
        (FP32, "Cast up to fp32 by autocast: unsafe in half precision outside of it",
         "autocast 会转为 fp32：在其之外用半精度不安全"),
        (WIDEST, "Run in the widest type of their inputs", "以输入中最宽的类型运行"),
        (LOWER, "Run in half precision by autocast", "autocast 以半精度运行"),
    )  # fmt: skip
    for table, english, chinese in titles:
        out += [f"## {chinese if zh else english}", ""]
        for device, names in table.items():
            shown = ", ".join(f"`{name}`" for name in sorted(names)) or ("无" if zh else "none")
            out += [f"**{device}**{'：' if zh else ': '}{shown}", ""]
    return "\n".join(out).rstrip() + "\n"


def _rules(zh: bool) -> list[str]:
    """The rules of the group, with what each finds."""
    head = ("规则", "名称", "级别", "说明") if zh else ("rule", "name", "severity", "finds")
    out = [f"## {'会检查的规则' if zh else 'Rules that find them'}", "", "| " + " | ".join(head) + " |",
           "|---|---|---|---|"]  # fmt: skip
    for rule in all_rules():
        if rule.group == "precision":
            text = rule.info().summary.get("zh" if zh else "en").replace("|", "\\|")
            out.append(f"| {rule.code} | {rule.name} | {rule.severity} | {text} |")
    return [*out, ""]
