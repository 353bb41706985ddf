"""Every page is there in both languages, and every claim is shown by a case that runs."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch

from torchstone.cli.main import run
from torchstone.skills import all_skills

TOPICS = ["common_fixes", "numerical_issues", "reduction_patterns", "torchstone", "unsafe_ops"]
CASES = [case for skill in all_skills().values() for case in skill.cases()]
WANTED = (
    "case_dim_imbalance case_nan_inf case_loss_dtype case_cancellation case_softmax_overflow "
    "case_absorbed_updates case_half_variance case_loss_scale_underflow case_large_vocabulary"
).split()


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_topics_and_cases_exist() -> None:
    assert sorted(all_skills()) == TOPICS
    cases = {path.stem for path in all_skills()["numerical_issues"].cases()}
    assert set(WANTED) <= cases


@pytest.mark.parametrize("name", TOPICS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_page_has_front_matter_and_a_body(name: str, lang: str) -> None:
    skill = all_skills()[name]
    page = skill.page(lang)
    assert page.startswith(f"---\nname: {name.replace('_', '-')}\ndescription: ")
    assert len(skill.description(lang)) > 20
    assert skill.body(lang).startswith("# ")
    assert bool(re.search(r"[\u4e00-\u9fff]", page)) == (lang == "zh")


@pytest.mark.parametrize("name", TOPICS)
def test_every_case_is_named_and_every_named_case_exists(name: str) -> None:
    skill = all_skills()[name]
    for text in (skill.page("en"), skill.page("zh")):
        named = re.findall(r"`((?:\.\./\w+/)?case_\w+\.py)`", text)
        assert {path.name for path in skill.cases()} <= {Path(item).name for item in named}
        assert all((skill.folder / item).exists() for item in named)
    index = (skill.folder / "README.md").read_text("utf-8")
    assert all(path.name in index for path in skill.cases())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_shows_what_it_claims(path: Path) -> None:
    state = torch.random.get_rng_state()
    try:
        case = load(path)
        bad, good = case.bad(), case.good()
    finally:
        torch.random.set_rng_state(state)
    assert good < 0.05
    assert bad > 10 * good
    assert case.__doc__


FIGURES = [
    ("numerical_issues", "case_cancellation.py", "5 %", 0.05),
    ("numerical_issues", "case_large_vocabulary.py", "8 %", 0.08),
    ("numerical_issues", "case_loss_scale_underflow.py", "71 %", 0.71),
    ("numerical_issues", "case_nan_inf.py", "36 %", 0.36),
    ("reduction_patterns", "case_running_sum.py", "74 %", 0.74),
    ("common_fixes", "case_scale_per_column.py", "99 %", 0.99),
]


@pytest.mark.parametrize(("topic", "case", "figure", "value"), FIGURES)
def test_figures_on_a_page_are_those_of_the_case(
    topic: str, case: str, figure: str, value: float
) -> None:
    skill = all_skills()[topic]
    line = next(row for row in skill.page("en").splitlines() if f"`{case}`" in row)
    assert figure in line
    assert load(skill.folder / case).bad() == pytest.approx(value, abs=0.01)


def test_explain_shows_a_topic(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "numerical_issues", "--lang", "en"]) == 0
    assert capsys.readouterr().out.startswith("# Numerical issues")
    assert run(["explain", "common-fixes", "--lang", "zh"]) == 0
    assert "常见修复方案" in capsys.readouterr().out
    assert run(["explain", "unsafe_ops", "--format", "json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert "`binary_cross_entropy`" in data["page"]


def test_unsafe_ops_is_what_the_tables_of_the_rules_say() -> None:
    made = load(Path(__file__).parents[2] / "scripts" / "make_skills.py").pages()
    assert len(made) == 2
    for path, text in made.items():
        assert path.read_text("utf-8") == text, path.name
