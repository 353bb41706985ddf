"""`make docs`: the pages that follow from the code: rules, options, the report's schema."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from importlib import import_module
from pathlib import Path

import torchstone
from torchstone.cli.command import Subcommand
from torchstone.cli.common import CommonOptions
from torchstone.cli.main import tool_options
from torchstone.core.options import options_of
from torchstone.core.registry import names_in
from torchstone.core.report import report_schema
from torchstone.lint.catalog import GROUPS, all_rules
from torchstone.lint.page import rule_page

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "src" / "torchstone" / "core" / "report-1.schema.json"


def pages() -> dict[Path, str]:
    """Every generated file and what it holds."""
    made: dict[Path, str] = {SCHEMA: schema_text()}
    for lang, home in (("en", ROOT / "docs"), ("zh", ROOT / "docs" / "zh")):
        for rule in all_rules():
            made[home / "rules" / f"{rule.name}.md"] = rule_page(rule, lang)
        made[home / "rules" / "index.md"] = rule_index(lang)
        made[home / "configuration.md"] = configuration(lang)
    made[ROOT / "docs" / "reference" / "commands.md"] = commands()
    made[ROOT / "docs" / "reference" / "api.md"] = api()
    made[ROOT / "docs" / "decisions" / "index.md"] = decisions()
    made.update(skill_pages())
    return made


def commands() -> str:
    """Every command with its own flags, then those that all share."""
    out = ["# Commands", "", "`torchstone help COMMAND` prints the same. Flags of all commands stand at the end.", ""]  # fmt: skip
    for name in names_in("torchstone.cli.commands"):
        module = import_module(f"torchstone.cli.commands.{name}")
        parts = dict(getattr(module, "SUBCOMMANDS", {}))
        if hasattr(module, "run"):
            itself = Subcommand(name, module.HELP, getattr(module, "OPTIONS", None), module.run)
            parts = {name: itself, **parts}
        for part in parts.values():
            out += [
                f"## torchstone {part.title}",
                "",
                f"{part.help.en[:1].upper()}{part.help.en[1:]}.",
                "",
            ]
            if hasattr(module, "FORMATS"):
                out += [f"Formats: {', '.join(f'`{item}`' for item in module.FORMATS)}.", ""]
            out += flag_table(part.options) if part.options else []
    return "\n".join([*out, "## Flags of all commands", "", *flag_table(CommonOptions)])


def flag_table(cls: type) -> list[str]:
    rows = ["| flag | default | meaning |", "|---|---|---|"]
    for item in options_of(cls):
        flag = item.about.metavar if item.about.positional else item.flag
        default = "" if item.default in ("", (), False, 0, 0.0) else f"`{item.default}`"
        choices = f" ({', '.join(item.about.choices)})" if item.about.choices else ""
        meaning = f"{item.about.help.en}{choices}".replace("|", "\\|")
        rows.append(f"| `{flag}` | {default} | {meaning} |")
    return [*rows, ""]


def api() -> str:
    """The public names, each with its own docstring."""
    out = ["# Python", "", "`from torchstone import …` loads a name when it is first used.", ""]
    for name in sorted(torchstone._HOMES):
        home, attribute = torchstone._HOMES[name]
        out += [f"::: {home}.{attribute}", ""]
    return "\n".join(out)


def decisions() -> str:
    """The list of decisions, in the order in which they were made."""
    out = ["# Decisions", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        title = path.read_text("utf-8").splitlines()[0].lstrip("# ")
        out.append(f"- [{title}]({path.name})")
    return "\n".join(out) + "\n"


def skill_pages() -> dict[Path, str]:
    """The skill that follows from the rules' tables; its maker lies beside this file."""
    spec = importlib.util.spec_from_file_location(
        "make_skills", ROOT / "scripts" / "make_skills.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[Path, str] = module.pages()
    return found


def schema_text() -> str:
    return json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"


def rule_index(lang: str) -> str:
    zh = lang == "zh"
    count = len(all_rules())
    out = [f"# {'规则' if zh else 'Rules'}", "", f"{count} {'条规则' if zh else 'rules'}.", ""]
    for group in GROUPS:
        members = [rule for rule in all_rules() if rule.group == group]
        if not members:
            continue
        head = (
            ("代码", "名称", "级别", "修复", "说明")
            if zh
            else ("code", "name", "severity", "fix", "what")
        )
        out += [f"## {group}", "", "| " + " | ".join(head) + " |", "|---|---|---|---|---|"]
        for rule in members:
            fix = ("有" if zh else "yes") if rule.fixable else ""
            text = rule.info().summary.get(lang).replace("|", "\\|")
            out.append(
                f"| {rule.code} | [{rule.name}]({rule.name}.md) | {rule.severity} | {fix} | {text} |"
            )
        out.append("")
    return "\n".join(out)


def configuration(lang: str) -> str:
    zh = lang == "zh"
    intro = (
        "设置写在 `pyproject.toml` 的 `[tool.torchstone]` 中；命令行参数优先。未知的键是错误，并会给出最接近的名称。"
        "`torchstone config` 显示当前值及其来源。"
        if zh
        else "Settings live in `pyproject.toml` under `[tool.torchstone]`; flags win over them. An unknown key is an "
        "error that names the nearest one. `torchstone config` shows what holds here and where it comes from."
    )
    out = [f"# {'配置' if zh else 'Configuration'}", "", intro, "", "```toml", "[tool.torchstone]", 'lang = "zh"', "",
           "[tool.torchstone.check]", 'select = ["precision", "TS3"]', 'exclude = ["third_party/"]',
           'fail-on = "medium"', "```", ""]  # fmt: skip
    head = ("键", "参数", "默认值", "含义") if zh else ("key", "flag", "default", "meaning")
    for title, cls in (
        ("[tool.torchstone]", CommonOptions),
        *((f"[tool.torchstone.{name}]", cls) for name, cls in tool_options().items()),
    ):
        out += [f"## `{title}`", "", "| " + " | ".join(head) + " |", "|---|---|---|---|"]
        for item in options_of(cls):
            key = f"`{item.key}`" if item.about.config else ""
            flag = item.about.metavar if item.about.positional else item.flag
            flag = f"`{flag}`" + (f" `{item.about.short}`" if item.about.short else "")
            default = json.dumps(item.default, ensure_ascii=False)
            choices = f" ({', '.join(item.about.choices)})" if item.about.choices else ""
            out.append(f"| {key} | {flag} | `{default}` | {item.about.help.get(lang)}{choices} |")
        out.append("")
    return "\n".join(out)


def main() -> int:
    made = pages()
    for lang_home in (ROOT / "docs" / "rules", ROOT / "docs" / "zh" / "rules"):
        shutil.rmtree(lang_home, ignore_errors=True)  # a page of a rule that is gone goes too
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    print(f"wrote {len(made)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
