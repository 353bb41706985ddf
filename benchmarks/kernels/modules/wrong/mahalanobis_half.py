# problem: modules/problems/mahalanobis.py
# implementation: torch
# mechanism: uses the factor where its square belongs
# origin: mechanism: uses the factor where its square belongs

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, covariance):
        factor = torch.linalg.cholesky(covariance)
        return torch.linalg.solve_triangular(factor.T @ factor, x.T, upper=True).T.mul(x).sum(-1)
