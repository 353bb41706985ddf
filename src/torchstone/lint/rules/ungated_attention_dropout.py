"""Fused attention applies its dropout whatever the module's mode is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchstone.core.text import Text
from torchstone.lint.facts.rates import is_never_set
from torchstone.lint.knowledge.flow import settled
from torchstone.lint.knowledge.gating import gated_by_mode, mentions_mode
from torchstone.lint.rule import LIKELY, MEDIUM, Hit, Rule, safe
from torchstone.sources.scene import Scene

# name: (keyword, position) of the dropout probability
_CALLS = {
    "scaled_dot_product_attention": ("dropout_p", 4),
    "flash_attn_func": ("dropout_p", 3),
    "flash_attn_varlen_func": ("dropout_p", 7),
    "flash_attn_qkvpacked_func": ("dropout_p", 1),
    "flash_attn_kvpacked_func": ("dropout_p", 2),
    "flash_attn_varlen_qkvpacked_func": ("dropout_p", 3),
    "flash_attn_varlen_kvpacked_func": ("dropout_p", 6),
    "_flash_attention_forward": ("dropout", 5),
    "memory_efficient_attention": ("p", 4),
    "attention_interface": ("dropout", -1),
}

RULE = Rule(
    "TS207",
    "ungated-attention-dropout",
    severity=MEDIUM,
    highest=MEDIUM,
    confidence=LIKELY,
    say=Text(
        en="`{call}` gets {keyword}={rate} in evaluation too",
        zh="`{call}` 在评估时也会收到 {keyword}={rate}",
    ),
    why=Text(
        en="{call} applies dropout whenever the probability is above 0; it does not see "
        "model.eval(), so predictions are random and worse than they should be",
        zh="只要概率大于 0，{call} 就会做 dropout；它看不到 model.eval()，预测因此带随机性且效果变差",
    ),
    suggest=Text(
        en="pass `{keyword}={rate} if self.training else 0.0`",
        zh="改为 `{keyword}={rate} if self.training else 0.0`",
    ),
    title=Text(
        en="Attention applies dropout outside training too",
        zh="注意力函数在非训练模式下仍会做 dropout",
    ),
    page=Text(
        en="`F.scaled_dot_product_attention`, the `flash_attn` functions, transformers' "
        "`_flash_attention_forward` and attention interfaces, and xformers' "
        "`memory_efficient_attention` take a probability, not a module. Fires inside methods of an "
        "nn.Module when that probability is an attribute (`self.dropout`, `self.config.p`) that no "
        "`training` test guards.\n\n"
        "- Quiet for a parameter of the function (the caller may have decided), for a literal 0, "
        "for attributes that are only ever 0, under `if self.training`, and when the value was "
        "chosen by `training`.\n"
        "- transformers 4.45 had this in `M2M100FlashAttention2` (issue 33844).",
        zh="`F.scaled_dot_product_attention`、`flash_attn` 系列、transformers 的 `_flash_attention_forward` 与"
        "注意力接口、xformers 的 `memory_efficient_attention` 接收的是概率而不是模块。在 nn.Module 的方法里，"
        "若该概率是属性（`self.dropout`、`self.config.p`）且没有 `training` 判断保护，则报告。\n\n"
        "- 不报告：来自函数形参（调用方可能已判断）、字面量 0、只被赋值为 0 的属性、位于 `if self.training` 之下、"
        "取值由 `training` 决定。\n"
        "- transformers 4.45 的 `M2M100FlashAttention2` 曾有此问题（issue 33844）。",
    ),
    bad="""\
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.dropout = p

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
""",
    fixed="""\
@@ -10 +10 @@
-        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
+        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
""",
    good="""\
@@ -10 +10,2 @@
-        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout)
+        p = self.dropout if self.training else 0.0
+        return F.scaled_dot_product_attention(q, k, v, dropout_p=p)
""",
)


@RULE.on_call(*_CALLS)
def check(call: ast.Call, scene: Scene) -> Iterator[Hit]:
    name = scene.last_name(call.func)
    full = scene.qualified(call.func)
    name = full.rpartition(".")[2] if full else name
    if name not in _CALLS:
        return
    keyword, position = _CALLS[name]
    given = scene.keyword(call, keyword)
    if given is None and position >= 0 and not scene.method(call):
        given = scene.argument(call, position)
    rate = settled(scene, given) if isinstance(given, ast.Name) else given
    if given is None or not isinstance(rate, ast.Attribute):
        return
    owner, function = scene.class_of(call), scene.function(call)
    if owner is None or function is None or not scene.is_module_class(owner):
        return
    if not scene.dotted(rate).startswith("self."):
        return
    if gated_by_mode(scene, call, given) or mentions_mode(scene, rate):
        return
    if isinstance(rate.value, ast.Name) and _only_zero(scene, owner, rate.attr):
        return
    if is_never_set(scene, rate):
        return
    text = scene.text(given)
    yield RULE.at(
        given,
        call=name,
        keyword=keyword,
        rate=text,
        fix=safe(scene.replace(given, f"{text} if self.training else 0.0")),
    )


def _only_zero(scene: Scene, owner: ast.ClassDef, name: str) -> bool:
    values = scene.attribute_values(owner, name)
    return bool(values) and all(scene.literal(value) in (0, None) for value in values)
