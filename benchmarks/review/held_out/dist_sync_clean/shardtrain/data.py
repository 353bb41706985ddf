import torch


def make_dataset(n, features, classes, seed):
    """Gaussian inputs, labels of a fixed random teacher, a second target for half of them."""
    teacher = torch.Generator().manual_seed(1234)
    w = torch.randn(features, classes, generator=teacher)
    v = torch.randn(features, generator=teacher)
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, features, generator=gen)
    aux = torch.tanh(x @ v)
    aux[torch.rand(n, generator=gen) < 0.5] = float("nan")
    return x, (x @ w).argmax(-1), aux


class ShardedBatches:
    """Shuffled mini-batches of the part of the data that belongs to one replica."""

    def __init__(self, tensors, batch_size, dp_rank, dp, seed):
        self.tensors, self.batch_size = tensors, batch_size
        self.dp_rank, self.dp, self.seed = dp_rank, dp, seed

    def indices(self, epoch):
        gen = torch.Generator().manual_seed(self.seed + epoch)
        order = torch.randperm(len(self.tensors[0]), generator=gen)
        usable = len(order) // self.dp * self.dp
        return order[self.dp_rank : usable : self.dp]

    def epoch(self, epoch):
        for part in self.indices(epoch).split(self.batch_size):
            yield tuple(t[part] for t in self.tensors)
