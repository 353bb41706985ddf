"""The part of the policy that is about questions: a kernel asks for its inputs, and nothing else.

A clock, a counter of cycles, the state of gradients or of a random generator tells a check from a
use; what needs none of them to compute has no reason to ask.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.kernels.policy.syntax import Breach, breach, homes_of, path_of

_STATES = frozenset(
    "is_grad_enabled is_inference_mode_enabled is_inference is_autocast_enabled "
    "is_autocast_cpu_enabled get_autocast_dtype is_anomaly_enabled is_deterministic_algorithms_warn_only_enabled "
    "are_deterministic_algorithms_enabled is_warn_always_enabled "
    "get_rng_state initial_seed set_rng_state fork_rng "
    "get_float32_matmul_precision get_deterministic_debug_mode is_compiling is_dynamo_compiling "
    "is_exporting is_scripting is_tracing perf_counter perf_counter_ns monotonic monotonic_ns "
    "process_time process_time_ns thread_time time_ns elapsed_time gettrace getprofile "
    "getrefcount grad_fn is_leaf retains_grad _backward_hooks".split()
)
"""Names that ask how torch, Python or the clock stand, on whatever object they are looked up."""
_PATHS = tuple(
    "torch.compiler torch.autograd.profiler torch.autograd.anomaly_mode torch.autograd.forward_ad "
    "torch.autograd.grad_mode torch.cuda.Event torch.cpu torch.monitor "
    "torch.get_num_threads torch.get_num_interop_threads "
    "torch.Generator torch.default_generator torch.__config__ torch.functorch "
    "numpy.datetime64 numpy.timedelta64 numpy.random.default_rng numpy.random.RandomState "
    "numpy.random.Generator numpy.random.SeedSequence numpy.show_config "
    "numba.core.runtime numba.threading_layer".split()
)
_RANDOM = re.compile(
    r"torch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial|poisson)(_like)?"
    r"|numpy\.random(\..*)?|triton\.language\.(rand|randn|randint)\w*"
)
_DRAWS = frozenset("uniform_ normal_ random_ bernoulli_ exponential_ geometric_ cauchy_ "
                   "log_normal_ bernoulli multinomial".split())  # fmt: skip
_MAKERS = ("__init__", "reset_parameters")
"""Functions in which weights are made, by chance as a rule."""
_CLOCK_TYPE = re.compile(r"datetime64|(?<![\w])[<>=]?M8")


def question_breaches(tree: ast.Module) -> Iterator[Breach]:
    """Where a candidate asks for the time, for chance, or for the state that it runs in."""
    homes = homes_of(tree)
    bound = {node.id for node in ast.walk(tree)
             if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}  # fmt: skip
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            asks = node.attr in _STATES or (
                node.attr == "requires_grad" and isinstance(node.ctx, ast.Load)
            )
            path = path_of(node, homes)
            if asks or path.startswith(_PATHS):
                what = path or f".{node.attr}"
                yield breach(node, f"asks for {what}", f"询问 {what}")
        elif isinstance(node, ast.Name) and _asked(homes.get(node.id, "")):
            yield breach(node, f"asks for {homes[node.id]}", f"询问 {homes[node.id]}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("id", "hash") and node.func.id not in bound:
                yield breach(node, f"asks for {node.func.id}()", f"询问 {node.func.id}()")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if len(node.value) < _SHORT and _CLOCK_TYPE.search(node.value):
                yield breach(node, "asks for the time", "询问时间")
    yield from _draws(tree, homes)


_SHORT = 40
"""Longer strings are sources and sentences, no names of types."""


def _asked(path: str) -> bool:
    return bool(path) and (path.rpartition(".")[2] in _STATES or path.startswith(_PATHS))


def _draws(tree: ast.Module, homes: dict[str, str]) -> Iterator[Breach]:
    """Random numbers make weights; an answer needs none."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    makers = _makers(functions)
    for function in functions:
        if function.name in makers:
            continue
        for node in ast.walk(function):
            path = path_of(node, homes) if isinstance(node, ast.Attribute) else ""
            if isinstance(node, ast.Name):
                path = homes.get(node.id, "")
            named = isinstance(node, ast.Attribute) and node.attr in _DRAWS
            if named or (path and _RANDOM.fullmatch(path)):
                yield breach(node, "draws random numbers", "抽取随机数")


def _makers(functions: list[ast.FunctionDef]) -> set[str]:
    """Functions that make weights: those of these names, and plain ones that they call."""
    plain = {item.name: item for item in functions if not item.decorator_list}
    found, waiting = set(_MAKERS), list(_MAKERS)
    while waiting:
        name = waiting.pop()
        called = {
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            for function in functions if function.name == name
            for call in ast.walk(function) if isinstance(call, ast.Call)
        }  # fmt: skip
        new = (called & set(plain)) - found - {"forward", "__call__"}
        found |= new
        waiting += new
    return found
