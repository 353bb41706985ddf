# problem: modules/problems/mahalanobis.py
# implementation: torch
# mechanism: squares of one triangular solve

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, covariance):
        factor = torch.linalg.cholesky(covariance)
        return torch.linalg.solve_triangular(factor, x.T, upper=False).square().sum(0)
