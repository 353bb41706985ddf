"""How to build a model and what to call it with, found by trying. Only where the project may be run."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from torchstone.observe.compat.trees import tree_leaves
from torchstone.starting.models.discovery import ModelClass
from torchstone.starting.models.guesses import Settings, inputs_for, is_settings, value_for

_MOST_TRIES = 48
_CPU_SECONDS = 8.0
"""For one model: small ones take a hundredth of a second per try."""
_MOST_PARAMETERS = 150_000_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """A model that was built and called."""

    path: str
    name: str
    line: int
    module: str
    """What is imported, from one of the folders."""
    folders: tuple[str, ...]
    names: tuple[str, ...]
    """Taken from the module."""
    model: str
    """The expression that builds it."""
    inputs: tuple[str, ...]
    """Expressions for the arguments of `forward`."""


@dataclass(frozen=True, slots=True)
class NoRecipe:
    """Why a model could not be used."""

    path: str
    name: str
    why: str


def find_recipe(root: Path, found: ModelClass) -> Recipe | NoRecipe:
    """Import its file, build it, call it; what the project raises is part of the answer. An import that
    fails is raised, so that what is missing can be supplied."""
    module, folders = import_file(root, found.path)
    until = time.process_time() + _CPU_SECONDS
    why = "it could not be built"
    for text in _expressions(found, module):
        try:
            torch.manual_seed(0)
            built, text = _build(text, module)
        except Exception as error:  # whatever its constructor raises
            why = f"{type(error).__name__}: {str(error)[:160]}"
            continue
        if not isinstance(built, nn.Module) or not any(True for _ in built.parameters()):
            continue
        if sum(item.numel() for item in built.parameters()) > _MOST_PARAMETERS:
            why = "it has too many parameters to try it here"
            continue
        given, why = _accepted(built, until)
        if given is not None:
            names = tuple(sorted(_names(text) & set(vars(module))))
            return Recipe(
                found.path, found.name, found.line, module.__name__, folders, names, text, given
            )
        if time.process_time() > until:
            break
    return NoRecipe(found.path, found.name, why)


def import_file(root: Path, path: str) -> tuple[ModuleType, tuple[str, ...]]:
    """The module of a file, imported as the project would: from above its outermost package."""
    file = root / path
    home = file.parent
    while (home / "__init__.py").is_file() and home != root:
        home = home.parent
    folders = tuple(
        dict.fromkeys(
            item.relative_to(root).as_posix()
            for item in (home, root, file.parent)
            if item == root or root in item.parents
        )
    )
    for folder in reversed(folders):
        sys.path.insert(0, str(root / folder))
    name = ".".join(file.relative_to(home).with_suffix("").parts)
    return importlib.import_module(name), folders


def _expressions(found: ModelClass, module: ModuleType) -> Iterator[str]:
    """Those of the project first; then its required arguments by their names."""
    known = set(vars(module)) | {"nn", "torch"}
    for text in found.expressions:
        if _names(text) <= known:
            yield text
    arguments = ", ".join(
        f"{item.name}={'Settings()' if is_settings(item.name) else value_for(item.name, item.annotation)}"
        for item in found.required
    )
    yield f"{found.name}({arguments})"


def _names(text: str) -> set[str]:
    tree = ast.parse(text, mode="eval")
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"Settings"}


def _build(text: str, module: ModuleType) -> tuple[Any, str]:
    """The model, and the expression with the settings that it asked for."""
    made: list[Settings] = []

    def settings() -> Settings:
        made.append(Settings())
        return made[-1]

    space = {"torch": torch, "nn": nn, "Settings": settings, **vars(module)}
    built = eval(compile(text, "<recipe>", "eval"), space)
    for item in made:
        text = text.replace("Settings()", item.expression, 1)
    return built, text


def _accepted(model: nn.Module, until: float) -> tuple[tuple[str, ...] | None, str]:
    parameters = [
        item.name
        for item in inspect.signature(model.forward).parameters.values()
        if item.default is item.empty
        and item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]
    why = "its forward takes no tensors"
    model.train()
    for count, texts in enumerate(inputs_for(model, parameters)):
        if count >= _MOST_TRIES or time.process_time() > until:
            break
        try:
            torch.manual_seed(0)
            given = [eval(text, {"torch": torch}) for text in texts]
            leaves = [item for item in tree_leaves(model(*given)) if isinstance(item, torch.Tensor)]
            floats = [item for item in leaves if item.is_floating_point() and item.requires_grad]
            if floats:
                sum(item.float().square().mean() for item in floats).backward()  # type: ignore[union-attr]
                return texts, ""
            why = "no output of its forward has a gradient"
        except Exception as error:  # these inputs are not what it takes
            why = f"{type(error).__name__}: {str(error)[:160]}"
    return None, why
