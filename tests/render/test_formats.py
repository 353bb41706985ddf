"""Every output format: goldens at width 80 without colour, schemas, and what hostile text does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.samples import every_evidence, finding, full_report
from torchstone.core.answer import Answer, Fact, Tile
from torchstone.core.errors import UsageError
from torchstone.core.finding import Location
from torchstone.core.pictures import Evidence, Limit, Part, Plot, Series, Stack
from torchstone.core.report import Report
from torchstone.core.text import Message, Text
from torchstone.lint.engine import check_paths
from torchstone.render import draw, formats, render
from torchstone.render.agent import tokens
from torchstone.render.style import Style, cells, printable

ROOT = Path(__file__).parent.parent.parent
SARIF = json.loads(
    (Path(__file__).parent.parent / "data" / "sarif-schema-2.1.0.json").read_text("utf-8")
)


def many(count: int) -> Report:
    return Report("check", tuple(finding(i + 1, f"{i:016x}") for i in range(count)))


def test_formats_are_found_by_their_files() -> None:
    assert formats() == ["agent", "concise", "github", "html", "json", "markdown", "sarif", "text"]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", ["text", "concise", "markdown", "github", "agent"])
def test_golden(name: str, lang: str, golden: Callable[[str, str], None]) -> None:
    golden(f"render/{name}.{lang}.txt", render(full_report(), name, lang=lang, width=80, detail=2))


def test_quiet_text_is_the_bare_findings() -> None:
    assert render(Report("check", (finding(),)), "text", detail=0) == (
        "File: model.py\nLine 3: [HIGH] `x.half()` <b>cast</b>\n  -> it bypasses AMP\n"
        "  -> suggestion: use autocast\n"
    )


def test_colour_only_adds_escapes() -> None:
    import re

    plain, colour = (render(full_report(), "text", colour=on) for on in (False, True))
    assert "\x1b[" not in plain
    assert "\x1b[1;31m[HIGH]\x1b[0m" in colour
    assert re.sub(r"\x1b\[[\d;]*m", "", colour) == plain


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "report", [full_report(), Report("check"), many(3)], ids=["full", "empty", "many"]
)
def test_sarif_fits_the_official_schema(report: Report, lang: str) -> None:
    log = json.loads(render(report, "sarif", lang=lang))
    jsonschema.Draft4Validator(SARIF).validate(log)


def test_sarif_schema_test_can_fail() -> None:
    log = json.loads(render(full_report(), "sarif"))
    log["runs"][0]["results"][0]["level"] = "HIGH"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(SARIF).validate(log)


def test_sarif_has_fixes_fingerprints_and_failures() -> None:
    run = json.loads(render(full_report(), "sarif"))["runs"][0]
    result = run["results"][0]
    assert result["partialFingerprints"] == {"torchstone/v1": "abcdef0123456789"}
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["deletedRegion"] == {
        "startLine": 3, "startColumn": 9, "endLine": 3, "endColumn": 17,
    }  # fmt: skip
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "TS101"


def test_sarif_links_to_the_documentation_that_the_package_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def driver() -> dict[str, Any]:
        report = check_paths(ROOT / "examples" / "train_project" / "model.py", no_cache=True)
        found: dict[str, Any] = json.loads(render(report, "sarif", lang="zh"))
        return found["runs"][0]["tool"]["driver"]  # type: ignore[no-any-return]

    assert "informationUri" not in driver()  # no address is published yet
    folder = tmp_path / "torchstone-9.dist-info"
    folder.mkdir()
    head = "Metadata-Version: 2.4\nName: torchstone\nVersion: 9\n"
    (folder / "METADATA").write_text(f"{head}Project-URL: Documentation, https://docs.example/\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = driver()
    assert made["informationUri"] == "https://docs.example"
    for rule in made["rules"]:
        address = rule["helpUri"].removeprefix("https://docs.example/")
        assert (ROOT / "docs" / address).with_suffix(".md").is_file()


def test_github_has_no_line_where_there_is_none() -> None:
    nowhere = dataclasses.replace(finding(), location=Location(tensor="w"))
    out = render(Report("tensor", (nowhere,)), "github")
    assert out.startswith("::")
    assert not any(word in out.split("::")[1] for word in ("file=", "ine=", "col"))


def test_github_escapes_what_would_end_the_command() -> None:
    evil = finding(
        what=Message("m", Text("a\n::error::b %", "x")), location=Location("a,b:c.py", 1, 1, 1, 2)
    )
    out = render(Report("check", (evil,)), "github")
    assert out.count("\n") == 1
    assert "file=a%2Cb%3Ac.py" in out


@pytest.mark.parametrize("budget", [150, 400, 1500])
def test_agent_stays_within_its_budget(budget: int) -> None:
    out = render(many(500), "agent", budget=budget)
    assert tokens(out) <= budget
    assert "more: raise --budget" in out


def test_agent_ids_are_stable_and_expandable() -> None:
    out = render(Report("check", (finding(),)), "agent")
    assert "#abcdef01 HIGH TS101 model.py:3:9" in out
    assert "--show ID" in out


@pytest.mark.parametrize("evidence", every_evidence(), ids=lambda item: item.kind)
def test_every_evidence_is_drawn_twice(evidence: Evidence) -> None:
    lines = draw.text(evidence, Style(width=80))
    assert lines
    assert all("\n" not in line for line in lines)
    markup = draw.html(evidence, Style())
    assert markup.startswith("<")
    assert "None" not in markup


def test_text_from_files_cannot_steer_the_terminal() -> None:
    evil = finding(what=Message("m", Text("\x1b[2J\x07gone", "x")))
    for name in ("text", "concise", "agent"):
        out = render(Report("check", (evil,)), name)
        assert "\x1b" not in out
        assert "\x07" not in out


EVIL = "\x1b[2J\u202e\u2066\x07\u200b\x9b"


def poisoned(value: Any) -> Any:
    """The same value with characters that act on others in every text of it."""
    if type(value) is str:
        return value + EVIL
    if isinstance(value, tuple):
        return tuple(map(poisoned, value))
    if isinstance(value, dict):
        return {key: poisoned(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        changes = {name: poisoned(getattr(value, name)) for name in names}
        return dataclasses.replace(value, **changes)
    return value


@pytest.mark.parametrize("name", ["html", "text", "concise", "markdown", "github", "agent"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_format_hands_on_characters_that_act(name: str, lang: str) -> None:
    plain = full_report()
    report = dataclasses.replace(
        poisoned(plain), rules=plain.rules, tool=plain.tool, subject="net" + EVIL
    )
    out = render(report, name, lang=lang, detail=2, budget=100_000)
    assert [char for char in EVIL if char in out and not char.isprintable()] == []
    assert "\\u202e" in out, "it is shown, not dropped"


@pytest.mark.parametrize("evidence", every_evidence(), ids=lambda item: item.kind)
def test_no_evidence_hands_on_characters_that_act(evidence: Evidence) -> None:
    evil = poisoned(evidence)
    for shown in ("\n".join(draw.text(evil, Style(width=80))), draw.html(evil, Style())):
        assert [char for char in EVIL if char in shown and not char.isprintable()] == []
        assert "\\x1b" in shown


def test_html_escapes_what_files_hold() -> None:
    page = render(full_report(), "html")
    assert "<b>cast</b>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<script>") == 1


def test_html_folds_what_does_not_fit() -> None:
    page = render(many(9000), "html")
    assert len(page.encode()) < 5_000_000
    assert "are left out" in page


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'sarif'"):
        render(Report("check"), "sarf")


def test_width_counts_chinese_twice() -> None:
    assert cells("ab中文") == 6
    assert printable("a\x00b") == "a\\x00b"


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("width", [50, 80])
def test_first_screens_stay_within_the_terminal(width: int, lang: str) -> None:
    long = Text("share of the values that a cast flushes to zero", "转换后刷零的数值所占的比例")
    parts = tuple(Part(long, 2.0**n) for n in range(20, 26))
    answer = Answer(
        long, "bad", about=(Fact(long, "1 × 3 × 224 × 224"),) * 3,
        tiles=(Tile(Text("time on NVIDIA GeForce RTX 4090 24 GB", "在 NVIDIA GeForce RTX 4090 24 GB 上的时间"), "14.6 µs", long),) * 2,
        pictures=(
            Stack(long, parts, "B", "", (Limit("NVIDIA H100 SXM5 80 GB", 2.0**36),)),
            Plot(long, (Series(long, tuple(map(float, range(90))), tuple(map(float, range(90))), "", ""),)),
        ),
        lines=(long, Text("a " * 90, "长" * 90)),
    )  # fmt: skip
    text = render(Report("cost", answer=answer), "text", lang=lang, width=width)
    assert max(map(cells, text.splitlines())) <= width
    assert "▁" in text
