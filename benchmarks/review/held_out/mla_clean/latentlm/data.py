"""Synthetic packed documents: arithmetic progressions over the vocabulary."""

from __future__ import annotations

from typing import Iterator, NamedTuple

import torch

PAD, BOS = 0, 1
IGNORE = -100


class Batch(NamedTuple):
    ids: torch.Tensor  # (batch, time)
    labels: torch.Tensor  # (batch, time), already shifted
    docs: torch.Tensor  # (batch, time)


def make_document(gen: torch.Generator, vocab: int, length: int) -> torch.Tensor:
    start = int(torch.randint(2, vocab, (1,), generator=gen))
    step = int(torch.randint(1, 6, (1,), generator=gen))
    body = (start - 2 + step * torch.arange(length - 1)) % (vocab - 2) + 2
    return torch.cat([torch.tensor([BOS]), body])


def pack_sequence(gen: torch.Generator, vocab: int, seq_len: int):
    """Fill one row with whole documents and pad what is left at the end."""
    ids = torch.full((seq_len + 1,), PAD)
    docs = torch.zeros(seq_len + 1, dtype=torch.long)
    at, number = 0, 0
    while True:
        length = int(torch.randint(8, 24, (1,), generator=gen))
        if at + length > seq_len + 1:
            docs[at:] = number
            return ids, docs
        ids[at : at + length] = make_document(gen, vocab, length)
        docs[at : at + length] = number
        at, number = at + length, number + 1


def shift_labels(ids: torch.Tensor, docs: torch.Tensor) -> torch.Tensor:
    """Targets of each place: the next token, if it belongs to the same document."""
    labels = ids[:, 1:].clone()
    labels[docs[:, 1:] != docs[:, :-1]] = IGNORE
    labels[labels == PAD] = IGNORE
    return labels


def batches(vocab: int, batch_size: int, seq_len: int, seed: int) -> Iterator[Batch]:
    """Endless stream; all ranks draw the same rows and slice them later."""
    gen = torch.Generator().manual_seed(seed)
    while True:
        rows = [pack_sequence(gen, vocab, seq_len) for _ in range(batch_size)]
        ids = torch.stack([r[0] for r in rows])
        docs = torch.stack([r[1] for r in rows])
        yield Batch(ids[:, :-1], shift_labels(ids, docs), docs[:, :-1])
