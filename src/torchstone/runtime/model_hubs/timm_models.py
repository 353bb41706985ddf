"""Models of timm, in an environment that has it."""

from __future__ import annotations

import importlib
from typing import Any

from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.options import unknown
from torchstone.core.text import Text
from torchstone.runtime.model_hubs.hub_config import parse_changes
from torchstone.runtime.model_hubs.torchvision_repair import repair_torchvision
from torchstone.runtime.user_code import describe, guarded


def prepare_timm(spec: str) -> tuple[Any, dict[str, Any]]:
    """A function that builds `resnet50?num_classes=10`, and the model's inputs as timm says."""
    name, _, query = spec.partition("?")
    where = f"timm:{name}"
    changes = parse_changes(query, f"timm:{spec}")
    package = timm()
    if not package.is_model(name):
        raise unknown(
            where,
            name,
            package.list_models(),
            UsageError,
            Text(
                "`python -c 'import timm; print(timm.list_models())'` lists them",
                "`python -c 'import timm; print(timm.list_models())'` 可列出全部名称",
            ),
        )

    def build() -> nn.Module:
        model: nn.Module = package.create_model(name, **changes)
        return model

    return build, _settings(package, name, where)


def timm() -> Any:
    """The package, or an error that says how to have it."""
    try:
        repair_torchvision()
        return importlib.import_module("timm")
    except (ImportError, RuntimeError) as error:
        raise InputError(
            "timm:",
            describe(error),
            Text(
                "timm, and a torchvision that was built for this torch",
                "timm，以及为当前 torch 构建的 torchvision",
            ),
            Text(
                "make an environment of its own: `python -m venv timm-env && timm-env/bin/pip "
                "install torchstone torch torchvision timm` (for a CPU add `--index-url "
                "https://download.pytorch.org/whl/cpu` to torch and torchvision); a torchvision "
                "of another build beside this torch also breaks transformers",
                "请使用单独的环境：`python -m venv timm-env && timm-env/bin/pip install "
                "torchstone torch torchvision timm`（仅用 CPU 时为 torch 与 torchvision 加上 "
                "`--index-url https://download.pytorch.org/whl/cpu`）；与当前 torch 构建不一致的 "
                "torchvision 也会使 transformers 无法使用",
            ),
        ) from None


def _settings(package: Any, name: str, where: str) -> dict[str, Any]:
    """What timm says of a model: `input_size` and more."""
    with guarded(where):
        found = package.models.get_pretrained_cfg(name)
        return dict(found.to_dict()) if found is not None else {}
