import collections.abc
import torch
from torch._six import string_classes  # FAULT: removed-function-import


def collate(batch):
    elem = batch[0]
    if isinstance(elem, torch.Tensor):
        return torch.stack(batch, 0)
    if isinstance(elem, string_classes):
        return batch
    if isinstance(elem, collections.abc.Mapping):
        return {key: collate([d[key] for d in batch]) for key in elem}
    return torch.tensor(batch)


print(collate([{"a": 1}, {"a": 2}]))
