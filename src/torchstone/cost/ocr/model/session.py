"""A model to analyse, with what belongs to it: dimensions, tokenizer, device.

The model is composed from the folder's config.json. Code in the folder is never run, and weights
are only read from safetensors.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn

from torchstone.core.errors import InputError, UsageError
from torchstone.core.files import read_regular
from torchstone.core.text import Message, Text
from torchstone.cost.ocr.model import weights
from torchstone.cost.ocr.model.composed import build
from torchstone.cost.ocr.model.config_file import shape_from_config
from torchstone.cost.ocr.model.shapes import PUBLISHED, OcrShape

_CONFIG_BYTES = 4 << 20
_TOKENIZER_BYTES = 64 << 20
_DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}

_NO_WEIGHTS = Text(
    "{folder} has no weights: the model stands on the meta device, where costs can be counted "
    "and nothing can be run",
    "{folder} 中没有权重：模型位于 meta 设备，可以统计成本，但不能运行",
)
_NO_DEVICE = Text(
    "{device} is not present on this machine: the model stands on the meta device, where costs "
    "can be counted and nothing can be run",
    "本机没有 {device}：模型位于 meta 设备，可以统计成本，但不能运行",
)
_RANDOM = Text(
    "the weights are random: what the model says is meaningless, how fast it is is not",
    "权重是随机的：模型输出没有意义，但速度是真实的",
)


class Session(Protocol):
    """What the analyzer needs of a session; anything with these three attributes will do."""

    @property
    def m_model(self) -> nn.Module: ...
    @property
    def m_tokenizer(self) -> Any: ...
    @property
    def m_device(self) -> torch.device: ...


@dataclass(frozen=True)
class DeepSeekOCRSession:
    """One model, ready to be analysed and, unless it stands on the meta device, to be run."""

    m_model: nn.Module
    m_tokenizer: Any
    """None where there is none: prompts then have a known or an assumed length."""
    m_device: torch.device
    m_dtype: torch.dtype
    m_shape: OcrShape
    m_model_path: str = ""
    m_flash: bool = True
    m_notes: tuple[Message, ...] = field(default=())

    @classmethod
    def from_local(
        cls,
        model_path: str | Path,
        device: str | torch.device = "cuda:0",
        use_flash_attn: bool = True,
        *,
        random_weights: bool = False,
    ) -> DeepSeekOCRSession:
        """The model of a local folder; its config.json is enough for counting.

        Without weights, or without the device, the model stands on the meta device and a note
        says so. `random_weights` fills it instead, for timing.
        """
        folder = Path(model_path)
        config = _config(folder)
        shape = shape_from_config(config, str(folder / "config.json"))
        dtype = _dtype(config, folder)
        wanted = _device(device)
        place, notes = wanted, []
        stored = wanted.type != "meta" and weights.has_weights(folder)
        if not _present(wanted):
            place = torch.device("meta")
            notes.append(Message("no-device", _NO_DEVICE, {"device": str(wanted)}))
        elif wanted.type != "meta" and not stored:
            if random_weights:
                notes.append(Message("random-weights", _RANDOM))
            else:
                place = torch.device("meta")
                notes.append(Message("no-weights", _NO_WEIGHTS, {"folder": str(folder)}))
        model = build(shape, place, dtype, use_flash_attn)
        if stored and place.type != "meta":
            weights.load(model, folder)
        return cls(
            model,
            _tokenizer(folder),
            place,
            dtype,
            shape,
            str(folder),
            use_flash_attn,
            tuple(notes),
        )

    @classmethod
    def from_config(
        cls,
        shape: OcrShape | str = "deepseek-ocr",
        device: str | torch.device = "meta",
        use_flash_attn: bool = True,
        dtype: torch.dtype = torch.bfloat16,
        seed: int = 0,
    ) -> DeepSeekOCRSession:
        """A model from its dimensions alone: `deepseek-ocr`, `deepseek-ocr-2`, `small`, or yours.

        On a real device its weights are random.
        """
        known = _published(shape) if isinstance(shape, str) else shape
        place = _device(device)
        if not _present(place):
            raise UsageError(
                "DeepSeekOCRSession",
                str(place),
                Text("a device of this machine", "本机上的设备"),
                Text("pass device='cpu' or 'meta'", "请传入 device='cpu' 或 'meta'"),
            )
        model = build(known, place, dtype, use_flash_attn, seed)
        notes = () if place.type == "meta" else (Message("random-weights", _RANDOM),)
        return cls(model, None, place, dtype, known, "", use_flash_attn, notes)

    def twin(self) -> nn.Module:
        """The same model on the meta device: what is counted never touches the session's own."""
        if self.m_device.type == "meta":
            return self.m_model
        return build(self.m_shape, "meta", self.m_dtype, self.m_flash)


def _published(name: str) -> OcrShape:
    if name in PUBLISHED:
        return PUBLISHED[name]
    names = ", ".join(PUBLISHED)
    raise UsageError(
        "DeepSeekOCRSession",
        repr(name),
        Text(f"one of {names}", f"{names} 之一"),
        Text(
            "for a model folder use DeepSeekOCRSession.from_local",
            "模型文件夹请用 DeepSeekOCRSession.from_local",
        ),
    )


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    expected = Text(
        "a model folder with a config.json of DeepSeek-OCR",
        "含有 DeepSeek-OCR 的 config.json 的模型文件夹",
    )
    todo = Text(
        "pass the path of the downloaded model, or call DeepseekOCRStaticAnalyzer() without a "
        "session for the published configuration",
        "请传入已下载模型的路径；不带会话调用 DeepseekOCRStaticAnalyzer() 则使用已发布的配置",
    )
    try:
        config = json.loads(read_regular(path, _CONFIG_BYTES).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error), expected, todo) from None
    except (ValueError, RecursionError) as error:
        raise InputError(str(path), str(error), expected, todo) from None
    if not isinstance(config, dict):
        raise InputError(str(path), type(config).__name__, expected, todo)
    return config


def _dtype(config: dict[str, Any], folder: Path) -> torch.dtype:
    name = config.get("torch_dtype") or config.get("dtype") or "bfloat16"
    if isinstance(name, str) and name in _DTYPES:
        return _DTYPES[name]
    names = ", ".join(_DTYPES)
    raise InputError(
        str(folder / "config.json"),
        f"torch_dtype {name!r}",
        Text(f"one of {names}", f"{names} 之一"),
        Text("fix the file", "请修正该文件"),
    )


def _device(device: str | torch.device) -> torch.device:
    try:
        return torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise UsageError(
            "DeepSeekOCRSession",
            f"device {device!r}",
            Text("a torch device", "torch 设备"),
            Text("pass 'cpu', 'cuda:0' or 'meta'", "请传入 'cpu'、'cuda:0' 或 'meta'"),
        ) from error


def _present(device: torch.device) -> bool:
    if device.type in ("cpu", "meta"):
        return True
    module: Any = getattr(torch, device.type, None)
    if module is None or not getattr(module, "is_available", lambda: False)():
        return False
    index: Any = device.index
    return index is None or index < int(module.device_count())


def _tokenizer(folder: Path) -> Any:
    """The folder's tokenizer, from its data file alone."""
    path = folder / "tokenizer.json"
    if not path.exists():
        return None
    transformers: Any = importlib.import_module("transformers")
    tokenizers: Any = importlib.import_module("tokenizers")
    try:
        text = read_regular(path, _TOKENIZER_BYTES).decode("utf-8")
        return transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizers.Tokenizer.from_str(text)
        )
    except Exception as error:  # the library raises bare Exception for a broken file
        raise InputError(
            str(path),
            f"{type(error).__name__}: {error}",
            Text("a tokenizer of the tokenizers library", "tokenizers 库的分词器文件"),
            Text("fix or remove the file", "请修正或删除该文件"),
        ) from error
