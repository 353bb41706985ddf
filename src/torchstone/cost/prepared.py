"""A target made ready for counting: its model in the format that was asked for, and its inputs."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.cost.fine_tuning import Changed, change_model, lora_from, packing_from
from torchstone.cost.options import CostOptions
from torchstone.observe.compat.trees import tree_leaves, tree_map_only
from torchstone.runtime.inputs import default_inputs, parse_inputs
from torchstone.runtime.sizes import parse_dtype
from torchstone.runtime.targets import Target


def check_formats_asked(options: CostOptions) -> None:
    """What cannot be asked for is refused before anything is built."""
    if options.train and options.infer:
        raise UsageError(
            "cost", "--train --infer", Text("one of the two", "二者之一"),
            Text("leave one out", "请去掉一个"),
        )  # fmt: skip
    if options.autocast:
        low_format(options.autocast)
    if options.lora:
        lora_from(options.lora)
    if options.quant:
        packing_from(options.quant)
    if options.quant and options.train and not options.lora:
        raise UsageError(
            "cost: --quant", "--train without --lora",
            Text("adapters: packed weights cannot be trained", "适配器：量化后的权重无法训练"),
            Text("add --lora r=16", "请加上 --lora r=16"),
        )  # fmt: skip
    if options.dtype and not parse_dtype(options.dtype, "cost: --dtype").is_floating_point:
        raise UsageError(
            "cost: --dtype",
            options.dtype,
            Text("a floating-point format: bf16, fp16, fp32, fp64", "浮点格式：bf16、fp16、fp32、fp64"),
            Text(
                "for whole-number weights measure the quantised model itself",
                "若权重为整数，请直接测量量化后的模型",
            ),
        )  # fmt: skip


class InputMaker:
    """The inputs for a batch size and a sequence length."""

    def __init__(self, target: Target, model: nn.Module, options: CostOptions) -> None:
        self._target, self._model, self._options = target, model, options
        self._given = parse_inputs(options.input, model) if options.input else target.inputs

    def __call__(self, batch: int, length: int | None) -> Any:
        made = self._made(batch, length)
        if length is not None and shapes_of(made) == shapes_of(self._made(batch, length + 1)):
            raise UsageError(
                "cost: --seq",
                f"{length}, and inputs of {', '.join(map(str, shapes_of(made)))}",
                Text("inputs with a sequence length: whole numbers of two dimensions",
                     "带序列长度的输入：二维整数张量"),
                Text("leave --seq out, or give the sizes with --input",
                     "请去掉 --seq，或用 --input 给出尺寸"),
            )  # fmt: skip
        return made

    def replaced_batch(self, batch: int) -> str:
        """The batch sizes of the given inputs that --batch takes the place of; nothing when it
        was not given or says the same."""
        if self._given is None or self._options.batch == "1":
            return ""
        sizes = {shape[0] for shape in shapes_of(self._given) if shape}
        return ", ".join(map(str, sorted(sizes - {batch})))

    def _made(self, batch: int, length: int | None) -> Any:
        options = self._options
        if self._given is None:
            return default_inputs(
                self._model, self._target.config, batch, length, train=options.train
            )
        if options.batch == "1" and length is None:
            return self._given  # as it was given
        return resized(self._given, batch if options.batch != "1" else None, length)


def shapes_of(inputs: Any) -> list[tuple[int, ...]]:
    """The sizes of every tensor among the inputs."""
    return [tuple(item.shape) for item in tree_leaves(inputs) if isinstance(item, torch.Tensor)]


def resized(inputs: Any, batch: int | None, length: int | None) -> Any:
    """Inputs with another batch size (first dimension) and sequence length (second dimension of
    the integers)."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        shape = list(tensor.shape)
        if batch is not None and shape:
            shape[0] = batch
        if length is not None and len(shape) == 2 and not tensor.is_floating_point():
            shape[1] = length
        return torch.empty(shape, dtype=tensor.dtype, device="meta")

    return tree_map_only(torch.Tensor, one, inputs)


def weight_format(options: CostOptions) -> str:
    """Of the weights that are not packed: fine-tuning with adapters is done in bf16."""
    return options.dtype or ("bf16" if options.lora or options.quant else "")


def prepared(target: Target, options: CostOptions) -> tuple[nn.Module, Changed]:
    """The model as it was asked for, and what was changed in it."""
    model, changed = target.model, Changed()
    if wanted := weight_format(options):
        model = model.to(parse_dtype(wanted, "cost: --dtype"))
    if options.lora or options.quant:
        lora = lora_from(options.lora) if options.lora else None
        changed = change_model(model, lora, packing_from(options.quant) if options.quant else None)
        ask = getattr(model, "enable_input_require_grads", None)
        if options.checkpoint and ask is not None:
            ask()  # else checkpointed blocks see nothing to train
    if options.checkpoint:
        enable = getattr(model, "gradient_checkpointing_enable", None)
        if enable is None or not getattr(model, "supports_gradient_checkpointing", True):
            raise UsageError(
                "cost: --checkpoint",
                type(model).__name__,
                Text("a model with gradient_checkpointing_enable()", "带有 gradient_checkpointing_enable() 的模型"),
                Text("call torch.utils.checkpoint in its forward", "请在其 forward 中调用 torch.utils.checkpoint"),
            )  # fmt: skip
        config = getattr(model, "config", None)
        if config is not None and getattr(config, "use_cache", False):
            config.use_cache = False  # transformers does so too, with a warning for every model
        enable()
    return model, changed


def low_format(name: str) -> torch.dtype:
    """A number format that autocast casts to."""
    found = parse_dtype(name, "cost: --autocast")
    if found not in (torch.float16, torch.bfloat16):
        raise UsageError(
            "cost: --autocast", name, "bf16 | fp16", Text("pass one of the two", "请传入其中之一")
        )
    return found
