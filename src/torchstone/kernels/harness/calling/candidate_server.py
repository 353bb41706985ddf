"""The candidate's process: it gets inputs and gives outputs; the right answers are not here."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling import bursts, monitor
from torchstone.kernels.harness.calling import weight_changes as weights
from torchstone.kernels.harness.calling.keeping import Kept, digest_of, meet, span_of
from torchstone.kernels.harness.calling.kernel_server import KernelServer
from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.red_zones import Zones, bound_views
from torchstone.kernels.harness.calling.shared_calls import (
    SharedCalls,
    about_answer,
    question_from_wire,
)
from torchstone.kernels.harness.calling.told import Saying, told
from torchstone.kernels.harness.calling.unwritten import fill_new_memory
from torchstone.kernels.harness.inputs.cases import structure_of
from torchstone.kernels.harness.kits import c_kit, cuda_looks, mindspore_kit
from torchstone.kernels.harness.reference.running import leaves_of, state_of
from torchstone.kernels.harness.seeding import weights_of
from torchstone.kernels.harness.shared_arrays import Mapped
from torchstone.kernels.harness.shared_heap import SharedHeap
from torchstone.kernels.harness.values import (
    UnknownValueError,
    decode,
    encode,
    plain_place,
)

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
    mapped: Mapped = field(default_factory=lambda: Mapped(()))
    """The memory that is shared with the referee."""
    models: dict[int, Any] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    last_inputs: Any = None
    names: dict[str, str] | None = None
    """What the problem's weights are called here, where that is known."""
    names_of: dict[int, dict[str, str] | None] = field(default_factory=dict)

    def looking(self) -> contextlib.AbstractContextManager[None]:
        """What code of the candidate runs in: a kernel of Triton sees a device."""
        return cuda_looks.looking() if self.implementation == "triton" else contextlib.nullcontext()

    def build(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Make `ModelNew` with the weights of a seed; names decide whether weights are handed in."""
        seed = int(header["seed"])
        init = decode(header["tree"]["init"], buffers, plain_place)
        state = decode(header["tree"]["state"], buffers, plain_place)
        with weights_of(seed), self.looking():
            model = self.module.ModelNew(*init)
        if header["tree"]["evaluate"] and isinstance(model, torch.nn.Module):
            model.eval()
        own = state_of(model)
        names = weights.names_between(own, state)
        self.names_of[seed] = names
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
        before = [span_of(leaf) for leaf in leaves_of(inputs)]
        model = self.models[int(header.get("model", header["seed"]))]
        if "evaluate" in header and isinstance(model, torch.nn.Module):
            model.train(not header["evaluate"])
        self.launches.start()
        if header.get("record_launches"):
            self.launches.recorder.begin()
        monitor.start()
        operators, chance = monitor.Operators(), monitor.chance()
        try:
            with self._around(operators):
                found = model(*inputs) if callable(model) else model.forward(*inputs)
        except Exception as error:
            return {"error": told(error), **self._watched(operators, inputs)}
        data: list[bytes] = []
        try:
            leaves = bare_leaves(found)
            trees = [encoded(leaf, data) for leaf in leaves]
        except UnknownValueError as error:
            return {"error": told(error, f"gives {error}")}
        answer = {
            "tree": {"structure": structure_of(found), "leaves": trees},
            "aliases": self._aliases(leaves, before, model),
            "previous_changed": self.kept.changed(),
            "drawn": monitor.chance() != chance,
            **self._watched(operators, inputs),
        }
        self.kept.add(leaves)
        if self.library is not None:
            answer["records"] = _on_wire(c_kit.taken(self.library), data)
        if header.get("record_launches"):
            recorder = self.launches.recorder
            recorder.on = False
            answer |= {"recorded": recorder.launches, "trouble": recorder.trouble,
                       "recorded_from": len(data)}  # fmt: skip
            data += recorder.buffers
        return answer, data

    def burst(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """Run several cases with nothing between them, and only then tell what came out."""
        calls = []
        for item in header["cases"]:
            inputs = decode(item["tree"], buffers[item["start"] :], plain_place)
            calls.append((self.models[int(item["seed"])], inputs))
        self.launches.start()
        if self.library is not None:
            self.library.recording(False)
        with self.looking():
            found = bursts.in_a_row(calls, header["setting"])
        data: list[bytes] = []
        answers = [_told_answer(item, data) for item in found]
        told_all: dict[str, Any] = {
            "answers": answers,
            "overlapping": bursts.overlapping(found, calls),
        }
        if header["times"]:
            told_all |= bursts.again(*calls[0], int(header["times"]))  # compiled: no device to see
        if self.library is not None:
            self.library.recording(True)
        return told_all, data

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
            stack.enter_context(self.looking())
            if self.watching:
                stack.enter_context(operators)
            if self.guarded:
                stack.enter_context(self.zones.numpy_patched())
                if self.watching and self.implementation != "numpy":
                    stack.enter_context(monitor.arrays_stay_watched())
                self.zones.active = True
            try:
                yield
            finally:
                self.zones.active = False

    def _watched(self, operators: monitor.Operators, inputs: Any) -> dict[str, Any]:
        after = [digest_of(leaf) for leaf in leaves_of(inputs)]
        return {**self._counted(operators), "inputs_after": after}

    def _counted(self, operators: monitor.Operators) -> dict[str, Any]:
        """What the kernels of this call did, and what ran beside them."""
        seen = dict(operators.computing)
        if self.implementation != "numpy":
            seen |= dict(monitor.Watched.seen)
        return {
            "launches": self.launches.launches, "programs": self.launches.programs,
            "work": self.launches.work, "kernels": self.launches.kernels,
            "faults": self.launches.faults, "zones": self.zones.broken() if self.guarded else [],
            "operators": sorted(seen) if self.watching else [],
        }  # fmt: skip

    def _aliases(self, leaves: list[Any], inputs: list[Any], model: Any) -> list[str]:
        weights = [span_of(item) for item in getattr(model, "parameters", lambda: ())()]
        kept = self.kept.spans()
        spans = [span_of(leaf) for leaf in leaves]
        found = []
        for i, span in enumerate(spans):
            groups = (("an input", inputs), ("a weight", weights), ("an earlier answer", kept),
                      ("another output", spans[:i]))  # fmt: skip
            found += [what for what, others in groups if any(meet(span, item) for item in others)]
        return found

    def state(self, header: dict[str, Any], _: list[bytes]) -> Any:
        """The weights and buffers of a model by their names in the problem."""
        names = self.names_of[int(header["seed"])] or {}
        own = state_of(self.models[int(header["seed"])])
        data: list[bytes] = []
        tree = encode({old: own[new] for old, new in names.items()}, data)
        return {"tree": tree}, data

    def timed(self, header: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        """Answer several fresh inputs with nothing watched; whoever asks holds the clock."""
        model = self.models[0]
        calls = SharedCalls.find(question_from_wire(header), self.mapped)
        calls.answer_all(model if callable(model) else model.forward)
        return {"number": header["number"]}

    def idle(self, header: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        """Ask the functions for nothing, so many times: what asking alone costs."""
        assert self.library is not None
        c_kit.ask_for_nothing(self.library, int(header["times"]))
        return {}

    def in_full(self, header: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
        """Answer the problem's own inputs at their own sizes."""
        self.zones.clear()
        self.zones.fill = "nan"
        calls = SharedCalls.find(question_from_wire(header), self.mapped)
        model = self.models[0]
        (inputs,) = calls.given()
        if self.watching and self.implementation != "numpy":
            inputs = [monitor.watched(item) for item in inputs]
        self.launches.start()
        self.launches.side_by_side = True
        self.launches.until_cpu_seconds = time.process_time() + float(header["seconds"])
        if self.library is not None:
            self.library.recording(False)
        monitor.start()
        operators = monitor.Operators()
        try:
            with self._around(operators):
                found = model(*inputs) if callable(model) else model.forward(*inputs)
            leaves = bare_leaves(found)
        except UnknownValueError as error:
            return {"error": told(error, f"gives {error}")}
        except Exception as error:
            return {"error": told(error), **self._counted(operators)}
        counted = self._counted(operators)  # before this process does anything of its own
        calls.put([monitor.plain(leaf) for leaf in leaves])
        return {
            "about": {**about_answer(leaves), "structure": structure_of(found)},
            "changed": calls.changed_input(self.mapped.handles[0]),
            "left_out": self.launches.left_out,
            **counted,
        }


def _hand_over(model: Any, state: dict[str, torch.Tensor]) -> None:
    if isinstance(model, torch.nn.Module):
        model.load_state_dict(state)
        return
    if mindspore_kit.is_cell(model):
        mindspore_kit.put_weights(model, {k: v.numpy() for k, v in state.items()})
        return
    for name, value in state.items():
        setattr(model, name, value.numpy())


def _told_answer(found: Any, data: list[bytes]) -> dict[str, Any]:
    """One answer of a burst on the wire, or the error that stood in its place."""
    if isinstance(found, Exception):
        return {"error": told(found)}
    start = len(data)
    try:
        trees = [encoded(leaf, data) for leaf in bare_leaves(found)]
    except UnknownValueError as error:
        return {"error": told(error, f"gives {error}")}
    for tree in trees:
        if "buffer" in tree:
            tree["buffer"] -= start
    tree = {"structure": structure_of(found), "leaves": trees}
    return {"tree": tree, "start": start, "count": len(data) - start}


_DETACH = torch.Tensor.detach
"""Taken before a candidate is near: an answer may carry a method of its own under this name."""


def bare_leaves(found: Any) -> list[Any]:
    """The leaves of an answer as tensors that share its memory and nothing else."""
    leaves = leaves_of(found)
    refuse_other_tensors(leaves)
    return [_DETACH(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def refuse_other_tensors(leaves: Iterable[Any]) -> None:
    """An UnknownValueError for outputs that no problem gives."""
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
                raise UnknownValueError(f"a subclass of Tensor, {type(leaf).__name__}")
            if leaf.layout != torch.strided or leaf.device.type != "cpu":
                raise UnknownValueError(f"a {leaf.layout} tensor on {leaf.device.type}")
        if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, monitor.Watched):
            raise UnknownValueError(f"a subclass of ndarray, {type(leaf).__name__}")


def encoded(leaf: Any, data: list[bytes]) -> dict[str, Any]:
    """An output on the wire; an UnknownValueError for what no problem gives."""
    refuse_other_tensors([leaf])
    return encode(monitor.plain(leaf), data)


def _on_wire(records: list[dict[str, Any]], data: list[bytes]) -> list[dict[str, Any]]:
    """Recorded calls with their bytes moved to the buffers of the message."""
    for record in records:
        for item in record["arguments"]:
            if "data" in item:
                data.append(item.pop("data"))
                item["buffer"] = len(data) - 1
    return records


def _runner(shared: tuple[int, ...], mapped: Mapped) -> c_kit.Runner:
    """The process with the candidate's functions, and the memory that this one shares with it."""
    link, heap = shared[2:4]
    return c_kit.Runner(socket.socket(fileno=link), SharedHeap(heap), mapped)


def _load(header: dict[str, Any], shared: tuple[int, ...] = ()) -> Server | KernelServer:
    """Put the watchers in place, then import the candidate; or its kernels alone."""
    implementation, mode = header["implementation"], header["mode"]
    Saying.words = not mode.get("without_words")
    if mode.get("kernels_only"):
        return _load_kernels(header, shared)
    zones = Zones(mode.get("fill", "nan"))
    launches = Launches(bool(mode.get("ghost")), mode.get("order", "forward"))
    plain_run = bool(mode.get("plain"))
    watching = implementation != "torch" and not plain_run
    library = None
    if not plain_run:
        fill_new_memory()
        zones.install()
        if implementation != "numba":  # its compiler knows the function by identity
            bound_views()
        if watching and implementation != "numpy":
            monitor.watch_tensors()
    if implementation == "triton":
        from torchstone.kernels.harness.kits import triton_kit

        triton_kit.install(launches, lambda: _interpreting(zones))
        cuda_looks.install()
    elif implementation == "numba":
        _load_numba(launches, mode, plain_run)
    mapped = Mapped(shared)
    if implementation == "c":
        runner = _runner(shared, mapped)
        runner.margin_bytes = 0 if plain_run else runner.margin_bytes
        zones.allocate = runner.heap.empty
        library = c_kit.Library(header["prototypes"], launches, bool(mode.get("record")), runner)
        sys.modules["torchstone_kernel"] = c_kit.module(library)
    looks = cuda_looks.looking() if implementation == "triton" else contextlib.nullcontext()
    with looks:
        module = import_candidate(header["source"])
    return Server(implementation, zones, launches, module, library, watching, not plain_run, mapped)


def _load_kernels(header: dict[str, Any], shared: tuple[int, ...]) -> KernelServer:
    """Nothing of the candidate but its kernels, with nothing watched."""
    library = None
    if header["implementation"] == "c":
        runner = _runner(shared, Mapped(shared))
        library = c_kit.Library(header["prototypes"], Launches(), False, runner)
    if header["implementation"] == "triton":
        cuda_looks.install()
    return KernelServer(import_source(header["source"]), library)


def _load_numba(launches: Launches, mode: dict[str, Any], plain_run: bool) -> None:
    from torchstone.kernels.harness.kits import numba_kit

    config: Any = importlib.import_module("numba").config
    config.BOUNDSCHECK = None if plain_run else 1
    if mode.get("without_compiler"):
        numba_kit.without_compiler(launches)
    if plain_run:
        numba_kit.record(launches)
    else:
        numba_kit.install(launches, _numpy_as_it_was)


@contextlib.contextmanager
def _interpreting(zones: Zones) -> Iterator[None]:
    with _numpy_as_it_was(), zones.paused():
        yield


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
                 "full_like", "array", "asarray", "ascontiguousarray", "asfortranarray")
}  # fmt: skip


def import_candidate(source: str) -> ModuleType:
    """The candidate's module, which must define `ModelNew`."""
    module = import_source(source)
    if not callable(getattr(module, "ModelNew", None)):
        raise AttributeError("the candidate does not define ModelNew")
    return module


def import_source(source: str) -> ModuleType:
    """Import source from the scratch folder; our own package cannot be imported there."""
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
    return module


def serve(channel: socket.socket, walls: dict[str, str], shared: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""

    serving.serve(channel, walls, lambda header: _load(header, shared))
