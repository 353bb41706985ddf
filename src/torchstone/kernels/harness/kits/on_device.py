"""A candidate, or the problem's own model, on a device: placed there, called, fetched and timed.

The name of the device is all that differs between a GPU and the host.
"""

from __future__ import annotations

import importlib
import socket
import time
from types import ModuleType
from typing import Any

import numpy as np
import torch

from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling.candidate_server import Server, encoded, import_candidate
from torchstone.kernels.harness.calling.keeping import digest_of
from torchstone.kernels.harness.calling.launches import Launches
from torchstone.kernels.harness.calling.red_zones import Zones
from torchstone.kernels.harness.calling.told import told
from torchstone.kernels.harness.inputs.cases import structure_of
from torchstone.kernels.harness.kits import libdevice_kit, triton_device
from torchstone.kernels.harness.reference.running import leaves_of, rebuilt, run_source
from torchstone.kernels.harness.values import (
    Tree,
    UnknownValueError,
    decode,
    dtype_of,
    from_raw,
    plain_place,
)


class DeviceServer:
    """One model on one device."""

    def __init__(self, module: ModuleType, implementation: str, device: str) -> None:
        self.device = device
        self._server = Server(implementation, Zones(), Launches(), module, None, False, False)
        self._last: Any = None

    def build(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Make the model with the weights of a seed and move it over."""
        answer = self._server.build(header, buffers)
        model = self._server.models[int(header["seed"])]
        if isinstance(model, torch.nn.Module):
            model.to(self.device)
        return answer

    def _place(self, tree: Tree, data: bytes) -> Any:
        """An array on the device, in the layout that was asked for."""
        if tree["array"] != "torch":
            return plain_place(tree, data)
        dtype = dtype_of(tree["dtype"])
        placed = torch.empty_strided(tree["shape"], tree["stride"], dtype=dtype, device=self.device)
        return placed.copy_(from_raw(data, tree["dtype"], tree["shape"]))

    def _inputs(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """New buffers, or new contents in the buffers of the last call."""
        fresh = decode(header["tree"], buffers, self._place)
        if not header.get("reuse") or self._last is None:
            self._last = fresh
            return fresh
        for old, new in zip(leaves_of(self._last), leaves_of(fresh), strict=True):
            if isinstance(old, torch.Tensor):
                old.copy_(new)
            elif isinstance(old, np.ndarray):
                old[...] = new
        return self._last

    def _wait(self) -> None:
        """Until the device has done what it was given; its errors come to light here."""
        if self.device != "cpu":
            torch.get_device_module(self.device).synchronize()

    def call(self, header: dict[str, Any], buffers: list[bytes]) -> Any:
        """Run one case: its outputs, and the inputs as they are afterwards."""
        inputs = self._inputs(header, buffers)
        model = self._server.models[int(header["seed"])]
        with torch.no_grad():
            found = model(*inputs) if callable(model) else model.forward(*inputs)
        self._wait()
        data: list[bytes] = []
        try:
            trees = [encoded(leaf, data) for leaf in leaves_of(self._fetched(found))]
        except UnknownValueError as error:
            return {"error": told(error, f"gives {error}")}
        after = [digest_of(leaf) for leaf in leaves_of(inputs)]
        return {"tree": {"structure": structure_of(found), "leaves": trees},
                "inputs_after": after}, data  # fmt: skip

    def _fetched(self, found: Any) -> Any:
        """The outputs on the host; one that was never on the device is said to be elsewhere."""

        def one(leaf: Any) -> Any:
            if not isinstance(leaf, torch.Tensor):
                return leaf
            if leaf.device.type != self.device:
                raise UnknownValueError(f"a tensor on {leaf.device.type} for inputs elsewhere")
            return leaf.detach().cpu()

        return rebuilt(found, [one(leaf) for leaf in leaves_of(found)])

    def time(self, header: dict[str, Any], buffers: list[bytes]) -> dict[str, Any]:
        """Seconds of one call on fresh inputs, by the device's own clock where it has one."""
        inputs = decode(header["tree"], buffers, self._place)
        model = self._server.models[int(header["seed"])]
        call = model if callable(model) else model.forward
        self._wait()
        with torch.no_grad():
            if self.device == "cpu":
                start = time.perf_counter()
                call(*inputs)
                return {"seconds": time.perf_counter() - start}
            events = torch.get_device_module(self.device).Event
            first, last = events(enable_timing=True), events(enable_timing=True)
            first.record()
            call(*inputs)
            last.record()
            self._wait()
            return {"seconds": first.elapsed_time(last) / 1e3}


def _available(device: str) -> dict[str, Any]:
    """Why torch cannot use a device, where it cannot, and its compute capability, where it has one."""
    if device == "cpu":
        return {"said": "", "arch": 0}
    home = torch.get_device_module(device)
    if not home.is_available():
        return {"said": f"torch sees no {device} device", "arch": 0}
    major, minor = home.get_device_capability()
    return {"said": "", "arch": 10 * major + minor}


def _opened(channel: socket.socket, header: dict[str, Any]) -> DeviceServer:
    device, implementation = header["device"], header["implementation"]
    if implementation == "triton" and device != "cpu":
        triton = importlib.import_module("triton")
        triton_device.ask_for_machine_code(channel, triton, header["path"], header["version"])
    elif implementation == "triton":
        libdevice_kit.install()
    if header["who"] == "reference":
        module = run_source(header["source"], "problem")
        module.ModelNew = module.Model  # type: ignore[attr-defined]
    else:
        module = import_candidate(header["source"])
    return DeviceServer(module, implementation, device)


def _asked(server: DeviceServer | None, header: dict[str, Any], buffers: list[bytes]) -> Any:
    """Whether a device is there can be asked before anything is opened on it."""
    if header["do"] == "available":
        return _available(header["device"])
    return serving.by_name(server, header, buffers)


def serve(channel: socket.socket, walls: dict[str, str], _: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""
    serving.serve(channel, walls, lambda header: _opened(channel, header), _asked)
