import torch
import torch.nn.functional as F


class PolicyLearner:
    def __init__(self, net, lr=3e-4, use_amp=True):
        self.net = net.cuda()
        self.opt = torch.optim.Adam(net.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cuda", enabled=use_amp)

    def update(self, obs, act, ret):
        self.opt.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            logits = self.net(obs)
            logp = F.log_softmax(logits, dim=-1).gather(1, act[:, None]).squeeze(1)
            loss = -(logp * ret).mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.detach()


class CpuLearner:
    """The same without a scaler: a plain step is right here."""

    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters())

    def update(self, obs, ret):
        self.opt.zero_grad()
        F.mse_loss(self.net(obs).squeeze(-1), ret).backward()
        self.opt.step()
