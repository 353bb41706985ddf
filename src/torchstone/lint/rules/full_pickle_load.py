"""Loading a checkpoint as a full pickle runs the code that it holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import LIKELY, LOW, MEDIUM, POSSIBLE, Hit, Rule, unsafe
from torchstone.sources.scene import Scene

_LOADS = frozenset(("torch.load", "torch.serialization.load"))
_URLS = frozenset(("torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"))
_FETCHES = frozenset(
    ("hf_hub_download", "cached_file", "cached_download", "urlretrieve", "download_url_to_file",
     "urlopen", "download", "download_url", "load_file_from_url", "get", "wget")
)  # fmt: skip
_FROM_URL = Text(
    en="`{call}` unpickles a file from the network without limits",
    zh="`{call}` 不受限制地反序列化来自网络的文件",
)

RULE = Rule(
    "TS516",
    "full-pickle-load",
    severity=LOW,
    confidence=LIKELY,
    torch_from=(1, 13),
    title=Text(
        en="A checkpoint is loaded as a full pickle, which can run any code",
        zh="以完整 pickle 方式加载检查点，可能执行任意代码",
    ),
    say=Text(en="`{call}` runs whatever code the file holds", zh="`{call}` 会执行文件中的任意代码"),
    why=Text(
        en="with `weights_only=False` a checkpoint from somebody else is a program from somebody "
        "else, running with your rights",
        zh="`weights_only=False` 时，加载他人的检查点等于以你的权限运行他人的程序",
    ),
    suggest=Text(
        en="use `weights_only=True`, with `torch.serialization.safe_globals([...])` for the classes "
        "you expect, or store plain tensors (safetensors)",
        zh="改用 `weights_only=True`，并用 `torch.serialization.safe_globals([...])` 放行预期的类；或只保存"
        "张量（safetensors）",
    ),
    page=Text(
        en="Fires on `torch.load(..., weights_only=False)`, as LOW: it is right for files that you "
        "wrote yourself. MEDIUM where the same function fetches the file from the network, and for "
        "`torch.hub.load_state_dict_from_url`, whose default is still `weights_only=False` in "
        "torch 2.13. Quiet in tests.\n\n"
        "The fix, for downloads, passes `weights_only=True`: unsafe, since files with other "
        "objects then fail to load.",
        zh="检查 `torch.load(..., weights_only=False)`，等级为 LOW：对自己写出的文件这样做没有问题。若同一函数"
        "从网络获取该文件，或使用 `torch.hub.load_state_dict_from_url`（在 torch 2.13 中默认仍为 "
        "`weights_only=False`），则为 MEDIUM。测试代码不报告。\n\n"
        "针对下载的修复会传入 `weights_only=True`；含有其他对象的文件将无法加载，因此标记为不安全。",
    ),
    bad="""\
import torch

def fetch(url):
    return torch.hub.load_state_dict_from_url(url, progress=False)
""",
    good="""\
import torch

state = torch.load('model.pt', weights_only=True)
""",
    fixed="""\
@@ -4 +4 @@
-    return torch.hub.load_state_dict_from_url(url, progress=False)
+    return torch.hub.load_state_dict_from_url(url, progress=False, weights_only=True)
""",
)


@RULE.on_call("load", "load_state_dict_from_url", "load_url")
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`torch.load(path, weights_only=False)`"""
    full = scene.qualified(call.func)
    given = scene.keyword(call, "weights_only")
    confidence = POSSIBLE if scene.is_test else None
    if full in _LOADS:
        if given is not None and scene.literal(given) is False:
            fetched = _fetched(call, scene)
            yield RULE.at(
                call,
                severity=MEDIUM if fetched else None,
                confidence=confidence,
                call=scene.brief(call),
            )
    elif full in _URLS and not any(keyword.arg is None for keyword in call.keywords):
        if given is None or scene.literal(given) is False:
            edit = (
                scene.add_keyword(call, "weights_only=True")
                if given is None
                else scene.replace(given, "True")
            )
            yield RULE.at(
                call, confidence=confidence, say=_FROM_URL, fix=unsafe(edit), call=scene.brief(call)
            )


def _fetched(call: ast.Call, scene: Scene) -> bool:
    """Whether what is loaded was fetched by a call of the same function."""
    path = scene.argument(call, 0, "f")
    made = path if isinstance(path, ast.Call) else scene.value(path)
    return isinstance(made, ast.Call) and scene.last_name(made.func) in _FETCHES
