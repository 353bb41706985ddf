"""How sure a finding may be: what rests on an assumption is not certain, and tests are no training."""

from __future__ import annotations

import ast

from torchstone.core.finding import Confidence
from torchstone.lint.facts.paths import special_cases
from torchstone.lint.rule import Hit
from torchstone.sources.scene import Scene

_ASIDE = frozenset(("version", "fallback"))
_DEMO = ("demo", "example_usage", "smoke_test", "self_test", "sanity_check")


def settle(scene: Scene, hits: list[Hit]) -> list[Hit]:
    """The hits with the confidence that their place allows."""
    return [hit._replace(confidence=_allowed(scene, hit)) for hit in hits]


def _allowed(scene: Scene, hit: Hit) -> Confidence:
    """The rule's own word, unless the place is a test, a demonstration or a fallback."""
    if hit.rule.group in ("upgrade", "torchstone") or hit.confidence is Confidence.POSSIBLE:
        return hit.confidence
    if scene.is_test or in_demo(scene, hit.node) or special_cases(scene, hit.node) & _ASIDE:
        return Confidence.POSSIBLE
    return hit.confidence


def in_demo(scene: Scene, node: ast.AST) -> bool:
    """Whether a node stands in a test function without parameters, or in a demonstration."""
    function = scene.function(node)
    while function is not None:
        name = function.name.lower()
        bare = not [item for item in function.args.args if item.arg != "self"]
        if name.startswith(_DEMO) or (bare and name.startswith("test_")):
            return True
        function = scene.function(function)
    return False
