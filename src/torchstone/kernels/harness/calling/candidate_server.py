"""The candidate's process: it gets inputs and gives outputs; the right answers are not here."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import socket
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling import bursts, monitor
from torchstone.kernels.harness.calling import weight_changes as weights
from torchstone.kernels.harness.calling.keeping import Kept, Span, digest_of, meet, span_of
from torchstone.kernels.harness.calling.kernel_server import KernelServer
from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.red_zones import Zones, bound_views
from torchstone.kernels.harness.calling.shared_calls import SharedCalls, about_answer
from torchstone.kernels.harness.calling.told import Saying, told
from torchstone.kernels.harness.calling.unwritten import fill_new_memory
from torchstone.kernels.harness.inputs.cases import structure_of
from torchstone.kernels.harness.kits import c_kit, cuda_looks, mindspore_kit
from torchstone.kernels.harness.reference.running import Values, callable_of, leaves_of, state_of
from torchstone.kernels.harness.seeding import weights_of
from torchstone.kernels.harness.shared_arrays import Mapped
from torchstone.kernels.harness.shared_heap import SharedHeap
from torchstone.kernels.harness.values import (
    UnknownValueError,
    decode,
    encode,
    plain_place,
)
from torchstone.kernels.messages import to_candidate as ask
from torchstone.kernels.messages.facts import RecordedCall, Told
from torchstone.kernels.messages.to_referee import Done
from torchstone.kernels.messages.trees import AnswerTree, Tree

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
    last_inputs: Values | None = None
    names: dict[str, str] | None = None
    """What the problem's weights are called here, where that is known."""
    names_of: dict[int, dict[str, str] | None] = field(default_factory=dict)

    def looking(self) -> contextlib.AbstractContextManager[None]:
        """What code of the candidate runs in: a kernel of Triton sees a device."""
        return cuda_looks.looking() if self.implementation == "triton" else contextlib.nullcontext()

    def build(self, question: ask.BuildModel, buffers: list[bytes]) -> ask.Built:
        """Make `ModelNew` with the weights of a seed; names decide whether weights are handed in."""
        seed = question.seed
        init = decode(question.weights.init, buffers, plain_place)
        state = decode(question.weights.state, buffers, plain_place)
        with weights_of(seed), self.looking():
            model = self.module.ModelNew(*init)
        if question.weights.evaluate and isinstance(model, torch.nn.Module):
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
        return ask.Built(names is not None, len(state))

    def reweigh(self, question: ask.Reweigh, buffers: list[bytes]) -> Done:
        """Give the model of one seed, which has been called before, other weights."""
        state = decode(question.weights.state, buffers, plain_place)
        assert self.names is not None
        named = {self.names[name]: value for name, value in state.items()}
        weights.put(self.models[weights.CHANGED], named, question.way)
        return Done()

    def call(self, question: ask.CallModel, buffers: list[bytes]) -> tuple[ask.Reply, list[bytes]]:
        """Run one case and tell everything about it."""
        options = question.options
        self.zones.fill = options.fill
        inputs = self._inputs(question, buffers)
        before = [span_of(leaf) for leaf in leaves_of(inputs)]
        model = self.models[question.seed if options.model < 0 else options.model]
        if options.evaluate is not None and isinstance(model, torch.nn.Module):
            model.train(not options.evaluate)
        self.launches.start()
        recorder = self.launches.recorder
        if options.record_launches:
            recorder.begin()
        monitor.start()
        operators, chance = monitor.Operators(), monitor.chance()
        try:
            with self._around(operators):
                found = callable_of(model)(*inputs)
        except Exception as error:
            return self._counted(operators, inputs, error=told(error)), []
        data: list[bytes] = []
        try:
            leaves = bare_leaves(found)
            answer = AnswerTree(structure_of(found), [encoded(leaf, data) for leaf in leaves])
        except UnknownValueError as error:
            return ask.Reply(told(error, f"gives {error}")), []
        reply = replace(
            self._counted(operators, inputs),
            answer=answer,
            aliases=self._aliases(leaves, before, model),
            previous_changed=self.kept.changed(),
            drawn=monitor.chance() != chance,
        )
        self.kept.add(leaves)
        if self.library is not None:
            records, held = self.library.take_records()
            reply = replace(reply, records=[_moved(item, len(data)) for item in records])
            data += held
        if options.record_launches:
            recorder.on = False
            reply = replace(
                reply, recorded=recorder.launches, trouble=recorder.trouble, recorded_from=len(data)
            )
            data += recorder.buffers
        return reply, data

    def burst(
        self, question: ask.RunBurst, buffers: list[bytes]
    ) -> tuple[ask.BurstReply, list[bytes]]:
        """Run several cases with nothing between them, and only then tell what came out."""
        calls = []
        for item in question.cases:
            inputs = decode(item.tree, buffers[item.start :], plain_place)
            calls.append((self.models[item.seed], inputs))
        self.launches.start()
        if self.library is not None:
            self.library.recording(False)
        with self.looking():
            found = bursts.in_a_row(calls, question.setting)
        data: list[bytes] = []
        answers = [_told_answer(item, data) for item in found]
        overlapping = bursts.overlapping(found, calls)
        tires = ring = False
        if question.times:
            tires, ring = bursts.again(*calls[0], question.times)  # compiled: no device to see
        if self.library is not None:
            self.library.recording(True)
        return ask.BurstReply(answers, overlapping, tires, ring), data

    def _inputs(self, question: ask.CallModel, buffers: list[bytes]) -> Values:
        """New buffers, or new contents in the buffers of the last call."""
        known = leaves_of(self.last_inputs)
        # tensors of mindspore have no memory that could be filled anew
        same_memory = not any(mindspore_kit.is_tensor(leaf) for leaf in known)
        if question.options.reuse and self.last_inputs is not None and same_memory:
            refill(known, leaves_of(decode(question.tree, buffers, plain_place)))
            return self.last_inputs
        self.zones.clear()
        place = self.zones.place if self.guarded else plain_place
        inputs: Values = decode(question.tree, buffers, place)
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

    def _counted(
        self, operators: monitor.Operators, inputs: Values | None, error: Told | None = None
    ) -> ask.Reply:
        """What the kernels of this call did, what ran beside them, and what the inputs are now."""
        seen = dict(operators.computing)
        if self.implementation != "numpy":
            seen |= dict(monitor.Watched.seen)
        return ask.Reply(
            error=error,
            inputs_after=[digest_of(leaf) for leaf in leaves_of(inputs)],
            launches=self.launches.launches,
            programs=self.launches.programs,
            left_out=self.launches.left_out,
            work=self.launches.work,
            kernels=self.launches.kernels,
            faults=self.launches.faults,
            zones=self.zones.broken() if self.guarded else [],
            operators=sorted(seen) if self.watching else [],
        )

    def _aliases(self, leaves: Values, inputs: list[Span], model: object) -> list[str]:
        weights = [span_of(item) for item in getattr(model, "parameters", lambda: ())()]
        kept = self.kept.spans()
        spans = [span_of(leaf) for leaf in leaves]
        found = []
        for i, span in enumerate(spans):
            groups = (("an input", inputs), ("a weight", weights), ("an earlier answer", kept),
                      ("another output", spans[:i]))  # fmt: skip
            found += [what for what, others in groups if any(meet(span, item) for item in others)]
        return found

    def state(self, seed: int) -> tuple[ask.State, list[bytes]]:
        """The weights and buffers of a model by their names in the problem."""
        names = self.names_of[seed] or {}
        own = state_of(self.models[seed])
        data: list[bytes] = []
        tree = encode({old: own[new] for old, new in names.items()}, data)
        return ask.State(tree), data

    def timed(self, question: ask.TimeCalls) -> ask.Timed:
        """Answer several fresh inputs with nothing watched; whoever asks holds the clock."""
        calls = SharedCalls.find(question.question, self.mapped)
        calls.answer_all(callable_of(self.models[0]))
        return ask.Timed(question.number)

    def idle(self, times: int) -> Done:
        """Ask the functions for nothing, so many times: what asking alone costs."""
        assert self.library is not None
        c_kit.ask_for_nothing(self.library, times)
        return Done()

    def in_full(self, question: ask.RunInFull) -> ask.Reply:
        """Answer the problem's own inputs at their own sizes."""
        self.zones.clear()
        self.zones.fill = "nan"
        calls = SharedCalls.find(question.question, self.mapped)
        (inputs,) = calls.given()
        if self.watching and self.implementation != "numpy":
            inputs = [monitor.watched(item) for item in inputs]
        self.launches.start()
        self.launches.side_by_side = True
        self.launches.until_cpu_seconds = time.process_time() + question.seconds
        if self.library is not None:
            self.library.recording(False)
        monitor.start()
        operators = monitor.Operators()
        try:
            with self._around(operators):
                found = callable_of(self.models[0])(*inputs)
            leaves = bare_leaves(found)
        except UnknownValueError as error:
            return ask.Reply(told(error, f"gives {error}"))
        except Exception as error:
            return self._counted(operators, None, error=told(error))
        counted = self._counted(operators, None)  # before this process does anything of its own
        calls.put([monitor.plain(leaf) for leaf in leaves])
        changed = calls.changed_input(self.mapped.handles[0])
        return replace(counted, answer=about_answer(found, leaves), changed=changed)


def refill(old: Values, new: Values) -> None:
    """Other contents in the same arrays."""
    for target, source in zip(old, new, strict=True):
        if isinstance(target, torch.Tensor):
            assert isinstance(source, torch.Tensor)
            with torch.no_grad():
                target.copy_(source)
        elif isinstance(target, np.ndarray):
            target[...] = source


def _hand_over(model: Any, state: dict[str, torch.Tensor]) -> None:
    if isinstance(model, torch.nn.Module):
        model.load_state_dict(state)
        return
    if mindspore_kit.is_cell(model):
        mindspore_kit.put_weights(model, {k: v.numpy() for k, v in state.items()})
        return
    for name, value in state.items():
        setattr(model, name, value.numpy())


def _told_answer(found: object, data: list[bytes]) -> ask.BurstAnswer:
    """One answer of a burst on the wire, or the error that stood in its place."""
    if isinstance(found, Exception):
        return ask.BurstAnswer(told(found))
    mine: list[bytes] = []
    try:
        trees = [encoded(leaf, mine) for leaf in bare_leaves(found)]
    except UnknownValueError as error:
        return ask.BurstAnswer(told(error, f"gives {error}"))
    start = len(data)
    data += mine
    return ask.BurstAnswer(None, AnswerTree(structure_of(found), trees), start, len(mine))


_DETACH = torch.Tensor.detach
"""Taken before a candidate is near: an answer may carry a method of its own under this name."""


def bare_leaves(found: object) -> Values:
    """The leaves of an answer as tensors that share its memory and nothing else."""
    leaves = leaves_of(found)
    refuse_other_tensors(leaves)
    return [_DETACH(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]


def refuse_other_tensors(leaves: Iterable[object]) -> None:
    """An UnknownValueError for outputs that no problem gives."""
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
                raise UnknownValueError(f"a subclass of Tensor, {type(leaf).__name__}")
            if leaf.layout != torch.strided or leaf.device.type != "cpu":
                raise UnknownValueError(f"a {leaf.layout} tensor on {leaf.device.type}")
        if isinstance(leaf, np.ndarray) and type(leaf) not in (np.ndarray, monitor.Watched):
            raise UnknownValueError(f"a subclass of ndarray, {type(leaf).__name__}")


def encoded(leaf: object, data: list[bytes]) -> Tree:
    """An output on the wire; an UnknownValueError for what no problem gives."""
    refuse_other_tensors([leaf])
    return encode(monitor.plain(leaf), data)


def _moved(record: RecordedCall, start: int) -> RecordedCall:
    """A recorded call whose bytes stand later in the message."""
    arguments = [
        replace(item, buffer=item.buffer + start) if item.is_memory else item
        for item in record.arguments
    ]
    return replace(record, arguments=arguments)


def _runner(shared: tuple[int, ...], mapped: Mapped) -> c_kit.Runner:
    """The process with the candidate's functions, and the memory that this one shares with it."""
    link, heap = shared[2:4]
    return c_kit.Runner(socket.socket(fileno=link), SharedHeap(heap), mapped)


def _load(question: ask.OpenCandidate, shared: tuple[int, ...] = ()) -> Server | KernelServer:
    """Put the watchers in place, then import the candidate; or its kernels alone."""
    implementation, mode = question.implementation, question.mode
    Saying.words = not mode.without_words
    if mode.kernels_only:
        return _load_kernels(question, shared)
    zones = Zones()
    launches = Launches(mode.ghost, mode.order)
    watching = implementation != "torch" and not mode.plain
    library = None
    if not mode.plain:
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
        _load_numba(launches, mode)
    mapped = Mapped(shared)
    if implementation == "c":
        runner = _runner(shared, mapped)
        runner.margin_bytes = 0 if mode.plain else runner.margin_bytes
        zones.allocate = runner.heap.empty
        library = c_kit.Library(question.prototypes, launches, mode.record, runner)
        sys.modules["torchstone_kernel"] = c_kit.module(library)
    looks = cuda_looks.looking() if implementation == "triton" else contextlib.nullcontext()
    with looks:
        module = import_candidate(question.source)
    return Server(
        implementation, zones, launches, module, library, watching, not mode.plain, mapped
    )


def _load_kernels(question: ask.OpenCandidate, shared: tuple[int, ...]) -> KernelServer:
    """Nothing of the candidate but its kernels, with nothing watched."""
    library = None
    if question.implementation == "c":
        runner = _runner(shared, Mapped(shared))
        library = c_kit.Library(question.prototypes, Launches(), False, runner)
    if question.implementation == "triton":
        cuda_looks.install()
    return KernelServer(import_source(question.source), library)


def _load_numba(launches: Launches, mode: ask.Mode) -> None:
    from torchstone.kernels.harness.kits import numba_kit

    config: Any = importlib.import_module("numba").config
    config.BOUNDSCHECK = None if mode.plain else 1
    if mode.without_compiler:
        numba_kit.without_compiler(launches)
    if mode.plain:
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
    service = serving.Service({ask.OpenCandidate: lambda q: _load(q, shared)}, ANSWERS)
    serving.serve(channel, walls, service)


ANSWERS: serving.Answers[Any] = {
    ask.BuildModel: lambda it, q, data: it.build(q, data),
    ask.Reweigh: lambda it, q, data: it.reweigh(q, data),
    ask.CallModel: lambda it, q, data: it.call(q, data),
    ask.RunBurst: lambda it, q, data: it.burst(q, data),
    ask.TellState: lambda it, q, _: it.state(q.seed),
    ask.TimeCalls: lambda it, q, _: it.timed(q),
    ask.AskNothing: lambda it, q, _: it.idle(q.times),
    ask.RunInFull: lambda it, q, _: it.in_full(q),
    ask.LaunchKernel: lambda it, q, data: it.launch(q.launch, data),
}
"""What a `Server` can be asked, and at the end a `KernelServer`."""
