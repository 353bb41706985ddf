"""Environments with the interface of gym, on top of gymnasium where that is installed.

Programs of before version 0.26 take four values from a step and one from a reset: what the calling line
takes is what it is given.
"""

from __future__ import annotations

import dis
import importlib
import random
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

__version__ = "0.21.0"
_PIXELS = re.compile(r"NoFrameskip|^ALE/|Pong|Breakout|Atari|SpaceInvaders|Qbert|Seaquest", re.I)
_DISCRETE = re.compile(r"CartPole|MountainCar-|LunarLander-|Acrobot|FrozenLake|Taxi|Discrete", re.I)
_LENGTH = 100
"""Steps of a made episode."""


class _Space:
    shape: tuple[int, ...] = ()
    dtype: Any = np.float32

    def seed(self, seed: Any = None) -> list[Any]:
        return [seed]


class Discrete(_Space):
    """Numbers from 0 on."""

    def __init__(self, n: int, *_: Any, **__: Any) -> None:
        self.n = int(n)
        self.dtype = np.int64

    def sample(self) -> int:
        return random.randrange(self.n)

    def contains(self, value: Any) -> bool:
        return 0 <= int(value) < self.n


class Box(_Space):
    """Arrays between two bounds."""

    def __init__(
        self, low: Any, high: Any, shape: Any = None, dtype: Any = np.float32, **_: Any
    ) -> None:
        self.shape = tuple(shape) if shape is not None else np.shape(low)
        self.dtype = np.dtype(dtype)
        self.low = np.broadcast_to(np.asarray(low, dtype), self.shape).copy()
        self.high = np.broadcast_to(np.asarray(high, dtype), self.shape).copy()

    def sample(self) -> Any:
        low, high = np.maximum(self.low, -10.0), np.minimum(self.high, 10.0)
        return np.random.uniform(low, high).astype(self.dtype)

    def contains(self, value: Any) -> bool:
        return bool(np.shape(value) == self.shape)


class Env:
    """What programs inherit from."""

    metadata: dict[str, Any] = {}  # noqa: RUF012  as of the package
    reward_range = (-float("inf"), float("inf"))
    spec: Any = None
    observation_space: Any
    action_space: Any

    @property
    def unwrapped(self) -> Any:
        return self

    def seed(self, seed: Any = None) -> list[Any]:
        return [seed]

    def render(self, *args: Any, **kwargs: Any) -> Any:
        return np.zeros((64, 64, 3), np.uint8)

    def close(self) -> None:
        pass


class Wrapper(Env):
    """Hands on to another environment."""

    def __init__(self, env: Any) -> None:
        self.env = env
        self.observation_space, self.action_space = env.observation_space, env.action_space
        self.spec = getattr(env, "spec", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["env"], name)

    @property
    def unwrapped(self) -> Any:
        return self.env.unwrapped

    def reset(self, **kwargs: Any) -> Any:
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        return self.env.step(action)


class ObservationWrapper(Wrapper):
    """Changes what is seen."""

    def reset(self, **kwargs: Any) -> Any:
        return self.observation(self.env.reset(**kwargs))

    def step(self, action: Any) -> Any:
        seen, *others = self.env.step(action)
        return (self.observation(seen), *others)

    def observation(self, observation: Any) -> Any:
        return observation


class RewardWrapper(Wrapper):
    """Changes the reward."""

    def step(self, action: Any) -> Any:
        seen, reward, *others = self.env.step(action)
        return (seen, self.reward(reward), *others)

    def reward(self, reward: Any) -> Any:
        return reward


class ActionWrapper(Wrapper):
    """Changes the action."""

    def step(self, action: Any) -> Any:
        return self.env.step(self.action(action))

    def action(self, action: Any) -> Any:
        return action


class _Spec:
    def __init__(self, name: str) -> None:
        self.id = name
        self.max_episode_steps = _LENGTH
        self.reward_threshold = 0.0


class _Made(Env):
    """An environment of the kind that its name says, with random observations."""

    def __init__(self, name: str) -> None:
        self.spec = _Spec(name)
        self._left = _LENGTH
        pixels = _PIXELS.search(name)
        self.observation_space = (
            Box(0, 255, (210, 160, 3), np.uint8) if pixels else Box(-np.inf, np.inf, (8,))
        )
        self.action_space: Any = (
            Discrete(4) if pixels or _DISCRETE.search(name) else Box(-1.0, 1.0, (2,))
        )
        self.ale = self
        self._max_episode_steps = _LENGTH

    def get_action_meanings(self) -> list[str]:
        return ["NOOP", "FIRE", "RIGHT", "LEFT"]

    def lives(self) -> int:
        return 1

    def reset(self, **_: Any) -> Any:
        self._left = _LENGTH
        return _given(self.observation_space.sample(), sys._getframe(1))

    def step(self, action: Any) -> Any:
        del action
        self._left -= 1
        seen, done = self.observation_space.sample(), self._left <= 0
        return _step(seen, random.random(), done, False, {}, sys._getframe(1))


class _Real(Wrapper):
    """An environment of gymnasium."""

    def reset(self, **kwargs: Any) -> Any:
        seen, _ = self.env.reset(
            **{key: kwargs[key] for key in kwargs if key in ("seed", "options")}
        )
        return _given(seen, sys._getframe(1))

    def step(self, action: Any) -> Any:
        seen, reward, ended, cut, info = self.env.step(action)
        return _step(seen, reward, ended, cut, info, sys._getframe(1))


def _step(
    seen: Any, reward: Any, ended: bool, cut: bool, info: Any, frame: FrameType | None
) -> Any:
    if _taken(frame) == 5:
        return seen, float(reward), ended, cut, info
    return seen, float(reward), bool(ended or cut), info


def _given(seen: Any, frame: FrameType | None) -> Any:
    return (seen, {}) if _taken(frame) == 2 else seen


def _taken(frame: FrameType | None) -> int:
    """How many values the calling line unpacks; 0 where it takes one."""
    if frame is None:
        return 0
    steps = [item for item in dis.get_instructions(frame.f_code) if item.offset > frame.f_lasti]
    first = next((item for item in steps if item.opname != "CACHE"), None)
    return int(first.argval) if first is not None and first.opname == "UNPACK_SEQUENCE" else 0


def make(id: Any, **kwargs: Any) -> Env:
    """The environment of gymnasium, else a made one."""
    name = str(getattr(id, "id", id))
    if name in _REGISTERED:
        return _REGISTERED[name]()
    try:
        library = importlib.import_module("gymnasium")
    except ImportError:
        return _Made(name)
    try:
        return _Real(library.make(name))
    except (
        Exception
    ):  # gymnasium has a class of errors of its own for each reason that it has no such environment
        return _Made(name)


_REGISTERED: dict[str, Callable[[], Env]] = {}


def register(id: str, entry_point: Any = None, **kwargs: Any) -> None:
    """`module:Class`, or a class."""
    given = kwargs.get("kwargs") or {}

    def construct() -> Env:
        kind = entry_point
        if isinstance(kind, str):
            home, _, name = kind.partition(":")
            kind = getattr(importlib.import_module(home), name)
        made: Env = kind(**given)
        return made

    _REGISTERED[id] = construct


class spaces:  # noqa: N801  the names of modules of the package
    """`gym.spaces`."""

    Discrete, Box, Space = Discrete, Box, _Space


class envs:  # noqa: N801
    """`gym.envs`."""

    class registration:  # noqa: N801
        """`gym.envs.registration`."""

        register = staticmethod(register)


class wrappers:  # noqa: N801
    """`gym.wrappers`."""

    Monitor = RecordVideo = RecordEpisodeStatistics = TimeLimit = staticmethod(
        lambda env, *_, **__: env
    )


class logger:  # noqa: N801
    """`gym.logger`."""

    @staticmethod
    def set_level(*_: Any) -> None:
        pass


Space = _Space
