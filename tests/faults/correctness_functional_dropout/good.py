import torch
import torch.nn as nn
import torch.nn.functional as F
from torch_geometric.nn import GCNConv


class GCN(nn.Module):
    def __init__(self, n_in, n_hid, n_out, p=0.5):
        super().__init__()
        self.conv1 = GCNConv(n_in, n_hid)
        self.conv2 = GCNConv(n_hid, n_out)
        self.p = p

    def forward(self, x, edge_index):
        x = F.dropout(x, p=self.p, training=self.training)
        x = F.relu(self.conv1(x, edge_index))
        x = F.dropout(x, self.p, self.training)
        return self.conv2(x, edge_index)


def train(model, data, optimizer):
    model.train()
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
    loss.backward()
    optimizer.step()
    return loss.detach()


@torch.no_grad()
def test(model, data):
    model.eval()
    pred = model(data.x, data.edge_index).argmax(-1)
    return (pred == data.y)[data.test_mask].float().mean()
