"""What a rule is: its identity, its words in two languages, its samples and its checks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from torchstone.core.finding import Confidence, Severity
from torchstone.core.fix import Edit, Fix, Safety, patched
from torchstone.core.report import RuleInfo
from torchstone.core.text import NOTHING, Message, Text
from torchstone.sources.scene import Scene

if TYPE_CHECKING:
    from torchstone.core.pictures import Evidence

Group = Literal["precision", "correctness", "performance", "distributed", "upgrade", "torchstone"]
_GROUPS: dict[str, Group] = {
    "0": "torchstone", "1": "precision", "2": "correctness", "3": "performance",
    "4": "distributed", "5": "upgrade",
}  # fmt: skip
HIGH, MEDIUM, LOW = Severity.HIGH, Severity.MEDIUM, Severity.LOW
CERTAIN, LIKELY, POSSIBLE = Confidence.CERTAIN, Confidence.LIKELY, Confidence.POSSIBLE
Version = tuple[int, int]


class Hit(NamedTuple):
    """A rule fired at a node."""

    rule: Rule
    node: ast.AST
    args: dict[str, str]
    severity: Severity
    confidence: Confidence
    say: Text
    why: Text
    suggest: Text
    fix: Fix | None = None
    evidence: tuple[Evidence, ...] = ()
    about: tuple[ast.expr, ...] = ()
    """What the severity rests on: HIGH needs to know how these were made and who gets them."""
    harmless: Text | None = None
    """Why it was thought harmless: reported with `--strict` alone, with this reason."""


Check = Callable[[Any, Scene], Iterable[Hit]]


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule. The `bad` sample fires exactly once, the `good` one never; `fixed` is the change that the fix
    makes to the bad one. More samples stand in `tests/lint/samples`."""

    code: str
    name: str
    severity: Severity
    say: Text
    why: Text
    suggest: Text
    bad: str
    fixed: str = ""
    good: str = ""
    """The whole of it, or its change of the bad one; left out where that is what the fix does."""
    title: Text = NOTHING
    """The rule in one sentence, for lists and pages; `say` with dots when empty."""
    page: Text = NOTHING
    """What more there is to know: when it is harmless, how it is decided, links."""
    highest: Severity = HIGH
    """The level that its record allows: what was wrong too often when read blind shows at most MEDIUM."""
    confidence: Confidence = CERTAIN
    words: tuple[str, ...] = ()
    """The file must hold one of these identifiers; what `on_call` names counts by itself."""
    needs: tuple[str, ...] = ()
    """The file must hold all of these identifiers."""
    also: tuple[str, ...] = ()
    """The file must, beside that, hold one of these identifiers."""
    aliases: tuple[str, ...] = ()
    """Codes of other tools that this rule answers to."""
    torch_from: Version = (1, 0)
    """The first torch version in which the advice is right."""
    in_every_torch: bool = False
    """Whether an upgrade rule's advice holds for every release that rules speak of."""
    default: bool = True
    on_calls: dict[str, list[Check]] = field(default_factory=dict)
    on_nodes: dict[type[ast.AST], list[Check]] = field(default_factory=dict)
    on_files: list[Callable[[Scene], Iterable[Hit]]] = field(default_factory=list)

    def on_call(self, *names: str) -> Callable[[Check], Check]:
        """Check calls of anything whose last name is one of these (import renames undone)."""

        def register(check: Check) -> Check:
            for name in sorted(names):  # names may come from a set: the order must not vary
                self.on_calls.setdefault(name, []).append(check)
            return check

        return register

    def on(self, *kinds: type[ast.AST]) -> Callable[[Check], Check]:
        """Check every node of these types."""

        def register(check: Check) -> Check:
            for kind in kinds:
                self.on_nodes.setdefault(kind, []).append(check)
            return check

        return register

    def on_file(self, check: Callable[[Scene], Iterable[Hit]]) -> Callable[[Scene], Iterable[Hit]]:
        """Check a file as a whole."""
        self.on_files.append(check)
        return check

    def at(
        self,
        node: ast.AST,
        *,
        severity: Severity | None = None,
        confidence: Confidence | None = None,
        say: Text | None = None,
        why: Text | None = None,
        suggest: Text | None = None,
        fix: Fix | None = None,
        evidence: tuple[Evidence, ...] = (),
        about: tuple[ast.expr, ...] = (),
        harmless: Text | None = None,
        **args: str,
    ) -> Hit:
        """This rule fired at a node; `args` fill the `{names}` of the texts."""
        level = max(severity or self.severity, self.highest, key=lambda item: item.rank)
        return Hit(
            self, node, args, level, confidence or self.confidence,
            say or self.say, why or self.why, suggest or self.suggest, fix, evidence, about, harmless,
        )  # fmt: skip

    @property
    def group(self) -> Group:
        """The family, which the code names."""
        return _GROUPS[self.code[2]]

    @property
    def triggers(self) -> frozenset[str]:
        """Identifiers of which a file must hold at least one; empty means every file."""
        return frozenset((*self.words, *self.on_calls))

    @property
    def follows_version(self) -> bool:
        """Whether what it advises exists only in some releases of torch."""
        return not self.in_every_torch and (self.group == "upgrade" or self.torch_from > (1, 0))

    @property
    def fixable(self) -> bool:
        return bool(self.fixed)

    @property
    def right(self) -> str:
        """The sample as it should be."""
        change = self.good or self.fixed
        return patched(self.bad, change) if change.startswith("@@") else change

    @property
    def url(self) -> str:
        """Where its page is in the repository."""
        return f"docs/rules/{self.name}.md"

    def info(self) -> RuleInfo:
        title = self.title if self.title.en else _shown(self.say)
        return RuleInfo(
            self.code, self.name, self.group, self.severity, _sentence(title), _shown(self.why), _shown(self.suggest), self.url,
        )  # fmt: skip

    def run(self, scene: Scene) -> Iterator[Hit]:
        """Every place in a file where the rule fires."""
        calls = scene.calls
        if not self.on_calls.keys().isdisjoint(calls):
            for name, checks in self.on_calls.items():
                for call in calls.get(name, ()):
                    for check in checks:
                        yield from check(call, scene)
        for kind, node_checks in self.on_nodes.items():
            for node in scene.tree.by_type.get(kind, ()):
                for check in node_checks:
                    yield from check(node, scene)
        for whole in self.on_files:
            yield from whole(scene)


def _sentence(text: Text) -> Text:
    """Begins with a capital letter, as lists and pages want it."""
    return Text(text.en[:1].upper() + text.en[1:], text.zh)


def _shown(template: Text) -> Text:
    """A template as a sentence of its own: `{call}` becomes `…`."""
    message = Message("", template, _Dots())
    return Text(message.say("en"), message.say("zh"))


class _Dots(dict[str, str]):
    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return "…"


def safe(*edits: Edit, says: Text = NOTHING) -> Fix:
    """A fix that keeps the meaning, or removes only the defect."""
    return Fix(edits, Safety.SAFE, Message("fix", says))


def unsafe(*edits: Edit, says: Text = NOTHING) -> Fix:
    """A fix that is right in the usual case; applied on request only."""
    return Fix(edits, Safety.UNSAFE, Message("fix", says))
