import torch


def ppo_update(policy, value, opt, rollouts, clip=0.2, epochs=4):
    for _ in range(epochs):
        for obs, act, old_logp, adv, ret in rollouts:
            dist = policy(obs)
            logp = dist.log_prob(act)
            ratio = (logp - old_logp).exp()
            surr = torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv)
            loss = -surr.mean() + 0.5 * (value(obs).squeeze(-1) - ret).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)  # FAULT: needless-retain-graph
            opt.step()


def two_heads(shared, a, b, x, opt):
    h = shared(x)
    opt.zero_grad()
    a(h).mean().backward(retain_graph=True)
    b(h).mean().backward()
    opt.step()
