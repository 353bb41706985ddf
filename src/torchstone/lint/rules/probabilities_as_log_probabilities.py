"""nll_loss and kl_div take log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.rule import HIGH, LIKELY, MEDIUM, Hit, Rule
from torchstone.lint.values.losses import loss_calls
from torchstone.sources.scene import Scene

LOSSES = frozenset("NLLLoss KLDivLoss CTCLoss nll_loss kl_div ctc_loss".split())

RULE = Rule(
    "TS223",
    "probabilities-as-log-probabilities",
    severity=HIGH,
    confidence=LIKELY,
    say=Text(
        en="{loss} expects log-probabilities, but `{value}` holds {activation} output",
        zh="{loss} 需要对数概率，而 `{value}` 是 {activation} 的输出",
    ),
    why=Text(
        en="{loss} takes no logarithm of its input: on probabilities nll_loss stays between -1 and "
        "0 and kl_div is no divergence, so the number falls while nothing is learnt as meant",
        zh="{loss} 不会对输入取对数：输入概率时 nll_loss 落在 -1 到 0 之间，kl_div 也不再是散度，"
        "数值在下降，学到的却不是想要的",
    ),
    suggest=Text(
        en="use log_softmax instead of {activation} for the first argument",
        zh="第一个参数改用 log_softmax，而不是 {activation}",
    ),
    title=Text(
        en="A loss such as nll_loss, kl_div or ctc_loss is not given log-probabilities",
        zh="nll_loss、kl_div、ctc_loss 等损失收到的不是对数概率",
    ),
    page=Text(
        en="The first argument of `F.nll_loss`, `F.kl_div`, `F.ctc_loss` and of anything made from "
        "their classes is followed back to the activation it came from, as in "
        "softmax-before-cross-entropy.\n\n"
        "- `softmax(x).log()` is quiet here: right in value, if less exact than `log_softmax`.\n"
        "- The target of `kl_div` holds probabilities unless `log_target=True`; that argument is "
        "not looked at.",
        zh="与 softmax-before-cross-entropy 相同，追溯 `F.nll_loss`、`F.kl_div`、`F.ctc_loss` 以及由"
        "相应的类创建的对象的第一个参数来自哪个激活函数。\n\n"
        "- `softmax(x).log()` 不报告：数值正确，只是不如 `log_softmax` 精确。\n"
        "- `kl_div` 的目标默认就是概率（除非 `log_target=True`），不检查。",
    ),
    bad="""\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.softmax(model(x), dim=1), y)
""",
    good="""\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.log_softmax(model(x), dim=1), y)
""",
    words=tuple(sorted(LOSSES)),
)


_RAW = Text(
    en="{loss} expects log-probabilities, but `{value}` is what a layer gives",
    zh="{loss} 需要对数概率，而 `{value}` 是某一层的直接输出",
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for loss in loss_calls(scene, LOSSES):
        wrong = sorted(loss.content & {"softmax", "sigmoid", "logits"}, reverse=True)
        if wrong:
            raw = wrong[0] == "logits"
            yield RULE.at(
                loss.value,
                severity=HIGH if len(loss.content) == 1 else MEDIUM,
                say=_RAW if raw else None,
                value=scene.brief(loss.value),
                activation="raw output" if raw else wrong[0],
                loss=loss.name,
            )
