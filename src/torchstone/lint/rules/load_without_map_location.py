"""A checkpoint goes back to the device it came from, on every rank to the same one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.knowledge.flow import exclusive, settled
from torchstone.lint.rule import LIKELY, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside, target_of

RULE = Rule(
    "TS418",
    "load-without-map-location",
    group="distributed",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` loads onto the GPU that saved it, on every rank the same one",
        zh="`{call}` 会加载到保存时所在的 GPU，所有 rank 都是同一块",
    ),
    why=Text(
        en="without map_location a tensor saved on cuda:0 goes back to cuda:0: all ranks of a node "
        "open a context there and hold a copy, until that GPU is out of memory",
        zh="没有 map_location 时，保存在 cuda:0 的张量会回到 cuda:0：同一节点的所有 rank 都在那里建立上下文并各存"
        "一份，直到那块 GPU 显存耗尽",
    ),
    suggest=Text(
        en='pass `map_location="cpu"`; load_state_dict copies to the right device',
        zh='传入 `map_location="cpu"`；load_state_dict 会拷贝到正确的设备',
    ),
    title=Text(
        en="torch.load without map_location in a program that runs one process per GPU",
        zh="每块 GPU 一个进程的程序中，torch.load 没有 map_location",
    ),
    page=Text(
        en="Fires where a checkpoint is loaded without `map_location` in a program that sets up ranks or "
        "wraps a model for them (`init_process_group`, `DistributedDataParallel`, `Accelerator`): in the "
        "file itself, in a function that it calls, or in a file that calls the function that loads.\n\n"
        "- What goes into `load_state_dict` is a checkpoint. Otherwise names decide: quiet for those that "
        "speak of data (features, vocabularies), and in Dataset classes.\n"
        "- Quiet where only one rank comes by, and for accelerate in a program that does not train.\n"
        "- The fix is marked unsafe: a tensor that is used as loaded stays on the CPU then.",
        zh="在建立了 rank 或为其包装模型（`init_process_group`、`DistributedDataParallel`、`Accelerator`）的程序中，没有 "
        "`map_location` 就加载检查点时报告；这些调用可以在本文件、它调用的函数，或调用该加载函数的文件中。\n\n"
        "- 传给 `load_state_dict` 的即为检查点；否则由名称判断：名称表明是数据（特征、词表）以及在 Dataset 类中不报告。\n"
        "- 只有一个 rank 会执行、或程序只用 accelerate 而不训练时不报告。\n"
        "- 修复标记为不安全：直接使用的张量会留在 CPU 上。",
    ),
    bad="""\
import torch
from torch.nn.parallel import DistributedDataParallel

def main(model, path, local_rank):
    model = DistributedDataParallel(model.cuda(local_rank), device_ids=[local_rank])
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
""",
    fixed="""\
@@ -6 +6 @@
-    state = torch.load(path, weights_only=True)
+    state = torch.load(path, weights_only=True, map_location="cpu")
""",
)
_STARTS = ("init_process_group", "DistributedDataParallel", "init_distributed_mode", "Accelerator",
           "init_distributed")  # fmt: skip
_FILES = 8  # a name that more files call is too common to be followed
_DATA = pattern(
    r"data|feat|embed|vocab|dict(?!.*model)|label|index|cache|token|list|stats|mask|anno|meta|split|group|common|config|args|tracker",
    re.I,
)
_STATE = pattern(r"state|ckpt|checkpoint|model|weight|pretrain|resume|snapshot|optim|param", re.I)
_GENERATOR_STATES = ("setstate", "set_state", "set_rng_state", "set_rng_state_all")


@RULE.on_call("load")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) != "torch.load" or scene.has_star(call) or not call.args:
        return
    if scene.argument(call, 1, "map_location") is not None or scene.keyword(call, "mmap"):
        return
    if scene.is_test or scene.rank_branch(call) is not None or not _is_state(scene, call):
        return
    if _other_arm(scene, call) or _names_rank(scene, call.args[0]):
        return
    fix = unsafe(scene.add_keyword(call, 'map_location="cpu"'))
    alone = not _has_ranks(scene) and not _called_with_ranks(scene, call)
    if alone or _runs_alone(scene):
        if _chooses_device(scene) and scene.cache.setdefault("loads", call) is call:
            yield RULE.at(call, say=_NO_GPU, why=_NO_GPU_WHY, call=scene.brief(call), fix=fix)
        return
    yield RULE.at(
        call,
        confidence=POSSIBLE if _saved_from_host(scene, call) else None,
        call=scene.brief(call),
        fix=fix,
    )


_NO_GPU = Text(
    en="`{call}` fails on a machine without a GPU, although the program allows for one",
    zh="`{call}` 在没有 GPU 的机器上会失败，而程序本身允许这种机器",
)
_NO_GPU_WHY = Text(
    en="torch.load puts tensors back on the device they were saved from: a checkpoint of a GPU run cannot be "
    "loaded without one, and with several GPUs lands on the one that saved it",
    zh="torch.load 会把张量放回保存时的设备：GPU 上保存的检查点在没有 GPU 时无法加载，有多块 GPU 时会落到保存它的那一块",
)


def _chooses_device(scene: Scene) -> bool:
    """Whether the file runs with and without a GPU, as it asks which of them there is."""
    return any(
        isinstance(up, (ast.IfExp, ast.If, ast.Assign, ast.BoolOp))
        for call in scene.calls.get("is_available", ())
        if scene.qualified(call.func) == "torch.cuda.is_available"
        for up in (scene.parent(call),)
    )


def _names_rank(scene: Scene, path: ast.expr) -> bool:
    """Whether each rank has a file of its own, which it saved from its own device."""
    value = settled(scene, path) or path
    return any(
        "rank" in scene.last_name(part).lower()
        or (isinstance(part, ast.Constant) and isinstance(part.value, str) and "rank" in part.value)
        for node in (path, value)
        for part in scene.inside(node)
    )


def _saved_from_host(scene: Scene, load: ast.Call) -> bool:
    """Whether the method that saves what this one loads (`save_network`, `load_network`) moves it to the
    CPU before."""
    owner, function = scene.class_of(load), scene.function(load)
    if owner is None or function is None or "load" not in function.name:
        return False
    name = function.name.replace("load", "save")
    return any(
        getattr(scene.function(move), "name", "") == name and scene.within(move, owner)
        for move in scene.calls.get("cpu", ())
    )


def _has_ranks(scene: Scene) -> bool:
    """Whether a file starts several processes: by itself, or in a function that it calls."""
    known: bool | None = scene.cache.get("has ranks")
    if known is None:
        known = any(scene.calls.get(name) for name in _STARTS) or any(
            found[0].within(start, found[1])
            for call in scene.all(ast.Call)
            if not is_outside(scene, call) and (found := target_of(scene, call)) is not None
            for word in _STARTS
            for start in found[0].calls.get(word, ())
        )
        scene.cache["has ranks"] = known
    return known


def _called_with_ranks(scene: Scene, call: ast.Call) -> bool:
    """Whether a file with several processes calls the function that loads, or makes its object."""
    function, owner = scene.function(call), scene.class_of(call)
    name = owner.name if owner is not None else function.name if function is not None else ""
    homes = scene.project.files_that_call(name) if name else []
    return any(
        (home := scene.project.load(path, scene)) is not None
        and home is not scene
        and any(home.calls.get(word) for word in _STARTS)
        and any(
            (found := scene.project.definition(home, site.func, home.qualified(site.func)))
            is not None
            and found[0].path == scene.path
            and home.rank_branch(site) is None
            for site in home.calls.get(name, ())
        )
        for path in (homes if len(homes) <= _FILES else ())
    )


def _runs_alone(scene: Scene) -> bool:
    """Whether the only sign of several processes is accelerate, in a program that does not train."""
    return (
        not scene.calls.get("backward")
        and not any(
            scene.calls.get(name)
            for name in ("init_process_group", "DistributedDataParallel", "init_distributed_mode")
        )
        and bool(scene.calls.get("Accelerator"))
    )


def _other_arm(scene: Scene, call: ast.Call) -> bool:
    """Whether the other arm of a condition maps the same file: then this one runs alone."""
    text = scene.text(call.args[0])
    return any(
        other is not call
        and other.args
        and scene.text(other.args[0]) == text
        and scene.argument(other, 1, "map_location") is not None
        and exclusive(scene, call, other)
        for other in scene.calls.get("load", ())
    )


def _is_loaded_into(scene: Scene, call: ast.Call) -> bool:
    """Whether what is loaded goes into a `load_state_dict`, whatever it is called."""
    return bool(_takers(scene, call, "load_state_dict"))


def _into_scheduler(scene: Scene, call: ast.Call) -> bool:
    """`scheduler.load_state_dict(torch.load(…))`: numbers, which live on no device."""
    takers = _takers(scene, call, "load_state_dict")
    return bool(takers) and all(
        "sched" in scene.last_name(scene.receiver(taker)).lower() for taker in takers
    )


def _into_generators(scene: Scene, call: ast.Call) -> bool:
    """`random.setstate(states["python"])`: states of generators are kept on the host."""
    return any(_takers(scene, call, name) for name in _GENERATOR_STATES)


def _takers(scene: Scene, call: ast.Call, method: str) -> list[ast.Call]:
    """The calls of a method that get what is loaded, at once or by its name."""
    statement = scene.statement(call)
    names = (
        {scene.dotted(t) for t in statement.targets} if isinstance(statement, ast.Assign) else set()
    )
    return [
        other
        for other in scene.calls.get(method, ())
        if scene.scope(other) is scene.scope(call)
        if scene.within(call, other)
        or any(
            scene.dotted(node) in names - {""}
            for node in scene.inside(other)
            if isinstance(node, (ast.Name, ast.Attribute))
        )
    ]


def _only_fields(scene: Scene, call: ast.Call) -> bool:
    """Whether what is loaded is taken apart into fields of the object, and goes nowhere else."""
    statement = scene.statement(call)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name) or getattr(statement, "value", None) is not call:
        return False
    reads = [
        node
        for node in scene.all(ast.Name)
        if node.id == target.id and isinstance(node.ctx, ast.Load)
        if scene.scope(node) is scene.scope(call)
    ]
    return bool(reads) and all(_is_field(scene, node) for node in reads)


def _is_field(scene: Scene, node: ast.Name) -> bool:
    """`self.name = info["name"]`"""
    up = scene.parent(node)
    outer = scene.parent(up) if isinstance(up, ast.Subscript) and up.value is node else None
    return isinstance(outer, ast.Assign) and all(
        scene.dotted(target).startswith("self.") for target in outer.targets
    )


def _is_state(scene: Scene, call: ast.Call) -> bool:
    """Whether what is loaded is a model's or an optimizer's state, by the names around it."""
    if _into_scheduler(scene, call) or _into_generators(scene, call):
        return False
    if _is_loaded_into(scene, call):
        return True
    if _only_fields(scene, call):
        return False
    owner = scene.class_of(call)
    if owner is not None and "dataset" in owner.name.lower():
        return False
    statement = scene.statement(call)
    names = [scene.text(call.args[0])]
    if isinstance(statement, ast.Assign):
        names += [scene.text(target) for target in statement.targets]
    if isinstance(up := scene.parent(call), ast.Call) and up is not call:
        names.append(scene.last_name(up.func))
    return bool(_STATE.search(" ".join(names))) and not _DATA.search(_STATE.sub("", names[0]))
