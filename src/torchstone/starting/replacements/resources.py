"""What packages for language would fetch: datasets of the hub, encodings, pipelines, tables of words."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Callable
from typing import Any

_ROWS = 4096
"""Programs set a part of a few thousand aside for evaluation."""
_WORDS = (
    "the a of to and in small model runs sees makes red house river city good bad new old".split()
)
_SIZES = {
    "gpt2": 50257,
    "r50k_base": 50257,
    "p50k_base": 50281,
    "cl100k_base": 100277,
    "o200k_base": 200019,
}


def replace_resource(package: str, columns: tuple[str, ...]) -> None:
    """From now on the package makes what it would fetch."""
    _REPLACERS[package](importlib.import_module(package), columns)


def _make_datasets(library: Any, columns: tuple[str, ...]) -> None:
    def table(seed: int) -> Any:
        draw = random.Random(seed)
        names = [name for name in columns if name.isidentifier()] or ["text", "label"]
        return library.Dataset.from_dict(
            {
                name: [_value(name, draw) for _ in range(_ROWS)]
                for name in names
                if name not in _PARTS
            }
        )

    def load_dataset(*args: Any, split: Any = None, streaming: bool = False, **kwargs: Any) -> Any:
        if split is not None:
            made = table(0)
            return made.to_iterable_dataset() if streaming else made
        return library.DatasetDict({name: table(seed) for seed, name in enumerate(_PARTS)})

    library.load_dataset = library.load_from_disk = load_dataset


_PARTS = ("train", "validation", "test")


def _value(name: str, draw: random.Random) -> Any:
    if re.search(r"label|idx|class|target|(^|_)id$", name):
        return draw.randrange(2)
    if name in ("input_ids", "attention_mask", "labels", "tokens"):
        return [draw.randrange(100) for _ in range(32)]
    return " ".join(draw.choices(_WORDS, k=12))


def _make_encodings(library: Any, columns: tuple[str, ...]) -> None:
    del columns

    def get_encoding(name: str = "gpt2") -> Any:
        size = _SIZES.get(name, 50257)
        ranks = {bytes([value]): value for value in range(256)}
        return library.Encoding(
            name,
            pat_str=r"[\\s\\S]",
            mergeable_ranks=ranks,
            special_tokens={"<|endoftext|>": size - 1},
        )

    library.get_encoding = get_encoding
    library.encoding_for_model = lambda name: get_encoding()


def _make_pipelines(library: Any, columns: tuple[str, ...]) -> None:
    del columns

    def load(name: Any, **kwargs: Any) -> Any:
        return library.blank(str(name).partition("_")[0][:2] or "en")

    library.load = load


def _make_words(library: Any, columns: tuple[str, ...]) -> None:
    del columns
    library.word_tokenize = lambda text, *_, **__: text.split()
    library.sent_tokenize = lambda text, *_, **__: text.split(". ")
    library.download = lambda *_, **__: True
    library.pos_tag = lambda words, *_, **__: [(word, "NN") for word in words]
    tokens = importlib.import_module("nltk.tokenize")
    tokens.word_tokenize, tokens.sent_tokenize = library.word_tokenize, library.sent_tokenize  # type: ignore[attr-defined]


_REPLACERS: dict[str, Callable[[Any, tuple[str, ...]], None]] = {
    "datasets": _make_datasets,
    "tiktoken": _make_encodings,
    "spacy": _make_pipelines,
    "nltk": _make_words,
}
