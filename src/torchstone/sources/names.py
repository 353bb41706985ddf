"""What a name in a file stands for: import aliases become qualified names."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Imports:
    """The names that a file's imports bind, wherever in the file they stand."""

    aliases: dict[str, str] = field(default_factory=dict)
    """Local name → qualified name (`F` → `torch.nn.functional`)."""
    stars: tuple[str, ...] = ()
    """Modules whose every name was imported."""

    def renamed(self) -> dict[str, str]:
        """Local names that hide the last part of what they stand for (`sm` → `softmax`)."""
        return {
            local: target.rpartition(".")[2]
            for local, target in self.aliases.items()
            if target.rpartition(".")[2] != local
        }


def read_imports(nodes: list[ast.AST], package: str) -> Imports:
    """Aliases of `Import` and `ImportFrom` nodes; `package` is what relative imports start from."""
    aliases: dict[str, str] = {}
    stars: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    aliases[alias.asname] = alias.name
                else:
                    root = alias.name.partition(".")[0]
                    aliases[root] = root
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module or "", node.level, package)
            for alias in node.names:
                if alias.name == "*":
                    stars.append(module)
                else:
                    aliases[alias.asname or alias.name] = f"{module}.{alias.name}"
    return Imports(aliases, tuple(stars))


def absolute(module: str, level: int, package: str) -> str:
    """A relative import's full name; what leaves the package keeps its dots and matches nothing."""
    if not level:
        return module
    parts = package.split(".") if package else []
    if level - 1 > len(parts):
        return "." * level + module
    base = parts[: len(parts) - (level - 1)]
    return ".".join((*base, module)) if module else ".".join(base)


def dotted(node: ast.AST) -> tuple[ast.AST, list[str]]:
    """The innermost value of an attribute chain and the attribute names after it."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    names.reverse()
    return node, names
