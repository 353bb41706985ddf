import torch


def make_batch(args, gen):
    """Tag of a token: a function of itself and its left neighbour. 0 is padding."""
    ids = torch.randint(1, args.vocab, (args.batch, args.seq), generator=gen)
    # skewed token frequencies, like text
    rare = torch.rand(ids.shape, generator=gen) < 0.5
    ids = torch.where(rare, ids, ids % 5 + 1)
    left = torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], 1)
    tags = (ids * 3 + left % 3) % args.classes
    lengths = torch.randint(args.seq // 2, args.seq + 1, (args.batch, 1), generator=gen)
    pad = torch.arange(args.seq)[None] >= lengths
    return ids.masked_fill(pad, 0), tags.masked_fill(pad, -1)


def stream(args, seed):
    gen = torch.Generator().manual_seed(seed)
    while True:
        yield make_batch(args, gen)
