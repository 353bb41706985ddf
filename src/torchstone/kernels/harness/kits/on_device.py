"""A candidate, or the problem's own model, on a device: placed there, called, fetched and timed.

The name of the device is all that differs between a GPU and the host.
"""

from __future__ import annotations

import importlib
import socket
import time
from types import ModuleType

import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling.candidate_server import (
    Server,
    encoded,
    import_candidate,
    refill,
)
from torchstone.kernels.harness.calling.keeping import digest_of
from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.red_zones import Zones
from torchstone.kernels.harness.calling.told import told
from torchstone.kernels.harness.inputs.cases import structure_of
from torchstone.kernels.harness.kits import libdevice_kit, triton_device
from torchstone.kernels.harness.reference.running import (
    Values,
    callable_of,
    leaves_of,
    rebuilt,
    run_source,
)
from torchstone.kernels.harness.values import (
    UnknownValueError,
    decode,
    dtype_of,
    from_raw,
    plain_place,
)
from torchstone.kernels.messages import to_device as ask
from torchstone.kernels.messages.to_candidate import BuildModel, Built, CallModel, Reply
from torchstone.kernels.messages.trees import AnswerTree, Tree


class DeviceServer:
    """One model on one device."""

    def __init__(self, module: ModuleType, implementation: str, device: str) -> None:
        self.device = device
        self._server = Server(implementation, Zones(), Launches(), module, None, False, False)
        self._last: Values | None = None

    def build(self, question: BuildModel, buffers: list[bytes]) -> Built:
        """Make the model with the weights of a seed and move it over."""
        answer = self._server.build(question, buffers)
        model = self._server.models[question.seed]
        if isinstance(model, torch.nn.Module):
            model.to(self.device)
        return answer

    def _place(self, tree: Tree, data: bytes) -> object:
        """An array on the device, in the layout that was asked for."""
        if tree.kind != "torch":
            return plain_place(tree, data)
        dtype = dtype_of(tree.dtype)
        placed = torch.empty_strided(tree.shape, tree.stride, dtype=dtype, device=self.device)
        return placed.copy_(from_raw(data, tree.dtype, tree.shape))

    def _inputs(self, question: CallModel, buffers: list[bytes]) -> Values:
        """New buffers, or new contents in the buffers of the last call."""
        fresh: Values = decode(question.tree, buffers, self._place)
        if not question.options.reuse or self._last is None:
            self._last = fresh
            return fresh
        refill(leaves_of(self._last), leaves_of(fresh))
        return self._last

    def _wait(self) -> None:
        """Until the device has done what it was given; its errors come to light here."""
        if self.device != "cpu":
            torch.get_device_module(self.device).synchronize()

    def call(self, question: CallModel, buffers: list[bytes]) -> tuple[Reply, list[bytes]]:
        """Run one case: its outputs, and the inputs as they are afterwards."""
        inputs = self._inputs(question, buffers)
        with torch.no_grad():
            found = callable_of(self._server.models[question.seed])(*inputs)
        self._wait()
        data: list[bytes] = []
        try:
            trees = [encoded(leaf, data) for leaf in leaves_of(self._fetched(found))]
        except UnknownValueError as error:
            return Reply(told(error, f"gives {error}")), []
        after = [digest_of(leaf) for leaf in leaves_of(inputs)]
        return Reply(answer=AnswerTree(structure_of(found), trees), inputs_after=after), data

    def _fetched(self, found: object) -> object:
        """The outputs on the host; one that was never on the device is said to be elsewhere."""

        def one(leaf: object) -> object:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if leaf.device.type != self.device:
                raise UnknownValueError(f"a tensor on {leaf.device.type} for inputs elsewhere")
            return leaf.detach().cpu()

        return rebuilt(found, [one(leaf) for leaf in leaves_of(found)])

    def time(self, question: ask.TimeOnDevice, buffers: list[bytes]) -> ask.Seconds:
        """Seconds of one call on fresh inputs, by the device's own clock where it has one."""
        inputs = decode(question.tree, buffers, self._place)
        call = callable_of(self._server.models[question.seed])
        self._wait()
        with torch.no_grad():
            if self.device == "cpu":
                start = time.perf_counter()
                call(*inputs)
                return ask.Seconds(time.perf_counter() - start)
            events = torch.get_device_module(self.device).Event
            first, last = events(enable_timing=True), events(enable_timing=True)
            first.record()
            call(*inputs)
            last.record()
            self._wait()
            return ask.Seconds(first.elapsed_time(last) / 1e3)


def _available(device: str) -> ask.Available:
    """Why torch cannot use a device, where it cannot, and its compute capability, where it has one."""
    if device == "cpu":
        return ask.Available("", 0)
    home = torch.get_device_module(device)
    if not home.is_available():
        return ask.Available(f"torch sees no {device} device", 0)
    major, minor = home.get_device_capability()
    return ask.Available("", 10 * major + minor)


def _opened(channel: socket.socket, question: ask.OpenDevice) -> DeviceServer:
    device, implementation = question.device, question.implementation
    if implementation == "triton" and device != "cpu":
        triton = importlib.import_module("triton")
        triton_device.ask_for_machine_code(channel, triton, question.path, question.version)
    elif implementation == "triton":
        libdevice_kit.install()
    if question.who == "reference":
        module = run_source(question.source, "problem")
        module.ModelNew = module.Model  # type: ignore[attr-defined]
    else:
        module = import_candidate(question.source)
    return DeviceServer(module, implementation, device)


def serve(channel: socket.socket, walls: dict[str, str], _: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""
    service = serving.Service(
        {ask.OpenDevice: lambda q: _opened(channel, q)},
        ANSWERS,
        {ask.IsAvailable: lambda q: _available(q.device)},
    )
    serving.serve(channel, walls, service)


ANSWERS: serving.Answers[DeviceServer] = {
    BuildModel: lambda it, q, data: it.build(q, data),
    CallModel: lambda it, q, data: it.call(q, data),
    ask.TimeOnDevice: lambda it, q, data: it.time(q, data),
}
"""What can be asked."""
