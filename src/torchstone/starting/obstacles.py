"""What the surroundings of a program lack: one class for each cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torchstone.core.place import Place
from torchstone.starting.cuts.forms import Form


@dataclass(frozen=True, slots=True)
class MissingPackage:
    """A package that is not installed."""

    kind: ClassVar[str] = "missing-package"
    name: str
    """As it is imported."""
    part: str = ""
    """The dotted name of the module of it that is missing."""


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
    places: tuple[Place, ...] = ()
    """The lines that looked for them, where that is known."""


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


@dataclass(frozen=True, slots=True)
class MissingWeights:
    """Weights that would be fetched from an address."""

    kind: ClassVar[str] = "missing-weights"
    url: str = ""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Made data that the program does not go on with, and what it says about them."""

    kind: ClassVar[str] = "misfit"
    what: Literal["size", "column", "fields", "number", "indices", "range", "count"]
    given: str = ""
    """The size, column or text that was refused."""
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class MissingArguments:
    """Arguments that a program insists on."""

    kind: ClassVar[str] = "missing-arguments"
    message: str
    needed: tuple[str, ...] = ()
    """Words that would satisfy it."""


@dataclass(frozen=True, slots=True)
class BrokenPackage:
    """An installed package whose native library cannot be loaded."""

    kind: ClassVar[str] = "broken-package"
    name: str


@dataclass(frozen=True, slots=True)
class BrokenCall:
    """An exception that was raised inside of an installed package."""

    kind: ClassVar[str] = "library"
    package: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class OlderPython:
    """Something that older versions of Python accept."""

    kind: ClassVar[str] = "older-python"
    what: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class OlderTorch:
    """Something that older versions of torch accept."""

    kind: ClassVar[str] = "older-torch"
    what: str
    """The name of what is put back."""


@dataclass(frozen=True, slots=True)
class StatedVersion:
    """A version of a package on which the program insists, while another one is installed."""

    kind: ClassVar[str] = "stated-version"
    package: str
    version: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class OtherKeyword:
    """A keyword that the installed version of a package does not take."""

    kind: ClassVar[str] = "other-keyword"
    package: str
    """The module of what was called."""
    name: str
    """Dotted name of what was called."""
    keyword: str
    installed: str = ""


@dataclass(frozen=True, slots=True)
class OtherModule:
    """A name that another module of the project has than the one that was imported under its name."""

    kind: ClassVar[str] = "other-module"
    module: str
    name: str
    folder: str
    """From which the other one is imported."""


@dataclass(frozen=True, slots=True)
class NoTime:
    """The time was over before the first optimizer step."""

    kind: ClassVar[str] = "no-time"


@dataclass(frozen=True, slots=True)
class MissingResource:
    """Something that a package of the language world would fetch."""

    kind: ClassVar[str] = "missing-resource"
    package: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class MissingOperators:
    """Operators of an installed package whose native library does not fit this build of torch."""

    kind: ClassVar[str] = "missing-operators"
    package: str


@dataclass(frozen=True, slots=True)
class Decided:
    """A value of code that was cut out: its form, or the parts that it has."""

    path: str
    scope: str
    place: tuple[str, ...]
    name: str
    form: Form | None = None
    parts: tuple[str, ...] = ()
    """Steps to the values that it holds."""


@dataclass(frozen=True, slots=True)
class OpenValues:
    """Values whose form was open, and what the program showed about them."""

    kind: ClassVar[str] = "open-values"
    decided: tuple[Decided, ...]


Obstacle = (
    MissingPackage
    | OtherVersion
    | StatedVersion
    | OlderPython
    | OlderTorch
    | MissingFile
    | EmptyData
    | NoNetwork
    | MissingCommand
    | MissingDataset
    | MissingPretrained
    | MissingOperators
    | MissingWeights
    | Misfit
    | MissingArguments
    | BrokenPackage
    | OtherKeyword
    | BrokenCall
    | OtherModule
    | NoTime
    | MissingResource
    | OpenValues
)
