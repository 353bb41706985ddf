"""Triton's own compiler on a candidate's kernels: the interpreter is off, and nothing is launched.

The assembler is a program, and a cell starts none: machine code is asked for over the channel.
"""

from __future__ import annotations

import importlib
import os
import socket
import sys
import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from torchstone.core.codec import prepare_classes
from torchstone.kernels.harness import serving
from torchstone.kernels.harness.calling.candidate_server import import_candidate
from torchstone.kernels.harness.calling.told import told
from torchstone.kernels.harness.kits import cuda_looks
from torchstone.kernels.harness.kits.triton_launch import (
    UndescribedError,
    plain_globals,
    revived,
)
from torchstone.kernels.harness.seeding import weights_of
from torchstone.kernels.harness.values import decode, plain_place
from torchstone.kernels.messages import to_device as ask
from torchstone.kernels.messages.facts import KernelLaunch, Told
from torchstone.kernels.messages.to_referee import Done
from torchstone.kernels.sessions.wire import receive, send

_LOADED = (
    "triton", "triton.language", "triton.compiler.compiler", "triton.compiler.errors",
    "triton.runtime.jit", "triton.runtime.autotuner", "triton.runtime.errors", "triton.knobs",
    "triton.backends.compiler", "triton.backends.nvidia.compiler", "triton.tools.tensor_descriptor",
)  # fmt: skip


def without_interpreter() -> object:
    """Triton loaded anew as it is on a device; its native part stays, it knows no interpreter."""
    os.environ.pop("TRITON_INTERPRET", None)
    for name in list(sys.modules):
        if name.partition(".")[0] == "triton" and not name.startswith("triton._C"):
            del sys.modules[name]
    for name in _LOADED:
        importlib.import_module(name)
    return sys.modules["triton"]


def ask_for_machine_code(
    channel: socket.socket, triton: Any, path: str, version: str, most_shared: int = 0
) -> None:
    """Put the parent in the place of the assembler, for every kernel that is compiled here.

    A kernel that needs more shared memory than `most_shared`, where that is told, is refused first.
    """
    os.environ["TRITON_CACHE_DIR"] = os.environ["HOME"] = os.environ["TMPDIR"] = os.getcwd()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # as released; silences a warning
    backend: Any = importlib.import_module("triton.backends.nvidia.compiler").CUDABackend
    errors = importlib.import_module("triton.runtime.errors")
    tool = triton.knobs.NvidiaTool(path, version)
    triton.knobs.NvidiaTool.from_path = staticmethod(lambda _: tool)
    os.environ["TRITON_MOCK_PTX_VERSION"] = version  # part of a key in the cache, no more

    prepare_classes([ask.Assembled])

    def make_cubin(_: object, source: str, needs: Any, options: Any, capability: int) -> bytes:
        if most_shared and needs["shared"] > most_shared:
            raise errors.OutOfResources(needs["shared"], most_shared, "shared memory")
        send(channel, ask.Assemble(capability, bool(options.enable_fp_fusion)), [source.encode()])
        answer, buffers = receive(channel, [ask.Assembled])
        if answer.said:
            raise errors.PTXASError(answer.said)
        return buffers[0]

    backend.make_cubin = make_cubin


def load_driver() -> str:
    """Build and load what Triton launches kernels with, once; why that fails, else nothing.

    It needs the system's C compiler, which no cell may start. Loading it does not touch a device,
    so that the children of this process may.
    """
    try:
        driver = importlib.import_module("triton.backends.nvidia.driver")
        driver.CudaUtils()
    except Exception as error:  # whatever is missing here is told, and ends nothing
        return f"{type(error).__name__}: {error}"[:300]
    driver.CudaUtils.__init__ = lambda _: None  # there is one, and it stays as it is
    return ""


@dataclass(slots=True)
class Compiler:
    """One candidate, loaded without the interpreter, and the kernels that it made."""

    triton: object
    target: object
    functions: list[Any] = field(default_factory=list)
    tuners: list[Any] = field(default_factory=list)
    module: Any = None

    @classmethod
    def start(cls, arch: int) -> Compiler:
        """Everything of Triton that is needed is looked up before a candidate is near."""
        triton = sys.modules["triton"]
        jit = sys.modules["triton.runtime.jit"]
        tuner = sys.modules["triton.runtime.autotuner"].Autotuner
        target = sys.modules["triton.backends.compiler"].GPUTarget("cuda", arch, 32)
        made = cls(triton, target)
        _ = jit.create_function_from_signature, jit.JITFunction._pack_args, jit.JITFunction.run
        sys.modules["triton.compiler.compiler"].make_backend(target).hash()
        _note(jit.JITFunction, made.functions)
        _note(tuner, made.tuners)
        return made

    def load(self, source: str) -> ask.Constants:
        """Import the candidate; tells the constants at its top."""
        with cuda_looks.looking():
            self.module = import_candidate(source)
        return ask.Constants(plain_globals(vars(self.module)))

    def missing(self, wanted: list[ask.KernelName]) -> ask.Missing:
        """Which of the kernels that ran under the interpreter are not here."""
        return ask.Missing([item for item in wanted if self._find(item.name, item.line) is None])

    def trial(self, question: ask.TryCall, buffers: list[bytes]) -> Done:
        """One call in which no kernel runs: kernels that are made while it runs are made now."""
        jit = sys.modules["triton.runtime.jit"]
        kept, jit.JITFunction.run = jit.JITFunction.run, lambda *_, **__: None
        try:
            init = decode(question.init, buffers[: question.weights], plain_place)
            inputs = decode(question.tree, buffers[question.weights :], plain_place)
            with weights_of(question.seed), torch.no_grad(), cuda_looks.looking():
                self.module.ModelNew(*init)(*inputs)
        finally:
            jit.JITFunction.run = kept
        return Done()

    def _find(self, name: str, line: int = 0) -> object:
        found = [item for item in self.functions if item.fn.__name__ == name]
        exact = [item for item in found if item.def_file_line_number == line]
        return next(reversed(exact or (found if not line else [])), None)

    def compile(self, launch: KernelLaunch) -> ask.CompiledLaunch:
        """Compile one launch; of a tuned kernel the first configuration that fits is enough."""
        kernel = self._find(launch.kernel, launch.line)
        others = [
            config.all_kwargs()
            for tuner in self.tuners if _inner(tuner) is kernel for config in tuner.configs[1:]
        ]  # fmt: skip
        start = time.process_time()
        for number, more in enumerate([{}, *others]):
            try:
                answer = self._compiled(kernel, launch, more)
            except self._too_much() as error:
                if number < len(others):
                    continue
                return ask.CompiledLaunch(error=self._told(error, kernel))
            except UndescribedError as error:
                return ask.CompiledLaunch(undescribed=str(error))
            except Exception as error:
                return ask.CompiledLaunch(error=self._told(error, kernel))
            return replace(answer, seconds=time.process_time() - start)
        raise AssertionError("a kernel has at least one configuration")

    def _too_much(self) -> tuple[type[Exception], ...]:
        """What Triton's tuner passes over when it tries a configuration."""
        errors, runtime = (
            sys.modules["triton.compiler.errors"],
            sys.modules["triton.runtime.errors"],
        )
        return errors.CompileTimeAssertionFailure, runtime.OutOfResources, runtime.PTXASError

    def _compiled(
        self, kernel: Any, launch: KernelLaunch, more: dict[str, object]
    ) -> ask.CompiledLaunch:
        """As `JITFunction.run` does it: bind, specialize, compile."""
        compiler, jit = sys.modules["triton.compiler.compiler"], sys.modules["triton.runtime.jit"]
        backend = compiler.make_backend(self.target)
        given = {name: revived(item, self.triton, self._find)
                 for name, item in launch.arguments.items()} | more  # fmt: skip
        bind = jit.create_function_from_signature(kernel.signature, kernel.params, backend)
        bound, specialization, extra = bind(**given)
        options, signature, constants, attributes = kernel._pack_args(
            backend, extra, bound, specialization, extra
        )
        source = compiler.ASTSource(kernel, signature, constants, attributes)
        made = compiler.compile(source, target=self.target, options=options.__dict__)
        return ask.CompiledLaunch(int(made.metadata.shared), ".tf32" in made.asm["ptx"])

    def _told(self, error: BaseException, kernel: Any) -> Told:
        """The innermost thing that the compiler said, with its line in the candidate."""
        base = sys.modules["triton.compiler.errors"].CompilationError
        line = kernel.def_file_line_number
        inner: BaseException | None = error
        while inner is not None:
            error, inner = inner, inner.__cause__
            node: Any = getattr(error, "node", None)
            home = next((item for item in self.functions
                         if item.src == getattr(error, "src", None)), None)  # fmt: skip
            if isinstance(error, base) and home is not None and hasattr(node, "lineno"):
                line = home.def_file_line_number + node.lineno - 1
        said = told(error)
        text = getattr(error, "error_message", None) or said.text
        return Told(said.kind, " ".join(str(text).split())[:300], line)


def _note(kind: Any, found: list[object]) -> None:
    """Keep every instance that is made from now on."""
    make = kind.__init__

    def noted(self: object, *args: object, **kwargs: object) -> None:
        make(self, *args, **kwargs)
        found.append(self)

    kind.__init__ = noted


def _inner(tuner: Any) -> object:
    while hasattr(tuner, "configs") or type(tuner).__name__ == "Heuristics":
        tuner = tuner.fn
    return tuner


def serve(channel: socket.socket, walls: dict[str, str], _: tuple[int, ...] = ()) -> None:
    """Answer the parent until it hangs up."""

    def opened(question: ask.OpenCompiler) -> Compiler:
        triton = without_interpreter()
        cuda_looks.install()
        ask_for_machine_code(channel, triton, question.path, question.version, question.most_shared)
        return Compiler.start(question.arch)

    serving.serve(channel, walls, serving.Service({ask.OpenCompiler: opened}, ANSWERS))


ANSWERS: serving.Answers[Compiler] = {
    ask.LoadKernels: lambda it, q, _: it.load(q.source),
    ask.FindMissing: lambda it, q, _: it.missing(q.wanted),
    ask.TryCall: lambda it, q, data: it.trial(q, data),
    ask.CompileLaunch: lambda it, q, _: it.compile(q.launch),
}
"""What can be asked."""
