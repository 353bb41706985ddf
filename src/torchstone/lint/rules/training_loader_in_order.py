"""A training loader without shuffle or sampler gives the same batches in the same order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.effects import Effect
from torchstone.lint.facts.summary import summary_within
from torchstone.lint.knowledge.flow import loops_around
from torchstone.lint.knowledge.loaders import bound_names, is_loader, training_loops
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, unsafe
from torchstone.sources.regions import DATASET_BASES
from torchstone.sources.scene import Function, Scene

RULE = Rule(
    "TS234",
    "training-loader-in-order",
    severity=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="this training DataLoader neither shuffles nor has a sampler",
        zh="该训练 DataLoader 既不打乱，也没有 sampler",
    ),
    why=Text(
        en="every epoch sees the same batches in the order of the data set; sorted data (by class, "
        "by length, by source) then train one kind after the other",
        zh="每个 epoch 都按数据集原有顺序看到相同的批次；若数据有序（按类别、长度、来源），模型就会一类一类地训练",
    ),
    suggest=Text(en="pass `shuffle=True`, or a sampler", zh="传入 `shuffle=True` 或一个 sampler"),
    title=Text(
        en="A training DataLoader has neither shuffle nor sampler",
        zh="训练用的 DataLoader 没有 shuffle 也没有 sampler",
    ),
    page=Text(
        en="Fires for a DataLoader without `shuffle`, `sampler` or `batch_sampler` when a loop over it "
        "trains: in its own file, or in a file that gets it from a function or an object of the "
        "project. Unless its name speaks of training, the loop must go over the data repeatedly.\n\n"
        "- Quiet for iterable data sets (their own business), for data named after streams or "
        "sequences in time, and where the data are shuffled before.",
        zh="DataLoader 没有 `shuffle`、`sampler` 或 `batch_sampler`，而遍历它的循环在训练时报告：循环可以在同一文件中，"
        "也可以在通过项目的函数或对象得到它的文件中。若名称未表明用于训练，则该循环须多次遍历数据。\n\n"
        "- 可迭代数据集、名称表明是流式或时间序列的数据，以及事先已打乱的数据不报告。",
    ),
    bad="""\
import torch
from torch.utils.data import DataLoader

def main(train_set, model, opt):
    train_loader = DataLoader(train_set, batch_size=32, num_workers=4)
    for epoch in range(3):
        for x, y in train_loader:
            opt.zero_grad()
            model(x, y).backward()
            opt.step()
""",
    fixed="""\
@@ -5 +5 @@
-    train_loader = DataLoader(train_set, batch_size=32, num_workers=4)
+    train_loader = DataLoader(train_set, batch_size=32, num_workers=4, shuffle=True)
""",
)
_ORDERED = pattern(r"stream|iterable|webd|wds|packed|bucket|infinite|mock|dummy|fake|synthetic"
                   r"|random|shuffl|sequential|debug|proxy|finetune_one|overfit", re.I)  # fmt: skip


@RULE.on_call("DataLoader")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    if not is_loader(scene, call) or scene.is_test:
        return
    names = bound_names(scene, call)
    data = scene.argument(call, 0, "dataset")
    about = " ".join((*names, scene.text(data) if data is not None else ""))
    if re.search("eval|val_|_val|test", about):
        return
    shuffle = scene.argument(call, 2, "shuffle")
    if shuffle is not None and scene.literal(shuffle) is not False:
        return
    if scene.argument(call, 3, "sampler") or scene.argument(call, 4, "batch_sampler"):
        return
    if _ORDERED.search(about) or _is_iterable(scene, data) or _shuffled(scene, data):
        return
    named = any("train" in name.lower() for name in names)
    if not any(named or _is_repeated(home, loop) for home, loop in training_loops(scene, call)):
        return
    fix = unsafe(
        scene.replace(shuffle, "True")
        if shuffle is not None
        else scene.add_keyword(call, "shuffle=True")
    )
    yield RULE.at(call, fix=fix)


def _is_iterable(scene: Scene, data: ast.expr | None) -> bool:
    """Whether the data set is, or may be, one that is only iterated over."""
    made = scene.origin(data)
    if not isinstance(made, ast.Call):
        return False
    if _ORDERED.search(scene.text(made.func)):
        return True
    found = scene.project.class_named(scene, made.func, scene.qualified(made.func))
    iterable = frozenset(name for name in DATASET_BASES if "Iterable" in name)
    return found is not None and found[0].derives(found[1], iterable)


def _shuffled(scene: Scene, data: ast.expr | None) -> bool:
    """Whether the file shuffles or permutes data by itself."""
    del data
    return any(
        name in scene.calls
        for name in ("shuffle", "permutation", "randperm", "set_epoch", "WeightedRandomSampler")
    )


def _is_repeated(scene: Scene, loop: ast.For) -> bool:
    """Whether a loop goes over the data time and again: one pass may be meant to be in order."""
    function = scene.function(loop)
    again = bool(loops_around(scene, loop)) or (
        function is not None and any(loops_around(scene, use) for use in _uses(scene, function))
    )
    return again and summary_within(scene, loop).has(Effect.STEP)


def _uses(scene: Scene, function: Function) -> list[ast.Call]:
    """The calls of a function, those of an inner one by its outer function included."""
    return [use for use in scene.calls.get(function.name, ()) if not scene.within(use, function)]
