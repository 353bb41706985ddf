"""Messages between the parent and the process that forks a child for each session."""

from __future__ import annotations

from dataclasses import dataclass

from torchstone.sandbox.cell import Limits


@dataclass(frozen=True, slots=True)
class Started:
    """What is loaded, by name with its version or, after an exclamation mark, why it is not."""

    loaded: dict[str, str]
    cpu_seconds: float
    root: str
    """What keeps paths of the machine out of sight."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the system that a child becomes."""

    command: list[str]
    environment: dict[str, str]
    readable: list[str]
    may_fork: bool


@dataclass(frozen=True, slots=True)
class Fork:
    """A child that works in a folder: a module that serves there, by name, or a program."""

    scratch: str
    limits: Limits
    device: bool
    work: str | Program


@dataclass(frozen=True, slots=True)
class Forked:
    """The child."""

    pid: int


@dataclass(frozen=True, slots=True)
class Reap:
    """Tell how a child that has ended did."""

    pid: int


@dataclass(frozen=True, slots=True)
class Reaped:
    """Its status, and the CPU time that it used."""

    status: int
    cpu_seconds: float
