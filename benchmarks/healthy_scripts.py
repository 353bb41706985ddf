"""Healthy programs of many kinds: none of them may be accused, all of them should run to their end.

python benchmarks/healthy_scripts.py [KIND ...]
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from torchstone import dry_run

_HEAD = """
import copy, math, random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, random_split
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.Adam(net.parameters(), 1e-3)
x, y = torch.randn(24, 8), torch.randint(0, 4, (24,))
def step(loss, opt=opt):
    opt.zero_grad(); loss.backward(); opt.step()
"""

ONE_PROCESS = {
    "reinforce": """
from torch.distributions import Categorical
for _ in range(2):
    dist = Categorical(logits=net(x)); action = dist.sample()
    reward = torch.randn(24)
    step(-(dist.log_prob(action) * (reward - reward.mean())).mean() - 0.01 * dist.entropy().mean())
""",
    "ppo with a normal policy": """
from torch.distributions import Normal
actor, critic = nn.Linear(8, 2), nn.Linear(8, 1)
spread = nn.Parameter(torch.zeros(2))
opt = torch.optim.Adam([*actor.parameters(), *critic.parameters(), spread], 1e-3)
with torch.no_grad():
    old = Normal(actor(x), spread.exp()); action = old.sample(); before = old.log_prob(action).sum(-1)
    values = critic(x).squeeze(-1)
returns = torch.randn(24)
advantage = returns - values
for _ in range(2):
    now = Normal(actor(x), spread.exp())
    ratio = (now.log_prob(action).sum(-1) - before).exp()
    clipped = ratio.clamp(0.8, 1.2)
    loss = -torch.min(ratio * advantage, clipped * advantage).mean() + F.mse_loss(critic(x).squeeze(-1), returns)
    step(loss, opt)
""",
    "soft actor critic": """
from torch.distributions import Normal, TransformedDistribution, TanhTransform
actor, critic = nn.Linear(8, 4), nn.Linear(10, 1)
target = copy.deepcopy(critic).requires_grad_(False)
a_opt, c_opt = (torch.optim.Adam(m.parameters(), 1e-3) for m in (actor, critic))
for _ in range(2):
    mean, log_std = actor(x).chunk(2, -1)
    policy = TransformedDistribution(Normal(mean, log_std.clamp(-5, 2).exp()), [TanhTransform(cache_size=1)])
    action = policy.rsample(); logp = policy.log_prob(action).sum(-1, keepdim=True)
    with torch.no_grad():
        goal = torch.randn(24, 1) + 0.99 * (target(torch.cat([x, action], 1)) - 0.2 * logp)
    step(F.mse_loss(critic(torch.cat([x, action.detach()], 1)), goal), c_opt)
    step((0.2 * logp - critic(torch.cat([x, action], 1))).mean(), a_opt)
    with torch.no_grad():
        for p, q in zip(target.parameters(), critic.parameters()):
            p.lerp_(q, 0.005)
""",
    "deep q learning": """
from collections import deque
target = copy.deepcopy(net)
memory = deque(maxlen=100)
for _ in range(40):
    memory.append((torch.randn(8), random.randrange(4), random.random(), torch.randn(8), random.random() < 0.1))
for _ in range(2):
    s, a, r, n, d = zip(*random.sample(memory, 16))
    s, n = torch.stack(s), torch.stack(n)
    a, r, d = torch.tensor(a), torch.tensor(r), torch.tensor(d, dtype=torch.float)
    q = net(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        goal = r + 0.99 * (1 - d) * target(n).max(1).values
    step(F.smooth_l1_loss(q, goal))
target.load_state_dict(net.state_dict())
""",
    "truncated backpropagation": """
rnn, head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 4)
opt = torch.optim.SGD([*rnn.parameters(), *head.parameters()], 0.1)
hidden = None
for part in torch.randn(3, 4, 5, 8):
    out, hidden = rnn(part, hidden); hidden = hidden.detach()
    step(F.cross_entropy(head(out).flatten(0, 1), torch.randint(0, 4, (20,))), opt)
""",
    "straight-through estimator": """
codes = nn.Embedding(10, 8); enc, dec = nn.Linear(8, 8), nn.Linear(8, 8)
opt = torch.optim.Adam([*codes.parameters(), *enc.parameters(), *dec.parameters()])
for _ in range(2):
    z = enc(x); near = torch.cdist(z, codes.weight).argmin(1); q = codes(near)
    loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
    q = z + (q - z).detach()
    step(loss + F.mse_loss(dec(q), x), opt)
""",
    "two views and a slow teacher": """
online, predictor = nn.Linear(8, 8), nn.Linear(8, 8)
teacher = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], 0.1)
for _ in range(2):
    a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad(): goal = teacher(b)
    step(2 - 2 * F.cosine_similarity(predictor(online(a)), goal, dim=-1).mean(), opt)
    for p, q in zip(teacher.parameters(), online.parameters()): p.data.mul_(0.99).add_(q.data, alpha=0.01)
""",
    "contrastive pairs": """
for _ in range(2):
    a, b = F.normalize(net(x), dim=1), F.normalize(net(x + 0.1), dim=1)
    both = torch.cat([a, b]); scores = both @ both.t() / 0.5
    scores = scores.masked_fill(torch.eye(48, dtype=torch.bool), -1e9)
    step(F.cross_entropy(scores, torch.cat([torch.arange(24, 48), torch.arange(24)])))
""",
    "distillation": """
teacher = copy.deepcopy(net).eval()
for _ in range(2):
    with torch.no_grad(): soft = F.softmax(teacher(x) / 2, -1)
    out = net(x)
    step(F.kl_div(F.log_softmax(out / 2, -1), soft, reduction="batchmean") * 4 + F.cross_entropy(out, y))
""",
    "soft labels and mixed samples": """
for _ in range(2):
    lam, perm = 0.3, torch.randperm(24); mixed = lam * x + (1 - lam) * x[perm]
    hot = F.one_hot(y, 4).float(); target = lam * hot + (1 - lam) * hot[perm]
    step(F.cross_entropy(net(mixed), target, label_smoothing=0.1))
    step(-(target * F.log_softmax(net(mixed), -1)).sum(-1).mean())
""",
    "focal loss": """
for _ in range(2):
    p = torch.sigmoid(net(x)); hot = F.one_hot(y, 4).float()
    ce = F.binary_cross_entropy(p, hot, reduction="none")
    step((ce * (1 - (p * hot + (1 - p) * (1 - hot))) ** 2).mean())
""",
    "classes of sequences": """
rnn, head = nn.LSTM(8, 16, batch_first=True, bidirectional=True), nn.Linear(32, 5)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for _ in range(2):
    out, _ = rnn(torch.randn(3, 20, 8)); logp = F.log_softmax(head(out), -1).transpose(0, 1)
    targets = torch.randint(1, 5, (3, 6))
    step(F.ctc_loss(logp, targets, torch.full((3,), 20), torch.full((3,), 6)), opt)
""",
    "generator and discriminator": """
gen, dis = nn.Linear(4, 8), nn.Linear(8, 1)
g_opt, d_opt = (torch.optim.Adam(m.parameters(), 1e-3) for m in (gen, dis))
for _ in range(2):
    fake = gen(torch.randn(24, 4)); real, none = torch.ones(24, 1), torch.zeros(24, 1)
    loss = nn.BCEWithLogitsLoss()
    step(loss(dis(x), real) + loss(dis(fake.detach()), none), d_opt)
    step(loss(dis(fake), real), g_opt)
""",
    "penalty on a gradient": """
dis = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)); opt = torch.optim.Adam(dis.parameters())
for _ in range(2):
    mid = (torch.rand(24, 1) * x).requires_grad_(); out = dis(mid)
    grad, = torch.autograd.grad(out, mid, torch.ones_like(out), create_graph=True)
    step(out.mean() + 10 * ((grad.norm(2, dim=1) - 1) ** 2).mean(), opt)
""",
    "variational autoencoder": """
enc, dec = nn.Linear(8, 8), nn.Linear(4, 8); opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for _ in range(2):
    mu, logvar = enc(x).chunk(2, -1); z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    out = torch.sigmoid(dec(z)); kl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).sum(-1).mean()
    step(F.binary_cross_entropy(out, torch.rand(24, 8)) + kl, opt)
""",
    "noise that is predicted": """
unet = nn.Conv2d(3, 3, 3, padding=1); opt = torch.optim.Adam(unet.parameters())
betas = torch.linspace(1e-4, 0.02, 50); alphas = torch.cumprod(1 - betas, 0)
for _ in range(2):
    images, noise, t = torch.randn(8, 3, 8, 8), torch.randn(8, 3, 8, 8), torch.randint(0, 50, (8,))
    a = alphas[t].view(-1, 1, 1, 1); noisy = a.sqrt() * images + (1 - a).sqrt() * noise
    step(F.mse_loss(unet(noisy), noise), opt)
""",
    "experts behind a router": """
router, experts = nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 8) for _ in range(4))
opt = torch.optim.Adam([*router.parameters(), *experts.parameters()])
for _ in range(2):
    weight, chosen = torch.topk(F.softmax(router(x), -1), 2); weight = weight / weight.sum(-1, keepdim=True)
    out = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        rows, slot = torch.where(chosen == number)
        out.index_add_(0, rows, expert(x[rows]) * weight[rows, slot, None])
    step(out.pow(2).mean(), opt)
""",
    "learning to adapt": """
from torch.func import functional_call
for _ in range(2):
    fast = dict(net.named_parameters())
    loss = F.cross_entropy(functional_call(net, fast, x), y)
    grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
    fast = {k: v - 0.1 * g for (k, v), g in zip(fast.items(), grads)}
    step(F.cross_entropy(functional_call(net, fast, x), y))
""",
    "recomputed blocks": """
from torch.utils.checkpoint import checkpoint
first, last = nn.Linear(8, 8), nn.Linear(8, 4); opt = torch.optim.Adam([*first.parameters(), *last.parameters()])
for _ in range(2):
    hidden = checkpoint(lambda v: F.gelu(first(v)), x, use_reentrant=False)
    step(F.cross_entropy(last(hidden), y), opt)
""",
    "mixed precision with a scaler": """
net.cuda(); scaler = torch.amp.GradScaler("cuda")
for _ in range(3):
    opt.zero_grad()
    with torch.autocast("cuda", torch.float16): loss = F.cross_entropy(net(x.cuda()), y.cuda())
    scaler.scale(loss).backward(); scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0); scaler.step(opt); scaler.update()
""",
    "a closure": """
opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
def closure():
    opt.zero_grad(); loss = F.cross_entropy(net(x), y); loss.backward(); return loss
opt.step(closure)
""",
    "several heads, one in the loss": """
body, one, two = nn.Linear(8, 16), nn.Linear(16, 4), nn.Linear(16, 2)
opt = torch.optim.Adam([*body.parameters(), *one.parameters(), *two.parameters()])
for _ in range(2):
    hidden = body(x).relu(); a, b = one(hidden), two(hidden.detach())
    step(F.cross_entropy(a, y), opt)
""",
    "a frozen body": """
body, head = nn.Linear(8, 16), nn.Linear(16, 4); body.requires_grad_(False)
opt = torch.optim.Adam(head.parameters())
for _ in range(2):
    with torch.no_grad(): hidden = body(x).relu()
    step(F.cross_entropy(head(hidden), y), opt)
""",
    "folds of a cross-validation": """
whole = TensorDataset(x, y)
for fold in range(3):
    test = set(range(fold * 8, fold * 8 + 8)); train = [i for i in range(24) if i not in test]
    net = nn.Linear(8, 4); opt = torch.optim.SGD(net.parameters(), 0.1)
    for a, b in DataLoader(Subset(whole, train), 8):
        step(F.cross_entropy(net(a), b), opt); break
    net.eval()
    with torch.no_grad():
        for a, b in DataLoader(Subset(whole, sorted(test)), 8): (net(a).argmax(1) == b).float().mean().item()
    net.train()
""",
    "split at random": """
train, test = random_split(TensorDataset(x, y), [18, 6])
for a, b in DataLoader(train, 6, shuffle=True): step(F.cross_entropy(net(a), b))
right = 0
with torch.no_grad():
    for a, b in DataLoader(test, 6): right += (net(a).argmax(1) == b).sum().item()
    for a, b in DataLoader(train, 6): right += (net(a).argmax(1) == b).sum().item()
print(right / 24)
""",
    "packed sequences": """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
class Ragged(Dataset):
    def __len__(self): return 10
    def __getitem__(self, i): return torch.randn(3 + i % 5, 8), i % 4
def collate(items):
    rows, labels = zip(*items); return pad_sequence(rows, True), torch.tensor([len(r) for r in rows]), torch.tensor(labels)
rnn, head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4); opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for rows, lengths, labels in DataLoader(Ragged(), 4, collate_fn=collate):
    out, (h, _) = rnn(pack_padded_sequence(rows, lengths, True, enforce_sorted=False))
    pad_packed_sequence(out, True)
    step(F.cross_entropy(head(h[-1]), labels), opt)
""",
    "a sampler by length": """
class ByLength(torch.utils.data.Sampler):
    def __iter__(self): return iter([[0, 1], [2, 3, 4], [5]])
    def __len__(self): return 3
for a, b in DataLoader(TensorDataset(x, y), batch_sampler=ByLength()): step(F.cross_entropy(net(a), b))
""",
    "lists of boxes": """
for _ in range(2):
    boxes = [torch.rand(n, 4) for n in (2, 5, 0, 3)]
    flat = torch.cat([b for b in boxes if len(b)]); owner = torch.repeat_interleave(torch.arange(4), torch.tensor([len(b) for b in boxes]))
    scores = net(x[owner]); step(F.l1_loss(scores, flat))
""",
    "a function of its own": """
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, limit): ctx.save_for_backward(v); ctx.limit = limit; return v.clamp(-limit, limit)
    @staticmethod
    def backward(ctx, grad): v, = ctx.saved_tensors; return grad * (v.abs() <= ctx.limit), None
class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v): return v.round()
    @staticmethod
    def backward(ctx, grad): return grad
for _ in range(2): step(F.cross_entropy(Clip.apply(Round.apply(net(x)), 2.0), y))
""",
    "hooks of every kind": """
seen = {}
h1 = net[0].register_forward_hook(lambda m, i, o: seen.update(out=o.detach()))
h2 = net[0].register_forward_pre_hook(lambda m, i: (i[0] * 1.0,))
h3 = net[2].register_full_backward_hook(lambda m, gi, go: seen.update(grad=go[0]))
h4 = net[0].weight.register_hook(lambda g: g * 0.5)
def limit(p): p.grad.clamp_(-1, 1)
net[2].weight.register_post_accumulate_grad_hook(limit)
for _ in range(2): step(F.cross_entropy(net(x), y))
for h in (h1, h2, h3, h4): h.remove()
step(F.cross_entropy(net(x), y))
""",
    "weights that are averaged": """
from torch.optim.swa_utils import AveragedModel, update_bn
ema = AveragedModel(net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99))
for _ in range(2): step(F.cross_entropy(net(x), y)); ema.update_parameters(net)
with torch.no_grad(): ema(x)
torch.save(ema.state_dict(), "ema.pt"); ema.load_state_dict(torch.load("ema.pt"))
""",
    "gradients that add up": """
for i, (a, b) in enumerate(DataLoader(TensorDataset(x, y), 6)):
    (F.cross_entropy(net(a), b) / 2).backward()
    if (i + 1) % 2 == 0: opt.step(); opt.zero_grad()
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=10); step(F.cross_entropy(net(x), y)); sched.step()
""",
    "parametrized weights": """
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
net = nn.Sequential(spectral_norm(nn.Linear(8, 16)), nn.ReLU(), weight_norm(nn.Linear(16, 4)))
opt = torch.optim.Adam(net.parameters())
for _ in range(2): step(F.cross_entropy(net(x), y), opt)
""",
    "lightning": """
import pytorch_lightning as pl
class Model(pl.LightningModule):
    def __init__(self): super().__init__(); self.net = nn.Linear(8, 4)
    def training_step(self, batch, i): loss = F.cross_entropy(self.net(batch[0]), batch[1]); self.log("loss", loss); return loss
    def validation_step(self, batch, i): self.log("val", F.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self): return torch.optim.Adam(self.parameters())
data = DataLoader(TensorDataset(x, y), 6)
pl.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu").fit(Model(), data, DataLoader(TensorDataset(x.clone(), y), 6))
""",
    "lightning by hand": """
import pytorch_lightning as pl
class Model(pl.LightningModule):
    def __init__(self): super().__init__(); self.automatic_optimization = False; self.g, self.d = nn.Linear(8, 8), nn.Linear(8, 1)
    def training_step(self, batch, i):
        g, d = self.optimizers(); fake = self.g(batch[0]); d.zero_grad(); self.manual_backward(self.d(fake.detach()).mean()); d.step()
        g.zero_grad(); self.manual_backward(-self.d(fake).mean()); g.step()
    def configure_optimizers(self): return torch.optim.Adam(self.g.parameters()), torch.optim.Adam(self.d.parameters())
pl.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu").fit(Model(), DataLoader(TensorDataset(x, y), 6))
""",
    "accelerate": """
from accelerate import Accelerator
acc = Accelerator(cpu=True, gradient_accumulation_steps=2)
net, opt, data = acc.prepare(net, opt, DataLoader(TensorDataset(x, y), 6))
for a, b in data:
    with acc.accumulate(net):
        loss = F.cross_entropy(net(a), b); acc.backward(loss); acc.clip_grad_norm_(net.parameters(), 1.0); opt.step(); opt.zero_grad()
net.eval()
with torch.no_grad(): acc.gather_for_metrics(net(x).argmax(-1))
""",
    "trainer of transformers": """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
model = BertForSequenceClassification(BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=3))
class Rows(Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return {"input_ids": torch.randint(0, 50, (6,)), "labels": i % 3}
args = TrainingArguments("out", max_steps=2, per_device_train_batch_size=4, report_to=[], use_cpu=True, save_strategy="no")
Trainer(model, args, train_dataset=Rows(), eval_dataset=Rows(), compute_metrics=lambda p: {"n": float(len(p.label_ids))}).train()
""",
    "a causal language model": """
from transformers import GPT2Config, GPT2LMHeadModel
model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_embd=16, n_layer=1, n_head=2, n_positions=16)); opt = torch.optim.AdamW(model.parameters())
for _ in range(2):
    ids = torch.randint(0, 50, (2, 8)); step(model(ids, labels=ids).loss, opt)
""",
}

_RANKS = """
import torch, torch.nn as nn, torch.nn.functional as F
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
dist.init_process_group("gloo"); torch.manual_seed(0)
rank, size = dist.get_rank(), dist.get_world_size()
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
x, y = torch.randn(8, 8), torch.randint(0, 4, (8,))
"""

RANKS = {
    "replicas": """
net = nn.parallel.DistributedDataParallel(net); opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2): opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
    "shards": """
from torch.distributed.fsdp import fully_shard
for layer in net: fully_shard(layer)
fully_shard(net); opt = torch.optim.AdamW(net.parameters())
for _ in range(2): opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
    "tensor parallel": """
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
mesh = init_device_mesh("cpu", (size,))
net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}); opt = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(2): opt.zero_grad(); F.cross_entropy(net(x), y).backward(); opt.step()
""",
    "a mesh of two axes": """
mesh = init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
value = torch.ones(4) * rank
dist.all_reduce(value, group=mesh["tp"].get_group()); dist.all_reduce(value, group=mesh["dp"].get_group())
""",
    "distributed tensors": """
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
mesh = init_device_mesh("cpu", (size,))
whole = distribute_tensor(torch.randn(8, 8), mesh, [Shard(0)]); part = whole.redistribute(mesh, [Replicate()])
(part * 2).to_local().sum()
""",
    "a pipeline": """
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
part = nn.Linear(8, 8); stage = PipelineStage(part, rank, size, torch.device("cpu"))
schedule = ScheduleGPipe(stage, 2, loss_fn=F.mse_loss)
if rank == 0: schedule.step(x)
elif rank == size - 1: schedule.step(target=torch.randn(8, 8))
else: schedule.step()
""",
    "one forward, one backward": """
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
part = nn.Linear(8, 8); stage = PipelineStage(part, rank, size, torch.device("cpu"))
schedule = Schedule1F1B(stage, 4, loss_fn=F.mse_loss)
if rank == 0: schedule.step(x)
elif rank == size - 1: schedule.step(target=torch.randn(8, 8))
else: schedule.step()
""",
    "gradients reduced by hand": """
opt = torch.optim.SGD(net.parameters(), 0.1)
for p in net.parameters(): dist.broadcast(p.data, 0)
for _ in range(2):
    opt.zero_grad(); F.cross_entropy(net(x), y).backward()
    works = [dist.all_reduce(p.grad, async_op=True) for p in net.parameters()]
    for work in works: work.wait()
    for p in net.parameters(): p.grad /= size
    opt.step()
""",
    "objects and metrics": """
parts = [None] * size; dist.all_gather_object(parts, {"rank": rank, "loss": 0.5})
box = [42] if rank == 0 else [None]; dist.broadcast_object_list(box, 0); assert box[0] == 42
for name in sorted({"loss", "accuracy"}): dist.all_reduce(torch.zeros(1))
if rank == 0: print(parts)
dist.barrier()
""",
    "a ring": """
out, into = torch.ones(4) * rank, torch.zeros(4)
ops = [dist.P2POp(dist.isend, out, (rank + 1) % size), dist.P2POp(dist.irecv, into, (rank - 1) % size)]
for work in dist.batch_isend_irecv(ops): work.wait()
total = into + out
""",
    "tokens to experts": """
counts = torch.tensor([2] * size); received = torch.empty_like(counts)
dist.all_to_all_single(received, counts)
tokens = torch.randn(2 * size, 8); back = torch.empty(int(received.sum()), 8)
dist.all_to_all_single(back, tokens, received.tolist(), counts.tolist())
""",
    "shards of one dataset": """
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
data = TensorDataset(x.repeat(4, 1), y.repeat(4)); sampler = DistributedSampler(data)
net = nn.parallel.DistributedDataParallel(net); opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for a, b in DataLoader(data, 4, sampler=sampler): opt.zero_grad(); F.cross_entropy(net(a), b).backward(); opt.step()
if rank == 0: torch.save(net.module.state_dict(), "net.pt")
dist.barrier()
""",
}


def main(words: list[str]) -> int:
    """Runs all, or those that are named; gives the number of accused ones."""
    programs = [(name, _HEAD + text, 0) for name, text in ONE_PROCESS.items()]
    programs += [(name, _RANKS + text, 4) for name, text in RANKS.items()]
    accused, stopped = [], []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text, size in programs:
            if words and name not in words:
                continue
            Path("train.py").write_text(text)
            report = dry_run("train.py", world_size=size)
            if report.findings:
                accused.append(name)
                print(
                    f"{name}: ACCUSED {report.findings[0].line}: {report.findings[0].message('en')[:300]}"
                )
            elif gaps := [gap for gap in report.gaps if gap.failed]:
                stopped.append(name)
                print(f"{name}: stopped: {gaps[0].reason.say('en')[:300]}")
            sys.stdout.flush()
    print(f"{len(programs)} programs: {len(accused)} accused, {len(stopped)} stopped")
    return len(accused)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
