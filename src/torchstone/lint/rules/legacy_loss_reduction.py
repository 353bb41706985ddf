"""`size_average` and `reduce` of the losses became `reduction`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.fix import Fix
from torchstone.core.pattern import pattern
from torchstone.core.text import Text
from torchstone.lint.rule import LOW, Hit, Rule, safe
from torchstone.sources.scene import Scene

_LOSSES = pattern(
    r"torch\.nn\.(?:modules\.loss\.)?\w*Loss|torch\.nn\.functional\.\w*(?:loss|cross_entropy|_with_logits|kl_div)"
)
_FUNCTIONS = (
    "l1_loss", "nll_loss", "mse_loss", "kl_div", "binary_cross_entropy", "cross_entropy",
    "binary_cross_entropy_with_logits", "hinge_embedding_loss", "smooth_l1_loss", "soft_margin_loss",
    "cosine_embedding_loss", "multi_margin_loss", "multilabel_margin_loss", "margin_ranking_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "triplet_margin_loss",
)  # fmt: skip
_MODULES = (
    "L1Loss", "NLLLoss", "MSELoss", "KLDivLoss", "BCELoss", "CrossEntropyLoss", "BCEWithLogitsLoss",
    "HingeEmbeddingLoss", "SmoothL1Loss", "SoftMarginLoss", "CosineEmbeddingLoss", "MultiMarginLoss",
    "MultiLabelMarginLoss", "MarginRankingLoss", "MultiLabelSoftMarginLoss", "PoissonNLLLoss",
    "TripletMarginLoss",
)  # fmt: skip

RULE = Rule(
    "TS505",
    "legacy-loss-reduction",
    severity=LOW,
    aliases=("TOR101",),
    title=Text(
        en="The loss uses the deprecated `size_average` or `reduce` argument",
        zh="损失函数用已弃用的 `size_average` 或 `reduce` 指定归约方式",
    ),
    say=Text(
        en="`{old}` of `{loss}` is deprecated: it became `reduction`",
        zh="`{loss}` 的 `{old}` 已弃用，由 `reduction` 取代",
    ),
    why=Text(
        en="torch warns on every use, and two switches for three modes are easily read wrongly: "
        "they win over `reduction` when both are given",
        zh="每次使用都会收到警告；用两个开关表达三种模式容易读错，而且与 `reduction` 同时给出时会覆盖它",
    ),
    suggest=Text(en="pass `reduction='{reduction}'`", zh="传入 `reduction='{reduction}'`"),
    page=Text(
        en="Fires on the keywords `size_average` and `reduce` of torch's losses, as modules and as "
        "functions. `reduce=False` means `'none'`; otherwise `size_average=False` means `'sum'`, "
        "and everything else `'mean'`.\n\n"
        "The fix writes `reduction` when the switches are written `True`, `False` or `None`.",
        zh="检查 torch 损失函数（模块与函数两种形式）的关键字 `size_average` 与 `reduce`。`reduce=False` 表示 "
        "`'none'`；否则 `size_average=False` 表示 `'sum'`，其余均为 `'mean'`。\n\n"
        "当开关以 `True`、`False` 或 `None` 字面量给出时，修复会改写为 `reduction`。",
    ),
    bad="""\
import torch

criterion = torch.nn.MSELoss(size_average=False)
""",
    fixed="""\
@@ -3 +3 @@
-criterion = torch.nn.MSELoss(size_average=False)
+criterion = torch.nn.MSELoss(reduction='sum')
""",
)


@RULE.on_call(*_FUNCTIONS, *_MODULES)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    """`nn.MSELoss(size_average=False)`"""
    old = [keyword for keyword in call.keywords if keyword.arg in ("size_average", "reduce")]
    if not old or not _LOSSES.fullmatch(scene.qualified(call.func)):
        return
    reduction = _reduction(scene, old)
    yield RULE.at(
        call,
        fix=_fix(scene, call, old, reduction),
        old=" and ".join(str(keyword.arg) for keyword in old),
        loss=scene.text(call.func),
        reduction=reduction or "…",
    )


def _reduction(scene: Scene, old: list[ast.keyword]) -> str:
    """What the switches mean together, or "" when they are not written down."""
    values = {keyword.arg: scene.literal(keyword.value) for keyword in old}
    if not all(value is None or isinstance(value, bool) for value in values.values()):
        return ""
    if values.get("reduce") is False:
        return "none"
    return "sum" if values.get("size_average") is False else "mean"


def _fix(scene: Scene, call: ast.Call, old: list[ast.keyword], reduction: str) -> Fix | None:
    if not reduction or any(keyword.arg == "reduction" for keyword in call.keywords):
        return None
    first, *others = old
    edits = [scene.replace(first, f"reduction='{reduction}'")]
    for other in others:
        before = call.keywords[call.keywords.index(other) - 1]
        edits.append(scene.replace_between(before, other, ""))
    adjacent = not others or call.keywords.index(others[0]) == call.keywords.index(first) + 1
    return safe(*edits) if adjacent else None
