"""Random generators that every DataLoader worker copies give every worker the same numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import summary_of
from torchstone.lint.knowledge.flow import functions, own_nodes
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.sources.regions import DATASET_BASES
from torchstone.sources.scene import FUNCTIONS, Function, Scene
from torchstone.sources.targets import function_named

_FILES = 8  # a class that more files name is not followed

_GENERATORS = frozenset(
    ("numpy.random.default_rng", "numpy.random.RandomState", "numpy.random.Generator")
    + ("random.Random", "torch.Generator")
)
# an order of the data has to be the same in every worker
_ORDERS = ("shuffle", "permutation", "randperm", "permuted")
_METHODS = ("__getitem__", "__getitems__", "__iter__")
_STATE = ("getstate", "setstate", "get_state", "set_state", "bit_generator")

RULE = Rule(
    "TS208",
    "shared-rng-in-dataset",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{use}` draws the same numbers in every DataLoader worker",
        zh="`{use}` 在每个 DataLoader 工作进程中产生相同的随机数",
    ),
    why=Text(
        en="each worker starts with a copy of {rng}, which torch does not reseed: with n workers "
        "every random choice comes n times, and again in the next epoch",
        zh="每个工作进程都从 {rng} 的同一份拷贝开始，torch 不会重新设种：n 个进程会把同一组随机选择重复 n 次，"
        "下个 epoch 又从头重复",
    ),
    suggest=Text(
        en="seed it per worker (worker_init_fn, or on first use from "
        "torch.utils.data.get_worker_info().seed), or draw from torch's own generator",
        zh="按工作进程设种（worker_init_fn，或首次使用时取 torch.utils.data.get_worker_info().seed），"
        "或直接使用 torch 的全局随机数",
    ),
    title=Text(
        en="A Dataset draws from a random generator copied to all workers, so they all draw the "
        "same numbers",
        zh="Dataset 的随机数生成器被原样拷贝到所有工作进程，各进程产生相同的随机数",
    ),
    page=Text(
        en="Fires in `__getitem__` and `__iter__` of a torch Dataset (and the methods they call) "
        "for a generator made in `__init__` or at module level: `np.random.default_rng`, "
        "`RandomState`, `random.Random`, `torch.Generator`.\n\n"
        "- The global `np.random.*` functions fire only for projects that admit torch < 1.9: since "
        "1.9 every worker seeds numpy, as it always did `random` and `torch` (StackOverflow "
        "67180955).\n"
        "- Quiet when the file has a `worker_init_fn` or asks `get_worker_info`, when every "
        "DataLoader of the file has `num_workers=0`, and when the generator is made again from the "
        "index, the epoch or the worker, or when the class saves and restores its state.\n"
        "- MEDIUM when the file itself makes no DataLoader.",
        zh="在 torch Dataset 的 `__getitem__`、`__iter__`（及其调用的方法）中，若使用在 `__init__` 或模块级创建的"
        "生成器（`np.random.default_rng`、`RandomState`、`random.Random`、`torch.Generator`），则报告。\n\n"
        "- 全局 `np.random.*` 只在项目允许 torch < 1.9 时报告：自 1.9 起每个工作进程都会给 numpy 设种，"
        "`random` 和 `torch` 一直如此（StackOverflow 67180955）。\n"
        "- 不报告：文件里有 `worker_init_fn` 或使用了 `get_worker_info`；所有 DataLoader 都是 `num_workers=0`；"
        "生成器按索引、epoch 或工作进程重新创建；类会保存并恢复生成器的状态。\n"
        "- 文件自身不创建 DataLoader 时为 MEDIUM。",
    ),
    bad="""\
import numpy as np
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self, x):
        self.x = x
        self.rng = np.random.default_rng(0)

    def __getitem__(self, i):
        return self.x[i] + self.rng.normal()

loader = DataLoader(Noisy(x), batch_size=8, num_workers=4)
""",
    good="""\
@@ -2 +2 @@
-from torch.utils.data import DataLoader, Dataset
+from torch.utils.data import DataLoader, Dataset, get_worker_info
@@ -7 +6,0 @@
-        self.rng = np.random.default_rng(0)
@@ -12 +11,5 @@
-loader = DataLoader(Noisy(x), batch_size=8, num_workers=4)
+def seed(worker):
+    info = get_worker_info()
+    info.dataset.rng = np.random.default_rng(info.seed)
+
+loader = DataLoader(Noisy(x), batch_size=8, num_workers=4, worker_init_fn=seed)
""",
    words=("default_rng", "RandomState", "Random", "Generator", "random"),
    needs=("torch", "class"),
)


@RULE.on(ast.ClassDef)
def check(owner: ast.ClassDef, scene: Scene) -> Iterator[Hit]:
    methods = {item.name: item for item in owner.body if isinstance(item, FUNCTIONS)}
    starts = [methods[name] for name in _METHODS if name in methods]
    if not starts or not owner.bases:
        return
    use, rng = None, ""
    for method in _reached(scene, owner, starts):
        use, rng = _draws(scene, owner, method)
        if use is not None:
            break
    if use is None or not scene.derives(owner, DATASET_BASES):
        return
    if scene.calls.get("get_worker_info") or any(
        _seeds(home, load) for home, load in _loaders(scene, owner)
    ):
        return
    if any(isinstance(n, ast.Attribute) and n.attr in _STATE for n in scene.inside(owner)):
        return
    loads = _loaders(scene, owner)
    if loads and not any(_has_workers(home, load) for home, load in loads):
        return
    here = scene.calls.get("DataLoader", ())
    yield RULE.at(use, severity=HIGH if here else MEDIUM, use=scene.brief(use), rng=rng)


def _has_workers(scene: Scene, load: ast.Call) -> bool:
    """Whether a loader may start workers: a number that is not 0, or one that is not to be seen."""
    given = scene.argument(load, 5, "num_workers")
    return scene.literal(given) != 0 if given is not None else scene.has_star(load)


def _reached(scene: Scene, owner: ast.ClassDef, starts: list[Function]) -> list[Function]:
    """The starting methods and the methods of the class that they call."""
    found = list(starts)
    for method in found:  # grows while it is walked
        for node in own_nodes(method):
            if isinstance(node, ast.Call) and scene.dotted(scene.receiver(node)) == "self":
                for item in functions(scene).get(scene.last_name(node.func), ()):
                    if scene.parent(item) is owner and item not in found:
                        found.append(item)
    return found


def _draws(scene: Scene, owner: ast.ClassDef, method: Function) -> tuple[ast.Call | None, str]:
    """The first call on a generator made outside, with what the generator is called."""
    # since 1.9 torch seeds numpy in its workers; an open requirement admits that
    old = scene.project.torch is not None and scene.project.torch < (1, 9)
    old = old and not scene.project.torch_open
    calls = [node for node in own_nodes(method) if isinstance(node, ast.Call)]
    for node in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if not isinstance(node.func, ast.Attribute):
            continue
        if old and scene.qualified(node.func).startswith("numpy.random."):
            if scene.qualified(node.func) not in (*_GENERATORS, "numpy.random.seed"):
                return node, "np.random"
        receiver = node.func.value
        if node.func.attr in ("seed", "manual_seed", "set_state"):
            return None, ""
        if node.func.attr in _ORDERS:
            continue
        if isinstance(receiver, ast.Attribute) and scene.dotted(receiver.value) == "self":
            values = scene.attribute_values(owner, receiver.attr)
            if len(values) == 1 and _makes(scene, values[0]):
                if getattr(scene.function(values[0]), "name", "") == "__init__":
                    return node, scene.text(receiver)
        elif isinstance(receiver, ast.Name):
            rows = scene.bindings(receiver)
            if len(rows) == 1 and _makes(scene, rows[0].value):
                if scene.scope(rows[0].node) is scene.root:
                    return node, receiver.id
    return None, ""


def _makes(scene: Scene, value: ast.expr | None) -> bool:
    while isinstance(value, ast.Call) and scene.method(value) == "manual_seed":
        value = scene.receiver(value)  # torch.Generator().manual_seed(0)
    return isinstance(value, ast.Call) and scene.qualified(value.func) in _GENERATORS


def _loaders(scene: Scene, owner: ast.ClassDef) -> list[tuple[Scene, ast.Call]]:
    """The loaders of this file, and those of files that make objects of the class."""
    found = [(scene, load) for load in scene.calls.get("DataLoader", ())]
    homes = scene.project.files_that_call(owner.name)
    for path in homes if len(homes) <= _FILES else ():
        home = scene.project.load(path, scene)
        if home is not None and home is not scene:
            found += [(home, load) for load in home.calls.get("DataLoader", ())]
    return found


def _seeds(scene: Scene, load: ast.Call) -> bool:
    """Whether a loader's workers are seeded; a function that cannot be read may do so."""
    given = scene.keyword(load, "worker_init_fn")
    if given is None or scene.literal(given) is None:
        return False
    target = function_named(scene, given)
    return target is None or summary_of(*target).has(Effect.SEED)
