"""BCE with logits applies the sigmoid itself."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.lint.values.losses import loss_calls
from torchstone.sources.scene import Scene

LOSSES = frozenset(
    "BCEWithLogitsLoss MultiLabelSoftMarginLoss binary_cross_entropy_with_logits "
    "multilabel_soft_margin_loss".split()
)

RULE = Rule(
    "TS204",
    "sigmoid-before-bce-with-logits",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="`{value}` went through {activation} before {loss}",
        zh="`{value}` 在传入 {loss} 之前已经过 {activation}",
    ),
    why=Text(
        en="{loss} applies the sigmoid itself: a second one squeezes every prediction into "
        "0.5–0.73, so a negative can never be predicted and the gradients vanish",
        zh="{loss} 内部会做 sigmoid；重复一次会把所有预测压到 0.5–0.73 之间，负类永远预测不出来，梯度趋于消失",
    ),
    suggest=Text(
        en="pass the raw logits; apply sigmoid only where probabilities are needed",
        zh="直接传入原始 logits；只在需要概率的地方再做 sigmoid",
    ),
    title=Text(
        en="Binary cross entropy with logits is given probabilities",
        zh="带 logits 的二元交叉熵收到的是概率",
    ),
    page=Text(
        en="The first argument of `F.binary_cross_entropy_with_logits` and of anything made from "
        "`nn.BCEWithLogitsLoss` (and `MultiLabelSoftMarginLoss`, which does the same) is followed "
        "back: through names, reshapes, a model of the project whose `forward` always returns a "
        "sigmoid, and an `nn.Sequential` that ends in `nn.Sigmoid`.\n\n"
        "- Softmax before it is reported too: these losses treat each output on its own.\n"
        "- The other way, `nn.BCELoss` on logits, raises at run time once a value leaves 0–1.\n"
        "- Quiet when a branch leaves it open which value arrives.",
        zh="沿着变量、变形操作、`forward` 总是返回 sigmoid 的项目内模型，以及以 `nn.Sigmoid` 结尾的 "
        "`nn.Sequential`，追溯 `F.binary_cross_entropy_with_logits` 或由 `nn.BCEWithLogitsLoss`"
        "（以及行为相同的 `MultiLabelSoftMarginLoss`）创建的对象的第一个参数。\n\n"
        "- 之前做 softmax 同样会报告：这类损失逐个输出独立处理。\n"
        "- 反过来，把 logits 传给 `nn.BCELoss`，只要数值超出 0–1，运行时就会报错。\n"
        "- 分支导致无法确定取值时不报告。",
    ),
    bad="""\
import torch
from torch import nn

criterion = nn.BCEWithLogitsLoss()

def loss_of(model, x, y):
    out = torch.sigmoid(model(x)).squeeze(1)
    return criterion(out, y)
""",
    good="""\
@@ -7 +7 @@
-    out = torch.sigmoid(model(x)).squeeze(1)
+    out = model(x).squeeze(1)
""",
    words=tuple(sorted(LOSSES)),
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for loss in loss_calls(scene, LOSSES):
        wrong = sorted(loss.content - {"", "logits"})
        if wrong:
            level = HIGH if len(loss.content) == 1 else MEDIUM
            value = scene.brief(loss.value)
            yield RULE.at(
                loss.value, severity=level, value=value, activation=wrong[0], loss=loss.name
            )
