"""nll_loss and kl_div take log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.knowledge.activations import last_activation, loss_calls
from torchstone.lint.rule import HIGH, LIKELY, Hit, Rule
from torchstone.sources.scene import Scene

CLASSES = frozenset(("NLLLoss", "KLDivLoss"))
NAMES = frozenset(("nll_loss", "kl_div"))

RULE = Rule(
    "TS223",
    "probabilities-as-log-probabilities",
    group="correctness",
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
        en="A loss such as nll_loss or kl_div is given probabilities instead of log-probabilities",
        zh="nll_loss、kl_div 等损失收到的是概率而不是对数概率",
    ),
    page=Text(
        en="The first argument of `F.nll_loss`, `F.kl_div` and of anything made from `nn.NLLLoss` "
        "or `nn.KLDivLoss` is followed back to the activation it came from, as in "
        "softmax-before-cross-entropy.\n\n"
        "- `softmax(x).log()` is quiet here: right in value, if less exact than `log_softmax`.\n"
        "- The target of `kl_div` holds probabilities unless `log_target=True`; that argument is "
        "not looked at.",
        zh="与 softmax-before-cross-entropy 相同，追溯 `F.nll_loss`、`F.kl_div` 以及由 `nn.NLLLoss`、"
        "`nn.KLDivLoss` 创建的对象的第一个参数来自哪个激活函数。\n\n"
        "- `softmax(x).log()` 不报告：数值正确，只是不如 `log_softmax` 精确。\n"
        "- `kl_div` 的目标默认就是概率（除非 `log_target=True`），不检查。",
    ),
    bad=(
        """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.softmax(model(x), dim=1), y)
""",
    ),
    good=(
        """\
import torch.nn.functional as F

def loss_of(model, x, y):
    return F.nll_loss(F.log_softmax(model(x), dim=1), y)
""",
    ),
    words=tuple(CLASSES | NAMES),
)


@RULE.on_file
def check(scene: Scene) -> Iterator[Hit]:
    for call, loss in loss_calls(scene, CLASSES, NAMES):
        value = scene.argument(call, 0, "input")
        activation = last_activation(scene, value)
        if value is not None and activation in ("softmax", "sigmoid"):
            yield RULE.at(value, value=scene.brief(value), activation=activation, loss=loss)
