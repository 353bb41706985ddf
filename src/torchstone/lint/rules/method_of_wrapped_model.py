"""A wrapped model has no methods but its own: `model.generate` fails once `model` is a DataParallel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.facts.paths import contradict
from torchstone.lint.knowledge.torch_names import names_of
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.lint.values.analysis import value_at
from torchstone.sources.scene import Scene

RULE = Rule(
    "TS251",
    "method-of-wrapped-model",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{name}` is not an attribute of `{wrapper}`, which `{model}` is here",
        zh="此处 `{model}` 是 `{wrapper}`，它没有属性 `{name}`",
    ),
    why=Text(
        en="the wrapper does not hand attributes on: the line ends with an AttributeError as soon as the model is wrapped",
        zh="包装器不会转发属性：模型被包装后，这一行会以 AttributeError 结束",
    ),
    suggest=Text(
        en="write `{model}.module.{name}`, or keep the bare model under a name of its own",
        zh="写成 `{model}.module.{name}`，或另用一个名字保存未包装的模型",
    ),
    title=Text(
        en="A method or attribute of the model is looked up on its DataParallel or DDP wrapper",
        zh="在 DataParallel 或 DDP 包装器上查找模型自己的方法或属性",
    ),
    page=Text(
        en="""\
Followed through assignments, branches, functions and attributes from the place where the model is wrapped. Quiet where the code asks first
(`hasattr(model, "module")`, `isinstance`), and for everything that `nn.Module` and the wrappers have themselves.""",
        zh="""\
从包装模型之处沿赋值、分支、函数和属性追踪。代码事先判断（`hasattr(model, "module")`、`isinstance`）的地方不报告，`nn.Module` 和包装器自身拥有的属性不
报告。""",
    ),
    words=("DataParallel", "DistributedDataParallel"),
    bad="""\
import torch
from torch import nn

def main(net, x):
    model = nn.DataParallel(net)
    return model.generate(x)
""",
    good="""\
@@ -6 +6 @@
-    return model.generate(x)
+    return model.module.generate(x)
""",
)
_OWN = frozenset(
    "module device_ids output_device dim src_device_obj training no_sync join reducer logger device_type "
    "process_group gradient_as_bucket_view static_graph find_unused_parameters broadcast_buffers device "
    "scatter gather replicate parallel_apply register_comm_hook require_backward_grad_sync will_sync_module_buffers "
    "require_forward_param_sync ddp_uneven_inputs_config".split()
)


_ASKS = pattern(r"hasattr\([^()]*[\"']module[\"']")


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    """One finding for each attribute of a name."""
    if _ASKS.search(scene.source.text):
        return  # the file asks whether the model is wrapped
    reported: set[tuple[str, str]] = set()
    known = names_of("torch.nn.Module")
    for node in scene.all(ast.Attribute):
        if node.attr in known or node.attr in _OWN or node.attr.startswith("_"):
            continue
        if not isinstance(node.ctx, ast.Load) or not isinstance(
            node.value, (ast.Name, ast.Attribute)
        ):
            continue
        model = scene.dotted(node.value)
        if not model or (model, node.attr) in reported or not _sounds_wrapped(scene, model):
            continue
        value = value_at(scene, node.value)
        named = f"'{node.attr}'" in scene.source.text or f'"{node.attr}"' in scene.source.text
        if value.wrapped and not named and not _is_asked(scene, node):
            if _is_excluded(scene, node, model):
                continue
            reported.add((model, node.attr))
            yield RULE.at(node, name=node.attr, wrapper=value.wrapped, model=model)


def _sounds_wrapped(scene: Scene, model: str) -> bool:
    """Whether a name of the file gets a wrapper, or a model as a parameter."""
    names: set[str] | None = scene.cache.get("names of wrapped models")
    if names is None:
        names = set()
        for word in _WRAPPERS:
            for call in scene.calls.get(word, ()):
                statement = scene.statement(call)
                if isinstance(statement, ast.Assign):
                    names.update(map(scene.dotted, statement.targets))
        scene.cache["names of wrapped models"] = names
    last = model.rpartition(".")[2]
    return model in names or any(item.rpartition(".")[2] == last for item in names)


def _is_excluded(scene: Scene, node: ast.AST, model: str) -> bool:
    """Whether the model is wrapped only under conditions that do not hold at a place of its function."""
    wraps = [
        call
        for word in _WRAPPERS
        for call in scene.calls.get(word, ())
        if scene.function(call) is scene.function(node)
        and isinstance(statement := scene.statement(call), ast.Assign)
        and model in map(scene.dotted, statement.targets)
    ]
    return bool(wraps) and all(contradict(scene, call, node) for call in wraps)


_WRAPPERS = ("DataParallel", "DistributedDataParallel", "DDP")


def _is_asked(scene: Scene, node: ast.AST) -> bool:
    """Whether a condition around the place asks what the model is."""
    return any(
        isinstance(up, (ast.If, ast.IfExp))
        and any(
            word in scene.text(up.test)
            for word in ("isinstance", "module", "parallel", "gpu", "distributed")
        )
        for up in scene.ancestors(node)
    ) or any(isinstance(up, ast.Try) for up in scene.ancestors(node))
