import gymnasium as gym
import torch
import torch.nn as nn
from torch.distributions import Categorical

env = gym.make("CartPole-v1")
policy = nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)

for episode in range(500):
    obs, _ = env.reset()
    log_probs, rewards, done = [], [], False
    while not done:
        dist = Categorical(logits=policy(torch.as_tensor(obs, dtype=torch.float32)))
        action = dist.sample()
        obs, reward, terminated, truncated, _ = env.step(action.item())
        done = terminated or truncated
        log_probs.append(dist.log_prob(action))
        rewards.append(reward)
    returns, R = [], 0.0
    for r in reversed(rewards):
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 10 == 0:
        print(episode, sum(rewards))
