"""Every sentence that the analyzer may put into a report, in both languages."""

from __future__ import annotations

from torchstone.core.text import Message, Text

_TEXTS = {
    "convention": Text(
        "FLOPs are 2 x multiply-adds of matrix products, attention (full, not causal-halved) and "
        "convolutions; activations are the output elements of the same operators",
        "FLOPs 为矩阵乘、注意力（完整计算，不因因果掩码减半）和卷积的乘加次数 × 2；"
        "activations 为这些算子的输出元素个数",
    ),
    "tiers": Text(
        "each stage's flops is its isolated figure, else the extracted one, else the analytical one",
        "每个阶段的 flops 优先取 isolated，其次 extracted，最后 analytical",
    ),
    "total": Text(
        "the total is one pass over the page: sam + clip + projector + prefill of its {tokens} "
        "tokens with lm_head on all of them; decode is per generated token and not part of it",
        "total 为整页的一次前向：sam + clip + projector + 对其 {tokens} 个 token 的预填充"
        "（lm_head 作用于全部 token）；decode 按每个生成的 token 计，不含在内",
    ),
    "view": Text(
        "the page of {width} x {height} pixels: a global view of {view}, {crops} crops of {crop} "
        "({columns} across, {rows} down), {image} image tokens in a prompt of {tokens}",
        "{width} x {height} 像素的页面：全局视图 {view}，{crops} 个 {crop} 的裁剪块"
        "（横 {columns}，纵 {rows}），{tokens} 个 token 的提示词中有 {image} 个图像 token",
    ),
    "assumed-text": Text(
        "no tokenizer: the prompt's text is taken as one token for four characters",
        "没有分词器：提示词文本按每四个字符一个 token 估计",
    ),
    "isolated": Text("isolated: counted on {calls}", "isolated：在 {calls} 上计数"),
    "extracted": Text(
        "extracted: {modules} of the whole model's pass over {tokens} tokens",
        "extracted：取自整个模型对 {tokens} 个 token 的前向中的 {modules}",
    ),
    "extracted-decode": Text(
        "extracted: one step of the whole model after the {tokens} tokens of the page",
        "extracted：整个模型在该页 {tokens} 个 token 之后的一步",
    ),
    "head": Text(
        "lm_head runs over all tokens of a prefill: its FLOPs are counted here, its parameters "
        "under decode",
        "预填充时 lm_head 作用于全部 token：其 FLOPs 计入此处，参数计入 decode",
    ),
    "decode": Text(
        "one token with a key-value cache: it attends to {tokens} tokens, itself among them",
        "带键值缓存的一个 token：它关注 {tokens} 个 token（含自身）",
    ),
    "query-encoder": Text(
        "DeepSeek-OCR-2 has a decoder with learned queries in the place of CLIP",
        "DeepSeek-OCR-2 以带可学习查询的解码器取代 CLIP",
    ),
    "idle-patches": Text(
        "the patch convolution is part of the parameters and never runs: SAM's features are used",
        "图块卷积计入参数，但从不运行：使用的是 SAM 的特征",
    ),
    "lengths": Text(
        "{first} {a} and {second} {b} FLOPs differ because they are for {one} and {two} tokens",
        "{first} {a} 与 {second} {b} FLOPs 不同，因为分别对应 {one} 和 {two} 个 token",
    ),
    "disagree": Text(
        "{first} {a} and {second} {b} FLOPs differ: the model's code does other work than the "
        "published architecture",
        "{first} {a} 与 {second} {b} FLOPs 不同：模型代码的计算与已发布的结构不一致",
    ),
    "failed": Text(
        "{tier} failed in {module} at {operator}: {error}",
        "{tier} 失败，位于 {module} 的 {operator}：{error}",
    ),
    "missing": Text("{path} is not part of this model", "该模型中没有 {path}"),
    "fallback": Text("counting failed: the closed form is taken", "计数失败：采用解析公式"),
    "nothing": Text(
        "no figure: counting failed and the closed form is switched off",
        "没有数值：计数失败，且解析公式已关闭",
    ),
    "assumption": Text("assumed: {text}", "假设：{text}"),
    "uncounted": Text("operators without a counter: {operators}", "没有计数器的算子：{operators}"),
}


def note(id: str, **args: object) -> Message:
    """One sentence with what the occasion fills in."""
    return Message(id, _TEXTS[id], {name: str(value) for name, value in args.items()})
