"""Process groups: what `torch.distributed` keeps behind its functions."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from torch._C import _distributed_c10d as bindings
from torch._C._distributed_c10d import Work
from torch.distributed import distributed_c10d as c10d

__all__ = [
    "Work",
    "bindings",
    "default_device_of",
    "default_store",
    "device_of_objects",
    "make_fake_store",
    "new_group_with_tag",
    "sharding_modules",
    "world",
]

new_group_with_tag: Callable[..., Any] = c10d._new_group_with_tag
"""What `new_group` and every other way to a group end in."""
device_of_objects: Callable[..., Any] = c10d._get_object_coll_device
"""Where pickled objects are put to be sent."""
default_device_of: Callable[..., Any] = c10d._get_pg_default_device


def default_store() -> Any:
    """The store that all ranks of the default group share."""
    return c10d._get_default_store()


def world() -> Any:
    """Every group of this process."""
    return c10d._world


def make_fake_store() -> Any:
    """A store for a group whose other ranks do not exist."""
    from torch.testing._internal.distributed.fake_pg import FakeStore  # loads a test package

    return FakeStore()


def sharding_modules() -> tuple[ModuleType, ...]:
    """The modules of fully_shard that cut parameters; none where torch has no such modules."""
    try:
        from torch.distributed.fsdp._fully_shard import _fsdp_common, _fsdp_param
    except ImportError:
        return ()
    return (_fsdp_common, _fsdp_param)
