import torch


@torch.no_grad()
def beam_search(model, bos, beam=4, steps=20):
    seqs = torch.full((1, 1), bos)
    scores = torch.zeros(1)
    for _ in range(steps):
        logp = model(seqs)[:, -1].log_softmax(-1)
        vocab = logp.size(-1)
        total = (scores[:, None] + logp).view(-1)
        scores, flat = total.topk(beam)
        origin = flat / vocab
        token = flat % vocab
        seqs = torch.cat([seqs[origin], token[:, None]], dim=1)  # FAULT: true-divided-index
    return seqs[scores.argmax()]


def halves(x):
    mid = len(x) // 2
    return x[:mid], x[mid:], x.sum() / len(x)
