"""Checkpoints that are missing: modules and optimizers keep the state that they were made with."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection
from typing import Any


class MadeState(dict[Any, Any]):
    """A checkpoint with every key; its parts are such checkpoints, and zero where a number is wanted."""

    def __missing__(self, key: Any) -> MadeState:
        return MadeState()

    def get(self, key: Any, default: Any = None) -> Any:
        return MadeState()

    def __contains__(self, key: object) -> bool:
        return True

    def __int__(self) -> int:
        return 0

    __index__ = __int__

    def __float__(self) -> float:
        return 0.0

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    def __lt__(self, other: Any) -> bool:
        return bool(other > 0)

    def __gt__(self, other: Any) -> bool:
        return bool(other < 0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MadeState()

    def state_dict(self) -> MadeState:
        return self

    def to(self, *args: Any, **kwargs: Any) -> MadeState:
        return self


def replace_checkpoints(paths: Collection[str]) -> None:
    """`torch.load` of these paths gives a made state."""
    torch: Any = importlib.import_module("torch")
    real = torch.load

    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "")
        whole = os.path.abspath(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else ""
        if any(whole.endswith(path) for path in paths):
            return MadeState()
        return real(f, *args, **kwargs)

    torch.load = load
    keep_own_state()


def replace_downloads() -> None:
    """Weights that would be fetched from an address are made states; what `torch.hub` lists is empty."""
    hub: Any = importlib.import_module("torch.hub")

    def load_state_dict_from_url(url: str, *args: Any, **kwargs: Any) -> MadeState:
        return MadeState()

    real = hub.load_state_dict_from_url
    hub.load_state_dict_from_url = load_state_dict_from_url
    zoo: Any = importlib.import_module("torch.utils.model_zoo")
    zoo.load_url = load_state_dict_from_url
    _replace_hub(hub)
    _replace_everywhere(real, load_state_dict_from_url)
    keep_own_state()


_OF_TORCHVISION = "pytorch/vision"
"""The repository whose models an installed package has, too."""


def _replace_hub(hub: Any) -> None:
    """Repositories of `torch.hub` that cannot be fetched: none is listed, models of torchvision are made new."""
    real = hub.load

    def load(
        repo_or_dir: str, model: str, *args: Any, source: str = "github", **kwargs: Any
    ) -> Any:
        if source == "local" or not str(repo_or_dir).startswith(_OF_TORCHVISION):
            return real(repo_or_dir, model, *args, source=source, **kwargs)
        models = importlib.import_module("torchvision.models")
        own = {key: value for key, value in kwargs.items() if key not in _OF_HUB}
        return models.get_model(model, **own)

    hub.load, hub.list, hub.help = load, lambda *_, **__: [], lambda *_, **__: ""


_OF_HUB = frozenset(
    "pretrained weights force_reload trust_repo verbose skip_validation progress".split()
)
"""Keywords of fetching, and of weights that would be fetched."""


def _replace_everywhere(real: Any, value: Any) -> None:
    for module in list(sys.modules.values()):
        for name, held in list(getattr(module, "__dict__", {}).items()):
            if held is real:
                setattr(module, name, value)


def keep_own_state() -> None:
    """`load_state_dict` of a made state changes nothing."""
    torch = importlib.import_module("torch")
    result = importlib.import_module("torch.nn.modules.module")._IncompatibleKeys
    for kind in (torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler):
        _keep(kind, result)
    _keep_random_states(torch)


def _keep_random_states(torch: Any) -> None:
    """A made state of a generator leaves it as it is."""
    for module in (torch, torch.random, torch.cuda, torch.cuda.random):
        for name in ("set_rng_state", "set_rng_state_all"):
            if hasattr(module, name):
                setattr(module, name, _unless_made(getattr(module, name)))
    random = importlib.import_module("random")
    random.setstate = _unless_made(random.setstate)  # type: ignore[attr-defined]
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.set_state = _unless_made(numpy.random.set_state)


def _unless_made(real: Any) -> Any:
    def use(state: Any, *args: Any, **kwargs: Any) -> Any:
        return None if isinstance(state, MadeState) else real(state, *args, **kwargs)

    return use


def _keep(kind: Any, result: Any) -> None:
    real = kind.load_state_dict

    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state_dict, MadeState) or (isinstance(state_dict, dict) and not state_dict):
            return result([], [])
        return real(self, state_dict, *args, **kwargs)

    kind.load_state_dict = load_state_dict
