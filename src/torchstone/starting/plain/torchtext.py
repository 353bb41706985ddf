"""The interface of torchtext before version 0.12: fields, vocabularies, datasets and iterators.

Datasets that it would fetch have made sentences; vectors of words are zero until they are trained.
"""

from __future__ import annotations

import csv
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

__version__ = "0.6.0"
_WORDS = "the a of to and in film story man woman house river city sees makes takes good bad great dull new old".split()
_SAMPLES = 256


class Vocab:
    """Words by number, the most frequent first after the special ones."""

    def __init__(self, counter: Any, max_size: int | None = None, min_freq: int = 1, specials: Sequence[str] = ("<unk>", "<pad>"),
                 vectors: Any = None, **_: Any) -> None:  # fmt: skip
        self.freqs = counter
        words = [
            word
            for word, count in counter.most_common(max_size)
            if count >= min_freq and word not in specials
        ]
        self.itos = [*specials, *words]
        self.stoi: Any = defaultdict(int, {word: place for place, word in enumerate(self.itos)})
        self.unk_index = 0
        self.vectors = (
            torch.zeros(len(self.itos), _dimension(vectors)) if vectors is not None else None
        )

    def __len__(self) -> int:
        return len(self.itos)

    def __getitem__(self, word: str) -> int:
        return int(self.stoi.get(word, 0))

    def set_vectors(self, stoi: Any, vectors: Any, dim: int, **_: Any) -> None:
        self.vectors = torch.zeros(len(self.itos), dim)

    def load_vectors(self, vectors: Any, **_: Any) -> None:
        self.vectors = torch.zeros(len(self.itos), _dimension(vectors))

    def get_stoi(self) -> Any:
        return self.stoi

    def get_itos(self) -> list[str]:
        return self.itos


def _dimension(vectors: Any) -> int:
    """Of `glove.6B.100d`, of an object with `dim`, or the usual one."""
    text = str(vectors)
    found = [
        part[:-1]
        for part in text.replace("'", ".").split(".")
        if part.endswith("d") and part[:-1].isdigit()
    ]
    return int(getattr(vectors, "dim", 0) or (found[0] if found else 300))


class Vectors:
    """Vectors of words, all zero."""

    def __init__(self, name: Any = "", dim: int = 300, **_: Any) -> None:
        self.name, self.dim = name, int(dim)
        self.stoi: dict[str, int] = {}
        self.itos: list[str] = []
        self.vectors = torch.zeros(0, self.dim)

    def __getitem__(self, word: str) -> Any:
        return torch.zeros(self.dim)

    def get_vecs_by_tokens(self, words: Any, **_: Any) -> Any:
        return (
            torch.zeros(len(words), self.dim) if isinstance(words, list) else torch.zeros(self.dim)
        )


GloVe = FastText = CharNGram = Vectors


class Field:
    """How one column becomes a tensor."""

    vocab_class = Vocab

    def __init__(self, sequential: bool = True, use_vocab: bool = True, init_token: Any = None, eos_token: Any = None,
                 fix_length: int | None = None, dtype: Any = torch.long, preprocessing: Any = None, postprocessing: Any = None,
                 lower: bool = False, tokenize: Any = None, tokenizer_language: str = "en", include_lengths: bool = False,
                 batch_first: bool = False, pad_token: Any = "<pad>", unk_token: Any = "<unk>", pad_first: bool = False,
                 truncate_first: bool = False, stop_words: Any = None, is_target: bool = False, **_: Any) -> None:  # fmt: skip
        self.sequential, self.use_vocab, self.fix_length, self.dtype = (
            sequential,
            use_vocab,
            fix_length,
            dtype,
        )
        self.init_token, self.eos_token, self.pad_token, self.unk_token = (
            init_token,
            eos_token,
            pad_token,
            unk_token,
        )
        self.preprocessing, self.postprocessing, self.lower = preprocessing, postprocessing, lower
        self.tokenize: Callable[[str], list[str]] = tokenize if callable(tokenize) else str.split
        self.include_lengths, self.batch_first = include_lengths, batch_first
        self.stop_words = set(stop_words or ())
        self.vocab: Any = None

    def preprocess(self, value: Any) -> Any:
        if self.sequential and isinstance(value, str):
            value = [str(word) for word in self.tokenize(value)]
        if self.lower:
            value = (
                [word.lower() for word in value] if isinstance(value, list) else str(value).lower()
            )
        if self.stop_words and isinstance(value, list):
            value = [word for word in value if word not in self.stop_words]
        return self.preprocessing(value) if self.preprocessing is not None else value

    def build_vocab(self, *args: Any, **kwargs: Any) -> None:
        counter: Counter[Any] = Counter()
        for source in args:
            for value in self._values(source):
                counter.update(value if self.sequential else [value])
        special = (
            self.unk_token,
            self.pad_token,
            self.init_token,
            self.eos_token,
            *kwargs.pop("specials", ()),
        )
        kept = tuple(word for word in dict.fromkeys(special) if word is not None)
        self.vocab = self.vocab_class(
            counter, specials=kept if self.sequential or self.unk_token else (), **kwargs
        )

    def _values(self, source: Any) -> Iterator[Any]:
        if isinstance(source, Dataset):
            for name, field in source.fields.items():
                if field is self:
                    yield from (getattr(item, name) for item in source.examples)
        else:
            yield from source

    def process(self, batch: Any, device: Any = None) -> Any:
        return self.numericalize(self.pad(batch), device)

    def pad(self, batch: Any) -> Any:
        rows = list(batch)
        if not self.sequential:
            return rows
        extra = (self.init_token is not None) + (self.eos_token is not None)
        longest = self.fix_length or max(len(row) for row in rows) + extra
        made, lengths = [], []
        for row in rows:
            begin = [] if self.init_token is None else [self.init_token]
            end = [] if self.eos_token is None else [self.eos_token]
            words = [*begin, *row[: longest - extra], *end]
            lengths.append(len(words))
            made.append([*words, *[self.pad_token] * (longest - len(words))])
        return (made, lengths) if self.include_lengths else made

    def numericalize(self, given: Any, device: Any = None) -> Any:
        rows, lengths = (
            given if self.include_lengths and isinstance(given, tuple) else (given, None)
        )
        if self.use_vocab:
            stoi = self.vocab.stoi
            rows = (
                [[stoi[word] for word in row] for row in rows]
                if self.sequential
                else [stoi[word] for word in rows]
            )
        else:
            convert = float if self.dtype.is_floating_point else int
            rows = [convert(row) for row in rows] if not self.sequential else rows
        if self.postprocessing is not None:
            rows = self.postprocessing(rows, self.vocab)
        made = torch.tensor(rows, dtype=self.dtype, device=_device(device))
        made = made if self.batch_first or not self.sequential else made.t().contiguous()
        return (
            (made, torch.tensor(lengths, device=_device(device))) if lengths is not None else made
        )


RawField = NestedField = ReversibleField = Field


def _device(device: Any) -> Any:
    """-1 was the CPU."""
    return None if device is None or device == -1 else device


class LabelField(Field):
    """A class."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"sequential": False, "unk_token": None, "is_target": True, **kwargs})


class Example:
    """One sample: an attribute for each field."""

    @classmethod
    def fromlist(cls, values: Sequence[Any], fields: Sequence[Any]) -> Example:
        made = cls()
        for (name, field), value in zip(fields, values, strict=False):
            names, kinds = (name, field) if isinstance(name, tuple) else ((name,), (field,))
            for one, kind in zip(names, kinds, strict=False):
                if kind is not None:
                    setattr(made, one, kind.preprocess(value))
        return made

    @classmethod
    def fromdict(cls, data: dict[str, Any], fields: dict[str, Any]) -> Example:
        made = cls()
        for key, pairs in fields.items():
            for name, field in pairs if isinstance(pairs, list) else [pairs]:
                if field is not None:
                    setattr(made, name, field.preprocess(data[key]))
        return made

    @classmethod
    def fromJSON(cls, data: str, fields: dict[str, Any]) -> Example:  # noqa: N802  as of the package
        return cls.fromdict(json.loads(data), fields)


class Dataset:
    """Samples with their fields."""

    sort_key: Any = None

    def __init__(
        self, examples: Sequence[Example], fields: Any, filter_pred: Any = None, **_: Any
    ) -> None:
        pairs = fields.values() if isinstance(fields, dict) else fields
        flat: dict[str, Any] = {}
        for pair in pairs:
            for name, field in pair if isinstance(pair, list) else [pair]:
                if isinstance(name, tuple):
                    flat.update(zip(name, field, strict=False))
                else:
                    flat[name] = field
        self.fields = {name: field for name, field in flat.items() if field is not None}
        self.examples = [item for item in examples if filter_pred is None or filter_pred(item)]

    def __len__(self) -> int:
        return len(self.examples)

    def __getitem__(self, index: int) -> Example:
        return self.examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self.examples)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("fields", {}):
            return (getattr(item, name) for item in self.examples)
        raise AttributeError(name)

    def split(self, split_ratio: Any = 0.7, **_: Any) -> tuple[Dataset, ...]:
        shares = (
            split_ratio
            if isinstance(split_ratio, (list, tuple))
            else (split_ratio, 1 - split_ratio)
        )
        pairs = list(self.fields.items())
        parts, at = [], 0
        for share in shares:
            count = max(1, int(share * len(self.examples)))
            parts.append(Dataset(self.examples[at : at + count] or self.examples[-1:], pairs))
            at += count
        return tuple(parts)

    @classmethod
    def splits(
        cls,
        *fields: Any,
        **kwargs: Any,
    ) -> Any:
        """Of a dataset that would be fetched: as many parts as it has, with made sentences."""
        flat = [item for item in (*fields, *kwargs.get("fields", ())) if isinstance(item, Field)]
        flat += [item for key, item in kwargs.items() if isinstance(item, Field)]
        names = ("src", "trg") if cls in (Multi30k, IWSLT, WMT14) else ("text", "label")
        pairs = list(zip(names, flat, strict=False))
        parts = 2 if cls in (IMDB, TREC) else 3
        return tuple(Dataset(_made_examples(pairs, part), pairs) for part in range(parts))


def _made_examples(pairs: Sequence[tuple[str, Field]], seed: int) -> list[Example]:
    draw = random.Random(seed)

    def value(name: str) -> str:
        return (
            draw.choice(("pos", "neg"))
            if name == "label"
            else " ".join(draw.choices(_WORDS, k=draw.randint(5, 20)))
        )

    return [Example.fromlist([value(name) for name, _ in pairs], pairs) for _ in range(_SAMPLES)]


class TranslationDataset(Dataset):
    """Pairs of lines of two files."""

    sort_key = staticmethod(lambda item: len(item.src))

    def __init__(self, path: str = "", exts: Any = (), fields: Any = (), **kwargs: Any) -> None:
        pairs = (
            list(zip(("src", "trg"), fields, strict=False))
            if not isinstance(fields[0], tuple)
            else list(fields)
        )
        rows: list[list[str]] = []
        for extension in exts:
            with open(path + extension, encoding="utf-8") as file:
                rows.append(file.read().splitlines())
        examples = [Example.fromlist(item, pairs) for item in zip(*rows, strict=False)]
        super().__init__(examples, pairs, **kwargs)

    @classmethod
    def splits(cls, *args: Any, **kwargs: Any) -> Any:
        exts, fields = (
            kwargs.pop("exts", args[0] if args else ()),
            kwargs.pop("fields", args[1] if args[1:] else ()),
        )
        base = kwargs.pop("path", None) or kwargs.pop("root", "")
        names = [kwargs.pop(part, None) for part in ("train", "validation", "test")]
        if cls is not TranslationDataset or not any(names):
            pairs = list(zip(("src", "trg"), fields, strict=False))
            return tuple(Dataset(_made_examples(pairs, part), pairs) for part in range(3))
        join = f"{base}/" if base else ""
        return tuple(cls(join + name, exts, fields) for name in names if name)


class Multi30k(TranslationDataset):
    """Pairs of sentences."""


class IWSLT(Multi30k):
    """Pairs of sentences."""


class WMT14(Multi30k):
    """Pairs of sentences."""


class IMDB(Dataset):
    """Sentences with one of two classes."""


class TREC(Dataset):
    """Questions with a class."""


class SST(Dataset):
    """Sentences with a class."""


class SNLI(Dataset):
    """Sentences with a class."""


class AG_NEWS(Dataset):  # noqa: N801  as of the package
    """Sentences with a class."""


class LanguageModelingDataset(Dataset):
    """One long text."""

    def __init__(
        self, path: str, text_field: Field, newline_eos: bool = True, **kwargs: Any
    ) -> None:
        with open(path, encoding="utf-8") as file:
            words = [
                word for line in file for word in [*text_field.preprocess(line.strip()), "<eos>"]
            ]
        made = Example()
        made.text = words  # type: ignore[attr-defined]
        super().__init__([made], [("text", text_field)], **kwargs)


class WikiText2(Dataset):
    """One long text."""


WikiText103 = PennTreebank = WikiText2


def _example(header: list[str], row: list[str], fields: Any) -> Example:
    if isinstance(fields, dict):
        return Example.fromdict(dict(zip(header, row, strict=False)), fields)
    return Example.fromlist(row, fields)


class TabularDataset(Dataset):
    """Columns of a file."""

    def __init__(
        self, path: str, format: str, fields: Any, skip_header: bool = False, **kwargs: Any
    ) -> None:
        with open(path, encoding="utf-8", newline="") as file:
            if format.lower() == "json":
                examples = [Example.fromJSON(line, fields) for line in file]
            else:
                reader = csv.reader(file, delimiter="\t" if format.lower() == "tsv" else ",")
                header = next(reader) if skip_header or isinstance(fields, dict) else []
                examples = [_example(header, row, fields) for row in reader]
        kwargs.pop("csv_reader_params", None)
        super().__init__(examples, fields, **kwargs)

    @classmethod
    def splits(cls, path: str = "", root: str = "", train: Any = None, validation: Any = None, test: Any = None, **kwargs: Any) -> Any:  # fmt: skip
        join = f"{(path or root).rstrip('/')}/" if path or root else ""
        return tuple(cls(path=join + name, **kwargs) for name in (train, validation, test) if name)


class Batch:
    """Samples side by side: a tensor for each field."""

    def __init__(self, data: Sequence[Example], dataset: Dataset, device: Any = None) -> None:
        self.batch_size, self.dataset, self.fields = len(data), dataset, list(dataset.fields)
        for name, field in dataset.fields.items():
            setattr(self, name, field.process([getattr(item, name) for item in data], device))

    def __len__(self) -> int:
        return self.batch_size

    def __iter__(self) -> Iterator[Any]:
        return iter([getattr(self, name) for name in self.fields])


class BatchIterator:
    """Batches of a dataset."""

    def __init__(self, dataset: Dataset, batch_size: int, sort_key: Any = None, device: Any = None, train: bool = True,
                 repeat: bool = False, shuffle: Any = None, sort: Any = None, sort_within_batch: Any = None, **_: Any) -> None:  # fmt: skip
        self.dataset, self.batch_size, self.device, self.train = (
            dataset,
            int(batch_size),
            device,
            train,
        )
        self.sort_key, self.sort_within_batch = (
            sort_key or dataset.sort_key,
            bool(sort_within_batch),
        )
        self.shuffle = train if shuffle is None else shuffle
        self.epoch = self.iterations = 0
        self.repeat = repeat

    @classmethod
    def splits(
        cls,
        datasets: Sequence[Dataset],
        batch_sizes: Any = None,
        batch_size: Any = None,
        **kwargs: Any,
    ) -> Any:
        sizes = batch_sizes or [batch_size] * len(datasets)
        return tuple(
            cls(item, size, train=place == 0, **kwargs)
            for place, (item, size) in enumerate(zip(datasets, sizes, strict=False))
        )

    def __len__(self) -> int:
        return -(-len(self.dataset) // self.batch_size)

    def init_epoch(self) -> None:
        pass

    def __iter__(self) -> Iterator[Batch]:
        order = list(self.dataset.examples)
        if self.shuffle:
            random.Random(self.epoch).shuffle(order)
        self.epoch += 1
        for at in range(0, len(order), self.batch_size):
            part = order[at : at + self.batch_size]
            if self.sort_key is not None and self.sort_within_batch:
                part = sorted(part, key=self.sort_key, reverse=True)
            yield Batch(part, self.dataset, self.device)


class BPTTIterator(BatchIterator):
    """Windows of one long text."""

    def __init__(self, dataset: Dataset, batch_size: int, bptt_len: int, **kwargs: Any) -> None:
        super().__init__(dataset, batch_size, **kwargs)
        self.bptt_len = bptt_len


def _module(**names: Any) -> Any:
    return type("module", (), names)


vocab = _module(Vocab=Vocab, Vectors=Vectors, GloVe=GloVe, FastText=FastText, CharNGram=CharNGram)
data = _module(
    Field=Field, RawField=Field, NestedField=Field, ReversibleField=Field, LabelField=LabelField, Example=Example,
    Dataset=Dataset, TabularDataset=TabularDataset, Batch=Batch, Iterator=BatchIterator, BucketIterator=BatchIterator,
    BPTTIterator=BPTTIterator, get_tokenizer=lambda *_, **__: str.split, interleave_keys=lambda a, b: (a, b),
    utils=_module(get_tokenizer=lambda *_, **__: str.split),
    batch=_module(Batch=Batch), field=_module(Field=Field), example=_module(Example=Example), dataset=_module(Dataset=Dataset),
    iterator=_module(Iterator=BatchIterator, BucketIterator=BatchIterator), metrics=_module(bleu_score=lambda *_, **__: 0.0),
)  # fmt: skip
datasets = _module(
    TranslationDataset=TranslationDataset, Multi30k=Multi30k, IWSLT=IWSLT, WMT14=WMT14, IMDB=IMDB, TREC=TREC, SST=SST, SNLI=SNLI,
    AG_NEWS=AG_NEWS, LanguageModelingDataset=LanguageModelingDataset, WikiText2=WikiText2, WikiText103=WikiText2,
    PennTreebank=WikiText2,
)  # fmt: skip
legacy = _module(data=data, datasets=datasets, vocab=vocab)
