import torch


def pca(x, k):
    x = x - x.mean(0, keepdim=True)
    cov = x.t() @ x / (x.size(0) - 1)
    vals, vecs = torch.symeig(cov, eigenvectors=True)  # FAULT: removed-function
    order = vals.argsort(descending=True)[:k]
    return x @ vecs[:, order], vals[order]


class Solver:
    def symeig(self, a):
        return torch.linalg.eigvalsh(a)


z, v = pca(torch.randn(100, 8), 2)
q, r = torch.linalg.qr(torch.randn(4, 4))
print(z.shape, v, q.shape, Solver().symeig(torch.eye(2)))
