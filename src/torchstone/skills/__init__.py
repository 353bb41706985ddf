"""The knowledge: one folder per topic, a page in each language, and cases that show every claim.

A page is a `SKILL.md` in the Agent Skills format (front matter with name and description, then text);
`SKILL.zh.md` is the same in Chinese. Every `case_*.py` beside it runs by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_HOME = Path(__file__).parent
TOPIC_OF_RULE = {
    "tensor-unbalanced-axis": "reduction_patterns",
    "tensor-nonfinite": "numerical_issues",
    "tensor-overflow": "common_fixes",
    "tensor-flushed": "common_fixes",
    "tensor-not-ready-for-fp8": "common_fixes",
    "precision-nonfinite": "numerical_issues",
    "precision-amplified": "reduction_patterns",
    "precision-absorbed": "common_fixes",
    "precision-flushed": "numerical_issues",
    "runs-diverge": "numerical_issues",
}
"""The topic behind each finding that is not of a rule on source code."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One topic."""

    name: str
    folder: Path

    def page(self, lang: str = "en") -> str:
        """The whole page with its front matter."""
        name = "SKILL.zh.md" if lang == "zh" else "SKILL.md"
        return (self.folder / name).read_text("utf-8")

    def body(self, lang: str = "en") -> str:
        """The page as a person reads it, without the front matter."""
        return self.page(lang).split("---\n", 2)[2].lstrip("\n")

    def description(self, lang: str = "en") -> str:
        head = self.page(lang).split("---\n", 2)[1]
        lines = [line.partition(": ") for line in head.splitlines()]
        return next((value for key, _, value in lines if key == "description"), "")

    def cases(self) -> list[Path]:
        """Its runnable cases."""
        return sorted(self.folder.glob("case_*.py"))


def all_skills() -> dict[str, Skill]:
    """Every topic by name; a folder with a `SKILL.md` is one."""
    folders = sorted(path.parent for path in _HOME.glob("*/SKILL.md"))
    return {folder.name: Skill(folder.name, folder) for folder in folders}


def find_skill(key: str) -> Skill | None:
    """A topic by its name, with hyphens or underscores, or by a finding that belongs to it."""
    return all_skills().get(TOPIC_OF_RULE.get(key, key.replace("-", "_")))
