"""What the surroundings of a program lack: one class for each cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class MissingPackage:
    """A package that is not installed."""

    kind: ClassVar[str] = "missing-package"
    name: str
    """As it is imported."""


@dataclass(frozen=True, slots=True)
class OtherVersion:
    """A name that the installed version of a package does not have."""

    kind: ClassVar[str] = "other-version"
    package: str
    """The module in which the name was looked for."""
    name: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A file or folder that is not there."""

    kind: ClassVar[str] = "missing-file"
    path: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class EmptyData:
    """A dataset without samples: its folder is missing or empty."""

    kind: ClassVar[str] = "empty-data"
    paths: tuple[str, ...] = ()
    """What the program looked for and did not find, the latest first."""


@dataclass(frozen=True, slots=True)
class NoNetwork:
    """Something is downloaded."""

    kind: ClassVar[str] = "network"
    what: str = ""


@dataclass(frozen=True, slots=True)
class MissingCommand:
    """A program of the system that is not installed."""

    kind: ClassVar[str] = "missing-command"
    name: str


@dataclass(frozen=True, slots=True)
class MissingDataset:
    """A dataset of torchvision that is not on this machine."""

    kind: ClassVar[str] = "missing-dataset"
    name: str


@dataclass(frozen=True, slots=True)
class MissingPretrained:
    """Weights, a configuration or a tokenizer of transformers that are not on this machine."""

    kind: ClassVar[str] = "missing-pretrained"
    name: str


Obstacle = (
    MissingPackage
    | OtherVersion
    | MissingFile
    | EmptyData
    | NoNetwork
    | MissingCommand
    | MissingDataset
    | MissingPretrained
)
