import random
from collections import deque
import torch
import torch.nn as nn
import torch.nn.functional as F


class Agent:
    def __init__(self, n_obs, n_act, gamma=0.99):
        make = lambda: nn.Sequential(nn.Linear(n_obs, 128), nn.ReLU(), nn.Linear(128, n_act))
        self.q, self.target = make(), make()
        self.target.load_state_dict(self.q.state_dict())
        self.opt = torch.optim.AdamW(self.q.parameters(), lr=1e-4)
        self.memory = deque([], maxlen=10000)
        self.gamma = gamma

    def act(self, s, eps):
        if random.random() < eps:
            return random.randrange(2)
        with torch.no_grad():
            return self.q(s).argmax().item()

    def optimize(self, batch=128):
        s, a, r, s2, d = map(torch.stack, zip(*random.sample(self.memory, batch)))
        with torch.no_grad():
            y = r + self.gamma * (1 - d) * self.target(s2).max(1).values
        qsa = self.q(s).gather(1, a[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(qsa, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
