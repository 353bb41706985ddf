"""The candidate's process: it gets inputs and gives outputs; the right answers are not here."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness import c_kit, mindspore_kit, monitor, serving, weights
from torchstone.kernels.harness.cases import structure_of
from torchstone.kernels.harness.launches import Launches
from torchstone.kernels.harness.reference import as_tensor, leaves_of, state_of
from torchstone.kernels.harness.seeding import weights_of
from torchstone.kernels.harness.told import told
from torchstone.kernels.harness.values import (
    UnknownValueError,
    decode,
    encode,
    plain_place,
    raw_bytes,
)
from torchstone.kernels.harness.zones import Zones

_FILE = "candidate.py"


@dataclass(slots=True)
class Server:
    """One loaded candidate and what is watched while it runs."""

    implementation: str
    zones: Zones
    launches: Launches
    module: ModuleType
    library: c_kit.Library | None
    watching: bool
    guarded: bool
    models: dict[int, Any] = field(default_factory=dict)
    kept: list[Any] = field(default_factory=list)
    """The last outputs, which a later call must leave alone."""
    kept_digest: list[str] = field(default_factory=list)
    last_inputs: Any = None
    names: dict[str, str] | None = None
    """What the problem's weights are called here, where that is known."""

    def build(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Make `ModelNew` with the weights of a seed; names decide whether weights are handed in."""
        seed = int(header["seed"])
        init = decode(header["tree"]["init"], buffers, plain_place)
        state = decode(header["tree"]["state"], buffers, plain_place)
        with weights_of(seed):
            model = self.module.ModelNew(*init)
        own = state_of(model)
        names = weights.names_between(own, state)
        if seed == weights.CHANGED:
            self.names = names
        same_names = names is not None and all(old == new for old, new in names.items())
        equal = same_names and all(torch.equal(own[k], state[k].to(own[k].dtype)) for k in own)
        if same_names and not equal:
            _hand_over(model, state)
        self.models[seed] = model
        known = names is not None
        return {"names": same_names, "known": known, "equal": equal, "weights": len(state)}

    def reweigh(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Give the model of one seed, which has been called before, other weights."""
        state = decode(header["tree"]["state"], buffers, plain_place)
        assert self.names is not None
        named = {self.names[name]: value for name, value in state.items()}
        return {"done": weights.put(self.models[weights.CHANGED], named, header["way"])}

    def call(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """Run one case and tell everything about it."""
        self.zones.fill = header.get("fill", "nan")
        self.launches.order = header.get("order", self.launches.order)
        inputs = self._inputs(header, buffers)
        before = [_span(leaf) for leaf in leaves_of(inputs)]
        model = self.models[int(header.get("model", header["seed"]))]
        self.launches.start()
        monitor.start()
        operators = monitor.Operators()
        try:
            with self._around(operators):
                found = model(*inputs) if callable(model) else model.forward(*inputs)
        except Exception as error:
            return {"error": told(error), **self._watched(operators, inputs)}
        leaves = leaves_of(found)
        data: list[bytes] = []
        try:
            trees = [encoded(leaf, data) for leaf in leaves]
        except UnknownValueError as error:
            return {"error": {"kind": "", "text": f"gives {error}", "line": 0}}
        answer = {
            "tree": {"structure": structure_of(found), "leaves": trees},
            "aliases": self._aliases(leaves, before, model),
            "previous_changed": [digest_of(leaf) for leaf in self.kept] != self.kept_digest,
            **self._watched(operators, inputs),
        }
        self.kept, self.kept_digest = leaves, [digest_of(leaf) for leaf in leaves]
        if self.library is not None:
            answer["records"] = _on_wire(c_kit.taken(self.library), data)
        return answer, data

    def _inputs(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """New buffers, or new contents in the buffers of the last call."""
        known = leaves_of(self.last_inputs)
        # tensors of mindspore have no memory that could be filled anew
        same_memory = not any(mindspore_kit.is_tensor(leaf) for leaf in known)
        if header.get("reuse") and self.last_inputs is not None and same_memory:
            fresh = decode(header["tree"], buffers, plain_place)
            for old, new in zip(leaves_of(self.last_inputs), leaves_of(fresh), strict=True):
                if isinstance(old, torch.Tensor):
                    with torch.no_grad():
                        old.copy_(new)
                elif isinstance(old, np.ndarray):
                    old[...] = new
            return self.last_inputs
        self.zones.clear()
        place = self.zones.place if self.guarded else plain_place
        inputs = decode(header["tree"], buffers, place)
        if self.watching and self.implementation != "numpy":
            inputs = [monitor.watched(item) for item in inputs]
        self.last_inputs = inputs
        return inputs

    @contextlib.contextmanager
    def _around(self, operators: monitor.Operators) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            if self.watching:
                stack.enter_context(operators)
            if self.guarded:
                stack.enter_context(self.zones.numpy_patched())
                self.zones.active = True
            try:
                yield
            finally:
                self.zones.active = False

    def _watched(self, operators: monitor.Operators, inputs: Any) -> dict[str, Any]:
        seen = dict(operators.computing)
        if self.implementation != "numpy":
            seen |= dict(monitor.Watched.seen)
        return {
            "launches": self.launches.launches, "programs": self.launches.programs,
            "work": self.launches.work, "kernels": self.launches.kernels,
            "faults": self.launches.faults, "zones": self.zones.broken() if self.guarded else [],
            "operators": sorted(seen) if self.watching else [],
            "inputs_after": [digest_of(leaf) for leaf in leaves_of(inputs)],
        }  # fmt: skip

    def _aliases(self, leaves: list[Any], inputs: list[Any], model: Any) -> list[str]:
        weights = [_span(item) for item in getattr(model, "parameters", lambda: ())()]
        kept = [_span(leaf) for leaf in self.kept]
        spans = [_span(leaf) for leaf in leaves]
        found = []
        for i, span in enumerate(spans):
            groups = (("an input", inputs), ("a weight", weights), ("an earlier answer", kept),
                      ("another output", spans[:i]))  # fmt: skip
            found += [what for what, others in groups if any(_meet(span, item) for item in others)]
        return found

    def time(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Seconds of one call on fresh inputs, with nothing watched."""
        inputs = decode(header["tree"], buffers, plain_place)
        model = self.models[int(header["seed"])]
        call = model if callable(model) else model.forward
        with torch.no_grad():
            start = time.perf_counter()
            call(*inputs)
            return {"seconds": time.perf_counter() - start}


def _hand_over(model: Any, state: dict[str, torch.Tensor]) -> None:
    if isinstance(model, torch.nn.Module):
        model.load_state_dict(state)
        return
    if mindspore_kit.is_cell(model):
        mindspore_kit.put_weights(model, {k: v.numpy() for k, v in state.items()})
        return
    for name, value in state.items():
        setattr(model, name, value.numpy())


def encoded(leaf: Any, data: list[bytes]) -> dict[str, Any]:
    """An output on the wire; an UnknownValueError for what no problem gives."""
    if isinstance(leaf, torch.Tensor):
        if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
            raise UnknownValueError(f"a subclass of Tensor, {type(leaf).__name__}")
        if leaf.layout != torch.strided or leaf.device.type != "cpu":
            raise UnknownValueError(f"a {leaf.layout} tensor on {leaf.device.type}")
    if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, monitor.Watched):
        raise UnknownValueError(f"a subclass of ndarray, {type(leaf).__name__}")
    return encode(monitor.plain(leaf), data)


def digest_of(leaf: Any) -> str:
    """What the elements of a leaf are, in few letters; empty for a plain number."""
    tensor = as_tensor(monitor.plain(leaf))
    return hashlib.sha256(raw_bytes(tensor)).hexdigest() if tensor is not None else ""


def _span(leaf: Any) -> tuple[int, int]:
    """Addresses that a leaf reaches; (0, 0) for a plain number."""
    if isinstance(leaf, np.ndarray):
        low, high = np.lib.array_utils.byte_bounds(leaf)
        return (int(low), int(high)) if leaf.size else (0, 0)
    if not isinstance(leaf, torch.Tensor) or not leaf.numel():
        return 0, 0
    last = sum((n - 1) * s for n, s in zip(leaf.shape, leaf.stride(), strict=True))
    return leaf.data_ptr(), leaf.data_ptr() + (last + 1) * leaf.element_size()


def _meet(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[0] < two[1] and two[0] < one[1]


def _on_wire(records: list[dict[str, Any]], data: list[bytes]) -> list[dict[str, Any]]:
    """Recorded calls with their bytes moved to the buffers of the message."""
    for record in records:
        for item in record["arguments"]:
            if "data" in item:
                data.append(item.pop("data"))
                item["buffer"] = len(data) - 1
    return records


def _load(header: dict[str, Any]) -> Server:
    """Put the watchers in place, then import the candidate."""
    implementation, mode = header["implementation"], header["mode"]
    zones = Zones(mode.get("fill", "nan"))
    launches = Launches(bool(mode.get("ghost")), mode.get("order", "forward"))
    plain_run = bool(mode.get("plain"))
    watching = implementation != "torch" and not plain_run
    library = None
    if not plain_run:
        zones.install()
        if watching and implementation != "numpy":
            monitor.watch_tensors()
    if implementation == "triton":
        from torchstone.kernels.harness import triton_kit

        triton_kit.install(launches)
    elif implementation == "numba":
        _load_numba(launches, mode, plain_run)
    elif implementation == "c":
        library = c_kit.Library(
            header["library"], header["prototypes"], launches, bool(mode.get("record"))
        )
        sys.modules["torchstone_kernel"] = c_kit.module(library)
    module = import_candidate(header["source"])
    return Server(implementation, zones, launches, module, library, watching, not plain_run)


def _load_numba(launches: Launches, mode: dict[str, Any], plain_run: bool) -> None:
    from torchstone.kernels.harness import numba_kit

    config: Any = importlib.import_module("numba").config
    config.BOUNDSCHECK = None if plain_run else 1
    if mode.get("without_compiler"):
        numba_kit.without_compiler(launches)
    if not plain_run:
        numba_kit.install(launches, _numpy_as_it_was)


@contextlib.contextmanager
def _numpy_as_it_was() -> Iterator[None]:
    patched = {name: getattr(np, name) for name in _ORIGINALS}
    for name, value in _ORIGINALS.items():
        setattr(np, name, value)
    try:
        yield
    finally:
        for name, value in patched.items():
            setattr(np, name, value)


_ORIGINALS = {
    name: getattr(np, name)
    for name in ("empty", "zeros", "ones", "full", "empty_like", "zeros_like", "ones_like",
                 "full_like")
}  # fmt: skip


def import_candidate(source: str) -> ModuleType:
    """Import the candidate from the scratch folder; our own package cannot be imported there."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchstone"]:
        del sys.modules[name]
    sys.modules["torchstone"] = None  # type: ignore[assignment]
    path = Path(_FILE).resolve()
    path.write_text(source, "utf-8")
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    if not callable(getattr(module, "ModelNew", None)):
        raise AttributeError("the candidate does not define ModelNew")
    return module


def serve(channel: socket.socket, walls: dict[str, str]) -> None:
    """Answer the parent until it hangs up."""
    serving.serve(channel, walls, _load)
