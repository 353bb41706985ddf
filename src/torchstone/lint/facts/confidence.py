"""How sure a finding may be, and how severe: what rests on an assumption is neither certain nor HIGH,
and tests are no training."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from torchstone.core.finding import Confidence, Severity
from torchstone.core.fix import Fix, Safety
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.assumed import is_assumed
from torchstone.lint.facts.paths import special_cases
from torchstone.lint.rule import Hit, Rule
from torchstone.sources.scene import Scene

_ASIDE = frozenset(("version", "fallback"))
_FRAMEWORKS = frozenset(
    ("paddle", "tensorflow", "jax", "flax", "mindspore", "mxnet", "oneflow", "jittor", "keras")
)
# what a program of its own has and a look at a module does not
_PROGRAM = pattern(r"DataLoader|loader|epoch|parse_args|argparse|\bmain\(|Trainer|Dataset", re.I)
_DEMO = ("demo", "example_usage", "smoke_test", "self_test", "sanity_check")


OF_TESTS = ("upgrade", "torchstone")
"""The rules whose findings in tests are more than possible."""


def worth_running(scene: Scene, rules: list[Rule]) -> list[Rule]:
    """The rules whose findings in a file may be more than possible."""
    if _is_foreign(scene):
        return [rule for rule in rules if rule.group == "torchstone"]
    if scene.is_test:
        return [rule for rule in rules if rule.group in OF_TESTS]
    return rules


def settle(scene: Scene, hits: list[Hit]) -> list[Hit]:
    """The hits with the confidence and severity that their place and their grounds allow."""
    return [
        hit._replace(
            confidence=_allowed(scene, hit),
            severity=_grounded(scene, hit),
            fix=_fix(scene, hit),
            harmless=_harmless(scene, hit),
        )
        for hit in hits
    ]


def _harmless(scene: Scene, hit: Hit) -> Text | None:
    """The rule's reason, or that the place is a test, a demonstration or a fallback."""
    aside = hit.rule.group == "precision" and hit.confidence is not Confidence.POSSIBLE
    if hit.harmless is None and aside and _allowed(scene, hit) is Confidence.POSSIBLE:
        return _ASIDE_REASON
    return hit.harmless


_ASIDE_REASON = Text(
    "it stands in a test, a demonstration or a fallback", "位于测试、演示或兼容分支中"
)


def _fix(scene: Scene, hit: Hit) -> Fix | None:
    """A fix that needs some release of torch is unsafe while nobody knows which one runs."""
    fix = hit.fix
    if fix is None or fix.safety is not Safety.SAFE or scene.project.torch_known:
        return fix
    return replace(fix, safety=Safety.UNSAFE) if hit.rule.follows_version else fix


def _grounded(scene: Scene, hit: Hit) -> Severity:
    """An unknown fact silences HIGH."""
    if hit.severity is not Severity.HIGH or hit.rule.group == "upgrade":
        return hit.severity
    if _only_shows(scene) or any(is_assumed(scene, subject, hit.node) for subject in hit.about):
        return Severity.MEDIUM
    return hit.severity


def _only_shows(scene: Scene) -> bool:
    """Whether a notebook never trains what it defines: it may show a mistake on purpose."""
    return bool(scene.source.cell_starts) and not scene.calls.get("backward")


def _is_foreign(scene: Scene) -> bool:
    """Whether a file is written for another framework, whose names are much the same."""
    roots = {target.partition(".")[0] for target in scene.imports.aliases.values()}
    return "torch" not in roots and not roots.isdisjoint(_FRAMEWORKS)


def _allowed(scene: Scene, hit: Hit) -> Confidence:
    """The rule's own word, unless the place is a test, a demonstration or a fallback."""
    if hit.rule.group == "torchstone" or hit.confidence is Confidence.POSSIBLE:
        return hit.confidence
    if hit.harmless is not None:
        return Confidence.POSSIBLE
    if _is_foreign(scene):
        return Confidence.POSSIBLE
    if hit.rule.group == "upgrade":
        return hit.confidence
    if hit.rule.group == "distributed" and _runs_alone(scene):
        return Confidence.POSSIBLE
    if scene.is_test or in_demo(scene, hit.node) or special_cases(scene, hit.node) & _ASIDE:
        return Confidence.POSSIBLE
    return hit.confidence


def _runs_alone(scene: Scene) -> bool:
    """Whether a notebook starts no other processes: what it says of ranks is for reading."""
    starts = ("spawn", "notebook_launcher", "start_processes")
    return bool(scene.source.cell_starts) and not any(scene.calls.get(name) for name in starts)


def in_demo(scene: Scene, node: ast.AST) -> bool:
    """Whether a node stands in a test function without parameters, or in a demonstration."""
    function = scene.function(node)
    while function is not None:
        name = function.name.lower().lstrip("_")
        bare = not [item for item in function.args.args if item.arg != "self"]
        if name.startswith(_DEMO) or (bare and name.startswith("test_")):
            return True
        function = scene.function(function)
    return _under_main(scene, node)


def _under_main(scene: Scene, node: ast.AST) -> bool:
    """Whether a node stands in the `if __name__ == "__main__"` of a file that defines modules, and the
    block is no program of its own: it tries a module out."""
    for up in scene.ancestors(node):
        if isinstance(up, ast.If) and "__main__" in scene.text(up.test):
            block = " ".join(scene.text(item) for item in up.body)
            return _PROGRAM.search(block) is None and any(
                scene.is_module_class(item) for item in scene.all(ast.ClassDef)
            )
    return False
