"""What a rule may ask about a place in a file: names, scopes, regions, loops, values."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

from torchstone.sources import training, values
from torchstone.sources.files import Files
from torchstone.sources.parsed_file import FUNCTIONS, LOOPS, SCOPES, Function, ParsedFile
from torchstone.sources.source import Source
from torchstone.sources.states import RankBranch, Region
from torchstone.sources.values import MISSING

__all__ = ["FUNCTIONS", "LOOPS", "MISSING", "SCOPES", "Function", "Others", "Scene"]

MODULE_BASES = frozenset(
    ("torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module")
    + ("torch.nn.Sequential", "torch.nn.ModuleList")
    + ("pytorch_lightning.LightningModule", "lightning.LightningModule")
    + ("lightning.pytorch.LightningModule", "transformers.PreTrainedModel", "diffusers.ModelMixin")
)
DATASET_BASES = frozenset(
    f"torch.utils.data.{name}"
    for name in ("Dataset", "IterableDataset", "dataset.Dataset", "dataset.IterableDataset")
)


class Others(Files, ABC):
    """What a file asks of the files around it."""

    @abstractmethod
    def load(self, path: str, scene: Scene) -> Scene | None:
        """Another file as a scene; the one that asks stands for itself."""

    @abstractmethod
    def named(self, name: str, scene: Scene) -> Scene | None:
        """A file by its name in reports; the one that asks stands for itself."""

    @abstractmethod
    def path_of(self, scene: Scene) -> str:
        """The path under which the project knows a file."""

    @abstractmethod
    def resolve(self, name: str, importer: str) -> str:
        """Follow a qualified name through re-exports of the project to where it comes from."""

    @abstractmethod
    def star(self, module: str, name: str, importer: str) -> str:
        """What `name` stands for after `from module import *`, or ""."""

    @abstractmethod
    def definition(self, scene: Scene, node: ast.AST, full: str) -> tuple[Scene, ast.AST] | None:
        """The class or function of the project that a name stands for, and its file."""

    def class_named(
        self, scene: Scene, node: ast.AST, full: str
    ) -> tuple[Scene, ast.ClassDef] | None:
        """The same, for a class."""
        found = self.definition(scene, node, full)
        return (found[0], found[1]) if found and isinstance(found[1], ast.ClassDef) else None

    @abstractmethod
    def region(self, scene: Scene, node: ast.AST) -> Region:
        """Autocast, no_grad and inference_mode at a node, callers of its function included."""

    @abstractmethod
    def lexical_region(self, scene: Scene, node: ast.AST) -> Region:
        """The same, but from this function alone."""

    @abstractmethod
    def rank_branch(self, scene: Scene, node: ast.AST) -> RankBranch | None:
        """The rank-dependent branch or early return that decides whether a node runs."""


class Scene(ParsedFile):
    """One parsed file of a project and the questions rules put to it."""

    def __init__(
        self, source: Source, root: ast.Module, project: Others, module: str, package: str
    ) -> None:
        super().__init__(source, root, project, module, package)
        self.project = project

    # -- what is known about a place (each answered by a file of its own) -------------------------

    def region(self, node: ast.AST) -> Region:
        """Autocast, no_grad and inference_mode at a node, callers of its function included."""
        return self.project.region(self, node)

    def lexical_region(self, node: ast.AST) -> Region:
        """The same, but from this function alone."""
        return self.project.lexical_region(self, node)

    def step_loop(self, node: ast.AST) -> ast.AST | None:
        """The loop (or step function) that runs a training step each time round, if in one."""
        return training.step_loop(self, node)

    def in_step_loop(self, node: ast.AST) -> bool:
        """Whether the node runs on every training step (not gated by `if step % n`)."""
        loop = training.step_loop(self, node)
        return loop is not None and not training.gated(self, node, loop)

    def rank_branch(self, node: ast.AST) -> RankBranch | None:
        """The rank-dependent branch or early return that decides whether a node runs."""
        return self.project.rank_branch(self, node)

    def is_module_class(self, node: ast.ClassDef) -> bool:
        """Whether a class is an nn.Module, also through classes of the project."""
        return self.derives(node, MODULE_BASES)

    def derives(self, node: ast.ClassDef, names: Collection[str], depth: int = 6) -> bool:
        """Whether a class has one of these qualified names among its bases."""
        for base in node.bases:
            if isinstance(base, ast.Subscript):
                base = base.value
            full = self.qualified(base)
            if full in names:
                return True
            found = self.project.class_named(self, base, full) if depth else None
            if found and found[1] is not node and found[0].derives(found[1], names, depth - 1):
                return True
        return False

    def forward_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The nn.Module class whose `forward` a node stands in."""
        return self._method_class(node, ("forward",), MODULE_BASES)

    def getitem_of(self, node: ast.AST) -> ast.ClassDef | None:
        """The Dataset class whose `__getitem__` (or `__iter__`) a node stands in."""
        return self._method_class(node, ("__getitem__", "__iter__"), DATASET_BASES)

    def _method_class(
        self, node: ast.AST, methods: Collection[str], bases: Collection[str]
    ) -> ast.ClassDef | None:
        function = self.function(node)
        while function is not None:
            owner = self.parent(function)
            if isinstance(owner, ast.ClassDef):
                if function.name in methods and self.derives(owner, bases):
                    return owner
                return None
            function = self.function(function)
        return None

    def literal(self, node: ast.AST | None) -> Any:
        """The value of a constant (also `-1`, and a name bound once to one), else MISSING."""
        return values.literal(self, node)

    def value(self, node: ast.AST | None) -> ast.expr | None:
        """The expression last bound to a name before it is read here, when that is plain to see."""
        return values.value_of(self, node)

    def bindings(self, node: ast.Name) -> list[values.Binding]:
        """Everything that binds this name in the scope that owns it."""
        return values.bindings(self, node)

    def attribute_values(self, owner: ast.ClassDef, name: str) -> list[ast.expr]:
        """Every expression that the class assigns to `self.name`."""
        return values.attribute_values(self, owner, name)

    def attribute_sources(self, owner: ast.ClassDef, name: str) -> list[values.Source]:
        """The same, those included that take one part of what is unpacked."""
        return values.attribute_sources(self, owner, name)

    def origin(self, node: ast.AST | None) -> ast.expr | None:
        """What a name or `self.attribute` was made from: the expression at its first source."""
        return values.origin(self, node)

    def dtype(self, node: ast.AST | None) -> str:
        """`float16`, `bfloat16`, `float32`, … of a tensor expression where it is known, else ""."""
        return values.dtype_of(self, node)

    def dtype_literal(self, node: ast.AST | None) -> str:
        """`float16` for `torch.half`, `torch.float16`, "float16"; "" for what is no dtype."""
        return values.dtype_literal(self, node)

    def is_half(self, node: ast.AST | None) -> bool:
        """Whether an expression is known to hold float16 or bfloat16."""
        return values.dtype_of(self, node) in ("float16", "bfloat16")

    def is_model(self, node: ast.AST | None) -> bool:
        """Whether an expression is an nn.Module as far as its making or its name tells."""
        source = values.origin(self, node)
        if values.is_made_as_model(self, source):
            return True
        if isinstance(source, ast.Call):
            made = self.project.class_named(self, source.func, self.qualified(source.func))
            if made is not None:
                return made[0].is_module_class(made[1])
        return values.is_used_as_model(self, node)

    def is_optimizer(self, node: ast.AST | None) -> bool:
        """Whether an expression is an optimizer as far as its making or its name tells."""
        return values.is_optimizer(self, node)
