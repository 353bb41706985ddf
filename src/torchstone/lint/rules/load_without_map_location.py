"""A checkpoint goes back to the device it came from, on every rank to the same one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.amp import takers_of
from torchstone.lint.knowledge.flow import before, exclusive, settled
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.scene import Scene
from torchstone.sources.targets import is_outside, target_of

RULE = Rule(
    "TS418",
    "load-without-map-location",
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
        "- A checkpoint is what goes into `load_state_dict`, at once or by its name; the state of a scheduler "
        "holds no tensors.\n"
        "- Without ranks, said of the first such load in a file that asks whether there is a GPU.\n"
        "- Quiet where only one rank comes by, and for accelerate in a program that does not train.\n"
        "- The fix is marked unsafe: a tensor that is used as loaded stays on the CPU then.",
        zh="在建立了 rank 或为其包装模型（`init_process_group`、`DistributedDataParallel`、`Accelerator`）的程序中，没有 "
        "`map_location` 就加载检查点时报告；这些调用可以在本文件、它调用的函数，或调用该加载函数的文件中。\n\n"
        "- 直接或经由名称传给 `load_state_dict` 的即为检查点；调度器的状态不含张量。\n"
        "- 没有 rank 时，只在询问是否有 GPU 的文件中报告第一处。\n"
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
_STARTS = ("init_process_group", "DistributedDataParallel", "init_distributed_mode",
           "init_distributed")  # fmt: skip
_FILES = 8  # a name that more files call is too common to be followed


@RULE.on_call("load")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if scene.qualified(call.func) != "torch.load" or scene.has_star(call) or not call.args:
        return
    if scene.argument(call, 1, "map_location") is not None or scene.keyword(call, "mmap"):
        return
    takers = takers_of(scene, call, "load_state_dict")
    if all("sched" in scene.last_name(scene.receiver(taker)).lower() for taker in takers):
        return  # nothing takes it as a state, or a schedule, whose numbers live on no device
    if scene.is_test or scene.rank_branch(call) is not None:
        return
    if scene.project.mentions(".cpu().state_dict()"):
        return  # the project saves its states from the host
    if _other_arm(scene, call) or _names_rank(scene, call.args[0]) or _just_saved(scene, call):
        return
    fix = unsafe(scene.add_keyword(call, 'map_location="cpu"'))
    if _has_ranks(scene) or _called_with_ranks(scene, call):
        yield RULE.at(call, call=scene.brief(call), fix=fix)
    elif _chooses_device(scene) and scene.cache.setdefault("loads", call) is call:
        yield RULE.at(call, say=_NO_GPU, why=_NO_GPU_WHY, call=scene.brief(call), fix=fix)


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
        if not (isinstance(up, ast.If) and any(_refuses(arm) for arm in (up.body, up.orelse)))
    )


def _refuses(arm: list[ast.stmt]) -> bool:
    """Whether an arm ends the program: it does not run without a GPU."""
    return bool(arm) and isinstance(arm[-1], ast.Raise)


def _just_saved(scene: Scene, call: ast.Call) -> bool:
    """Whether the function saved the very file itself, on this machine."""
    path = scene.text(call.args[0])
    return any(
        before(other, call)
        and scene.function(other) is scene.function(call)
        and any(scene.text(given) == path for given in other.args)
        for other in scene.calls.get("save", ())
    )


def _names_rank(scene: Scene, path: ast.expr, depth: int = 3) -> bool:
    """Whether each rank has a file of its own, which it saved from its own device; `depth` names of what
    the path is made of are followed."""
    parts = scene.inside(path)
    if any(
        "rank" in scene.last_name(part).lower()
        or (isinstance(part, ast.Constant) and isinstance(part.value, str) and "rank" in part.value)
        for part in parts
    ):
        return True
    made = (settled(scene, part) for part in parts if isinstance(part, ast.Name))
    return depth > 0 and any(
        _names_rank(scene, value, depth - 1) for value in made if value is not None
    )


def _starts(scene: Scene) -> bool:
    """Whether a file starts several processes, or trains with accelerate, which may."""
    accelerates = bool(scene.calls.get("Accelerator") and scene.calls.get("backward"))
    return accelerates or any(scene.calls.get(name) for name in _STARTS)


def _has_ranks(scene: Scene) -> bool:
    """Whether a file starts several processes: by itself, or in a function that it calls."""
    known: bool | None = scene.cache.get("has ranks")
    if known is None:
        known = _starts(scene) or any(
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
        and _starts(home)
        and any(
            (found := scene.project.definition(home, site.func, home.qualified(site.func)))
            is not None
            and found[0].path == scene.path
            and home.rank_branch(site) is None
            for site in home.calls.get(name, ())
        )
        for path in (homes if len(homes) <= _FILES else ())
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
