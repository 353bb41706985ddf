"""All files of one check together: what a name of another file stands for, and who calls what.

Questions about callers cannot be answered while files are still being read. The first pass notes
them; `answer` then looks only at files that hold the names in question, and the files that asked
are read once more.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable
from pathlib import PurePosixPath

from torchstone.core.gap import Gap
from torchstone.sources.callers import Callers
from torchstone.sources.discover import File
from torchstone.sources.kept import Kept
from torchstone.sources.names import dotted, read_imports
from torchstone.sources.ranks import rank_branch
from torchstone.sources.regions import lexical, region_of
from torchstone.sources.scene import FUNCTIONS, Others, Scene
from torchstone.sources.source import Source, decode, gap
from torchstone.sources.states import RankBranch, Region

_OUTSIDE = (
    "torch.",
    "numpy.",
    "torchvision.",
    "transformers.",
    "accelerate.",
    "os.",
    "contextlib.",
)
# names that a star import of torch is known to bring; torch itself is never loaded to ask
_TORCH_HOMES = ("torch", "torch.nn", "torch.nn.functional", "torch.distributed", "torch.optim",
                "torch.utils.data", "torch.cuda.amp", "torch.amp", "torch.autograd")  # fmt: skip


def parse(source: Source) -> ast.Module | Gap:
    """The syntax tree, or why there is none; the source is never executed."""
    try:
        return _tree(source, source.text)
    except SyntaxError as error:
        return _newer(source) or _syntax_gap(source, error)
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        why = str(error) or type(error).__name__
        return gap(
            source.path,
            "source.too-deep",
            f"nested more deeply than Python's own parser takes ({why})",
            f"嵌套层次超过 Python 解析器的上限（{why}）",
            "break the expression into parts",
        )


def still_parses(path: str, before: str, after: str) -> bool:
    """Whether a changed file parses as its text before did: what this interpreter could read, it must
    still be able to read, even where newer ones could."""
    if isinstance(parse(Source(path, after)), Gap):
        return False
    return _is_of_this_python(after) or not _is_of_this_python(before)


def _is_of_this_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _tree(source: Source, text: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST
    if source.cell_starts:
        flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: ast.Module = compile(text, source.path, "exec", flags, dont_inherit=True)
    return tree


def _newer(source: Source) -> ast.Module | None:
    """The tree of a file whose syntax is newer than the interpreter that runs this."""
    from torchstone.sources.newer_syntax import rewritten  # few files need it

    text = rewritten(source.text)
    if text == source.text:
        return None
    try:
        return _tree(source, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError):
        return None


def _syntax_gap(source: Source, error: SyntaxError) -> Gap:
    line = error.lineno or 1
    here = "{}.{}".format(*sys.version_info[:2])
    hint = " (Python 2?)" if "Missing parentheses" in str(error.msg) else ""
    return gap(
        source.path,
        "source.syntax",
        f"line {line} does not parse as Python {here}: {error.msg}{hint}",
        f"第 {line} 行无法按 Python {here} 解析：{error.msg}{hint}",
        f"python -m py_compile {source.path}",
        line=line,
    )


class Project(Others):
    """The files of one check and what they know of each other."""

    def __init__(self, files: Iterable[File] = ()) -> None:
        super().__init__(files)
        self._kept: Kept = Kept()
        self._resolved: dict[tuple[str, str], str] = {}
        self._exports: dict[str, dict[str, str]] = {}
        self._callers = Callers(self.files_that_call, self._load, self.find)

    # -- scenes ---------------------------------------------------------------------------------

    def scene(self, source: Source, tree: ast.Module) -> Scene:
        file = self._by_name.get(source.path)
        module, package = (
            self._module_name(self._paths[file.name]) if file else (_stem(source.path), "")
        )
        scene = Scene(source, tree, self, module, package)
        if file and not source.cell_starts:
            self._kept.put(self._paths[file.name], scene)
        return scene

    def parsed(self, name: str) -> Scene | None:
        """A file, by its name in reports, when it is still at hand from an earlier question."""
        return self._kept.get(self._paths.get(name, ""))

    def release(self) -> None:
        """Let go of all trees. They and the project know each other: without this they would wait
        for the collector, which walks every node first."""
        self._kept.clear()
        self.summaries.clear()

    def _parsed(self, path: str) -> tuple[Source, ast.Module] | None:
        """Another file of the project."""
        file = self._files[path]
        data = file.read()
        if not isinstance(data, bytes) or file.name.endswith(".ipynb"):
            return None
        text = decode(data, file.name)
        if not isinstance(text, str):
            return None
        source = Source(file.name, text)
        tree = parse(source)
        return (source, tree) if isinstance(tree, ast.Module) else None

    def _load(self, path: str) -> Scene | None:
        """Another file of the project as a scene; the last few are kept."""
        if self._kept.ask(path):
            return self._kept.get(path)
        parsed = self._parsed(path)
        if parsed is None:
            self._kept.put(path, None)
            return None
        return self.scene(*parsed)

    def path_of(self, scene: Scene) -> str:
        """The path under which the project knows a file."""
        return self._paths.get(scene.path, "")

    def load(self, path: str, scene: Scene) -> Scene | None:
        """Another file as a scene; the one that asks stands for itself."""
        return scene if self._paths.get(scene.path) == path else self._load(path)

    def named(self, name: str, scene: Scene) -> Scene | None:
        """A file by its name in reports; the one that asks stands for itself."""
        if scene.path == name:
            return scene
        path = self._paths.get(name)
        return self._load(path) if path is not None else None

    # -- names of other files -------------------------------------------------------------------

    def resolve(self, name: str, importer: str, depth: int = 5) -> str:
        """Follow a qualified name through re-exports of the project to where it comes from."""
        if name.startswith(_OUTSIDE) or "." not in name or not self._files or not depth:
            return name
        top = name.partition(".")[0]
        if top not in self._tops:
            self._missing[importer].add(top)
            return name
        self._share(importer)
        key = (name, os.path.dirname(importer))
        if key not in self._resolved:
            self._resolved[key] = self._follow(name, importer, depth)
        return self._resolved[key]

    def _follow(self, name: str, importer: str, depth: int) -> str:
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            path = self.find(".".join(parts[:cut]), importer)
            if path is None:
                continue
            target = self._export(path).get(parts[cut])
            if target and target != ".".join(parts[: cut + 1]):
                file = self._files[path].name
                return self.resolve(".".join((target, *parts[cut + 1 :])), file, depth - 1)
            return name
        return name

    def _export(self, path: str) -> dict[str, str]:
        """What a module's imports and plain aliases bind, by name."""
        if path not in self._exports:
            # entered before it is filled: modules that import each other ask in a circle
            table: dict[str, str] = {}
            self._exports[path] = table
            scene = self._load(path)
            if scene is None:
                return table
            statements = _module_level(scene.root)
            imports = read_imports(statements, self._module_name(path)[1])
            table.update(imports.aliases)
            for name in _hidden_imports(scene.root):
                table.pop(name, None)
            for statement in statements:
                if isinstance(statement, ast.Assign):
                    base, names = dotted(statement.value)
                    home = table.get(base.id) if isinstance(base, ast.Name) else None
                    for target in statement.targets if home else ():
                        if isinstance(target, ast.Name):
                            table[target.id] = ".".join((home or "", *names))
            for star in imports.stars:
                inner = self.find(star, self._files[path].name)
                if inner is not None and inner != path:
                    for name in self._defined(inner):
                        table.setdefault(name, f"{star}.{name}")
                    for name, full in self._export(inner).items():
                        table.setdefault(name, full)
        return self._exports[path]

    def _defined(self, path: str) -> list[str]:
        """The functions and classes that `import *` takes from a module."""
        scene = self._load(path)
        if scene is None:
            return []
        return [
            item.name
            for item in scene.definitions
            if isinstance(scene.parent(item), (ast.Module, ast.If))
            and not item.name.startswith("_")
        ]

    def star(self, module: str, name: str, importer: str) -> str:
        """What `name` stands for after `from module import *`, or ""."""
        path = self.find(module, importer)
        if path is not None:
            scene = self._load(path)
            if name in self._export(path):
                return self._export(path)[name]
            if scene is not None and name in scene.bound:
                return f"{module}.{name}"
            for star in scene.imports.stars if scene else ():
                if star in _TORCH_HOMES:
                    return f"{star}.{name}"
            return ""
        return f"{module}.{name}" if module in _TORCH_HOMES else ""

    def definition(self, scene: Scene, node: ast.AST, full: str) -> tuple[Scene, ast.AST] | None:
        """The class or function of the project that a name stands for, and its file."""
        if not full and isinstance(node, ast.Name):
            return _top_level(scene, node.id)
        module, _, name = full.rpartition(".")
        path = self.find(module, scene.path) if module else None
        other = self._load(path) if path else None
        return _top_level(other, name) if other else None

    def class_named(
        self, scene: Scene, node: ast.AST, full: str
    ) -> tuple[Scene, ast.ClassDef] | None:
        found = self.definition(scene, node, full)
        return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) else None

    # -- places, as rules ask for them through their scene

    def region(self, scene: Scene, node: ast.AST) -> Region:
        def outside(function: ast.AST) -> Region | None:
            self.shared = True
            return self._callers.region(scene, function)

        return region_of(scene, node, outside)

    def lexical_region(self, scene: Scene, node: ast.AST) -> Region:
        return lexical(scene, node)[0]

    def rank_branch(self, scene: Scene, node: ast.AST) -> RankBranch | None:
        return rank_branch(scene, node)


def _module_level(tree: ast.Module) -> list[ast.AST]:
    """The statements that run when a module is imported, those under `if` and `try` included."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = list(reversed(tree.body))
    while stack:
        node = stack.pop()
        found.append(node)
        for name in ("finalbody", "orelse", "handlers", "body"):
            if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler, ast.With)):
                stack.extend(reversed(getattr(node, name, None) or ()))
    return found


def _hidden_imports(tree: ast.Module) -> set[str]:
    """The names that a module defines anew after it imported them: `class Dataset(Dataset)`."""
    hidden: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            hidden.add(statement.name)
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            hidden.difference_update(item.asname or item.name for item in statement.names)
    return hidden


def _top_level(scene: Scene, name: str) -> tuple[Scene, ast.AST] | None:
    table: dict[str, ast.AST] | None = scene.cache.get("top level")
    if table is None:
        table = scene.cache["top level"] = {}
        for item in scene.definitions:
            if isinstance(scene.parent(item), (ast.Module, ast.If)):
                table.setdefault(item.name, item)
    return (scene, table[name]) if name in table else None


def _stem(path: str) -> str:
    return PurePosixPath(path).stem
