import torch.nn as nn
import torch.nn.functional as F

from .moe import MoE


class Layer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n1 = nn.LayerNorm(args.dim)
        self.mix = nn.GRU(args.dim, args.dim, batch_first=True)
        self.n2 = nn.LayerNorm(args.dim)
        self.moe = MoE(args)

    def forward(self, x, mask):
        x = x + self.mix(self.n1(x))[0]
        y, aux = self.moe(self.n2(x), mask)
        return x + y, aux


class Tagger(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.emb = nn.Embedding(args.vocab, args.dim, padding_idx=0)
        self.layers = nn.ModuleList([Layer(args) for _ in range(args.layers)])
        self.norm = nn.LayerNorm(args.dim)
        self.out = nn.Linear(args.dim, args.classes)

    def forward(self, ids):
        mask = ids != 0
        x = self.emb(ids)
        aux = x.new_zeros(())
        for layer in self.layers:
            x, layer_aux = layer(x, mask)
            aux = aux + layer_aux / len(self.layers)
        return self.out(self.norm(x)), aux

    def routers(self):
        return [layer.moe.router for layer in self.layers]


def tag_loss(logits, tags, n_tags):
    total = F.cross_entropy(
        logits.flatten(0, 1).float(), tags.flatten(), ignore_index=-1, reduction="sum"
    )
    return total / n_tags
