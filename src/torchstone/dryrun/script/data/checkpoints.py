"""Checkpoints: what is saved is remembered by its path, and given back when it is loaded."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
from pathlib import Path
from typing import Any

import torch

from torchstone.dryrun.script.data.shared_checkpoints import SharedCheckpoints
from torchstone.dryrun.script.patches import put
from torchstone.dryrun.session import Session, is_fake
from torchstone.observe.compat.trees import tree_leaves
from torchstone.starting.replacements.imports import when_imported

_HOLDERS = ("accelerate.", "transformers.modeling", "transformers.trainer", "diffusers.", "peft.")
"""Modules that import functions of safetensors by name."""


def keep_checkpoints(session: Session) -> None:
    """`torch.save` and `torch.load` work on memory wherever fake tensors take part."""
    saved: dict[Any, Any] = {}
    ranks = SharedCheckpoints(session) if session.settings.play_ranks and session.settings.scratch else None  # fmt: skip
    real_save, real_load = torch.save, torch.load

    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
        session.counts.add("saves")
        if isinstance(f, io.BytesIO) and not holds_fakes(obj):
            real_save(obj, f, *args, **kwargs)  # pickling a real tensor goes through here
            return
        _refuse_missing_folder(f)
        key = _key(f)
        saved[key] = _copied(obj)
        if ranks is not None and isinstance(key, str):
            ranks.put(key, saved[key])
        _leave_a_file(f)

    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        session.counts.add("loads")
        key = _key(f)
        if ranks is not None and isinstance(key, str) and ranks.holds(key):
            return ranks.get(key)
        if key in saved:
            return _copied(saved[key])
        if "map_location" in kwargs or args:
            kwargs = {**kwargs, "map_location": "cpu"}
        return real_load(f, **kwargs)

    torch.save, torch.load = save, load
    _pretend_safetensors(session, saved)
    _pretend_pretrained(session)


def holds_fakes(obj: Any) -> bool:
    """Is there a fake tensor anywhere in it?"""
    if isinstance(obj, torch.nn.Module):
        return any(is_fake(item) for item in obj.parameters())
    with contextlib.suppress(Exception):
        return any(
            is_fake(item) or (isinstance(item, torch.nn.Module) and holds_fakes(item))
            for item in tree_leaves(obj)
        )
    return True


def _copied(obj: Any) -> Any:
    """The containers anew, the tensors as they are: loading must not change what was saved."""
    if isinstance(obj, dict):
        made = copy.copy(obj)
        for key, value in obj.items():
            made[key] = _copied(value)
        return made
    if type(obj) in (list, tuple):
        return type(obj)(_copied(item) for item in obj)
    if isinstance(obj, torch.Tensor):
        return obj.detach()
    return obj


def _key(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        return os.path.abspath(os.fspath(f))
    name = getattr(f, "name", None)
    return os.path.abspath(name) if isinstance(name, str) else id(f)


def _refuse_missing_folder(f: Any) -> None:
    if isinstance(f, (str, os.PathLike)):
        parent = os.path.dirname(os.path.abspath(os.fspath(f)))
        if not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")


def _leave_a_file(f: Any) -> None:
    """Programs ask whether the file is there."""
    if isinstance(f, (str, os.PathLike)):
        Path(f).write_bytes(b"dry run")
    elif hasattr(f, "write"):
        f.write(b"dry run")


def _pretend_safetensors(session: Session, saved: dict[Any, Any]) -> None:
    with contextlib.suppress(ImportError):
        import safetensors.torch as library

        real_load = library.load_file

        def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
            session.counts.add("saves")
            saved[_key(filename)] = dict(tensors)
            _leave_a_file(filename)

        def load_file(filename: Any, device: Any = "cpu") -> Any:
            session.counts.add("loads")
            key = _key(filename)
            return dict(saved[key]) if key in saved else real_load(filename)

        def save_model(model: Any, filename: str, *args: Any, **kwargs: Any) -> None:
            save_file(model.state_dict(), filename)

        for name, value in (
            ("save_file", save_file),
            ("load_file", load_file),
            ("save_model", save_model),
        ):
            _put_everywhere(library, name, value)


def _put_everywhere(library: Any, name: str, value: Any) -> None:
    """In the place of a function in its module, and where libraries have imported it under any name."""
    original = getattr(library, name)
    put(library, name, value)
    for home in [item for item in sys.modules if item.startswith(_HOLDERS)]:
        for key, held in list(vars(sys.modules[home]).items()):
            if held is original:
                put(sys.modules[home], key, value)


def _pretend_pretrained(session: Session) -> None:
    """All fake storages share one address, which transformers takes for tied weights."""

    module = sys.modules.get("transformers.modeling_utils")
    if module is None:
        when_imported("transformers.modeling_utils", lambda: _pretend_pretrained(session))
        return

    def save_pretrained(model: Any, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        session.counts.add("saves")
        os.makedirs(save_directory, exist_ok=True)
        if hasattr(model, "config"):
            model.config.save_pretrained(save_directory)
        session.note("save_pretrained wrote the configuration only")

    put(module.PreTrainedModel, "save_pretrained", save_pretrained)
