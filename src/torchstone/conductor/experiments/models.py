"""Models of a project under every relation that needs no training script: built, and trained on made inputs."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, replace
from pathlib import Path

from torchstone.conductor.experiments import BUILT
from torchstone.conductor.experiments.recording.session import Start, prepare
from torchstone.conductor.experiments.running import run_experiments
from torchstone.conductor.probes.processes import answers_of, used_by_children
from torchstone.core.codec import from_data, to_data
from torchstone.core.finding import Finding
from torchstone.core.gap import Gap
from torchstone.core.measure import Measure
from torchstone.core.pictures import Table
from torchstone.core.place import Place
from torchstone.core.report import Report, RuleInfo
from torchstone.core.text import Message, Text
from torchstone.dryrun.reporting.supplied import rest_on
from torchstone.observe.where import Where
from torchstone.sources.discover import discover
from torchstone.starting.diagnosis import find_obstacle, own_lines
from torchstone.starting.loop import Attempt, run_with_repairs
from torchstone.starting.models.discovery import ModelClass, find_models
from torchstone.starting.models.recipes import NoRecipe, Recipe, find_recipe
from torchstone.starting.models.script import script_name, write_script
from torchstone.starting.obstacles import Obstacle
from torchstone.starting.supplies import MadeInputs, Supply

TOOL = "models"
MOST_MODELS = 4
"""Under the relations; each takes a few seconds."""
_MOST_CLASSES = 24
"""Tried: beyond the first ones there are layers."""
_CPU_SECONDS = 40.0
"""Of all models together."""
_HOW = Text("built and trained for a few steps on made inputs", "构建后以生成的输入训练数步")


@dataclass(frozen=True, slots=True)
class Answer:
    """What a child says about one class."""

    recipe: Recipe | None = None
    why: str = ""
    obstacle: Obstacle | None = None
    stack: tuple[Place, ...] = ()


def run_models(root: Path) -> Report:
    """The first models that can be built, each in a script of its own."""
    files, _ = discover([str(root)])
    known = find_models(root, [item.path for item in files if item.path.suffix == ".py"])
    findings: dict[str, Finding] = {}
    rules: dict[str, RuleInfo] = {}
    measures: list[Measure] = []
    gaps: list[Gap] = []
    failed: list[NoRecipe] = []
    before = used_by_children()
    for item in known[:_MOST_CLASSES]:
        if len(measures) >= MOST_MODELS or used_by_children() - before > _CPU_SECONDS:
            break
        answer, supplies = _search(root, item)
        if answer.recipe is None:
            failed.append(NoRecipe(item.path, item.name, answer.why))
            continue
        report = _train(root, answer.recipe, supplies)
        rules |= report.rules
        findings |= {one.fingerprint: one for one in report.findings}
        steps = next((one.value for one in report.measures if one.name == "steps"), 0.0)
        if steps:
            measures.append(_measure(answer.recipe, steps))
        else:
            gaps += report.gaps
    if not measures and not gaps:
        gaps = [_gap(failed)]
    return Report(
        TOOL, tuple(findings.values()), tuple(measures), tuple(gaps), rules=rules, subject=TOOL
    )


def _search(root: Path, found: ModelClass) -> tuple[Answer, tuple[Supply, ...]]:
    def attempt(supplies: tuple[Supply, ...]) -> Attempt[Answer]:
        before = used_by_children()
        ((text, late),) = answers_of([functools.partial(_try, root, found, supplies)])
        if text is None:
            return Attempt(Answer(why="it took too long" if late else "its process ended"), None)
        made = from_data(Answer, json.loads(text), "answer")
        return Attempt(made, made.obstacle, made.stack, used_by_children() - before)

    started = run_with_repairs(attempt, root, root / found.path)
    return started.outcome, started.supplies


def _try(root: Path, found: ModelClass, supplies: tuple[Supply, ...]) -> str:
    places = Where(root)
    prepare(Start(root, found.path, supplies=supplies))
    try:
        made = find_recipe(root, found)
    except BaseException as error:  # of its import: what the project raises is the answer
        why = f"{type(error).__name__}: {str(error)[:160]}"
        stack = own_lines(error, places.is_own)
        return json.dumps(to_data(Answer(None, why, find_obstacle(error), stack)))
    if isinstance(made, NoRecipe):
        return json.dumps(to_data(Answer(None, made.why)))
    return json.dumps(to_data(Answer(made)))


def _train(root: Path, recipe: Recipe, supplies: tuple[Supply, ...]) -> Report:
    name = script_name(recipe)
    (root / name).write_text(write_script(recipe), "utf-8")
    report = run_experiments(Start(root, name, supplies=supplies))
    own = tuple(
        replace(item, tool=TOOL)
        for item in rest_on(report.findings, (MadeInputs(recipe.model, recipe.inputs),))
        if item.path != name
    )
    return replace(report, findings=own)


def _measure(recipe: Recipe, steps: float) -> Measure:
    label = Text(f"{recipe.name} ({recipe.path})", f"{recipe.name}（{recipe.path}）")
    columns = (Text("model", "模型"), Text("inputs", "输入"))
    table = Table(_HOW, columns, ((recipe.model, ", ".join(recipe.inputs)),))
    name = f"{BUILT}{recipe.path}:{recipe.name}"
    return Measure(name, steps, "", _HOW, label, evidence=(table,), tool=TOOL)


def _gap(failed: list[NoRecipe]) -> Gap:
    if not failed:
        why = Text("no model of the project was found", "未找到项目的模型")
        return Gap(TOOL, Message("models.none", why), "", tool=TOOL)
    said = Message(
        "models.failed",
        Text(
            "none of {count} models could be built and called with made inputs; {name}: {why}",
            "{count} 个模型均无法构建并以生成的输入调用；{name}：{why}",
        ),
        {"count": str(len(failed)), "name": failed[0].name, "why": failed[0].why},
    )
    return Gap(failed[0].path, said, "", tool=TOOL)
