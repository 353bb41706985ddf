"""Small training programs that eager torch refuses, each with a right twin: does a dry run refuse them?

python benchmarks/eager_cases.py tuned        the cases that were looked at while building
python benchmarks/eager_cases.py kept_aside   a third of them, scored once
python benchmarks/eager_cases.py verify       every case as plain Python: eager is who decides

A case is one line that differs, in one of a few programs. They ask for CUDA where it is available, so
that eager decides on a CPU what the dry run is asked on its pretended device, and with `cpu` at the end
on the CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

HEAD = """
import torch, torch.nn as nn, torch.nn.functional as F
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
B, T, C, V = 4, 6, 8, 10
x = torch.randn(B, C, device=device)
y = torch.randint(0, V, (B,), device=device)
tokens = torch.randint(0, V, (B, T), device=device)
image = torch.randn(B, 3, 8, 8, device=device)
"""
STEP = """
model = model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(2):
    loss = compute(model)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@dataclass(frozen=True, slots=True)
class Case:
    """`@@` in a program is what differs."""

    name: str
    program: str
    wrong: str
    right: str

    def script(self, text: str) -> str:
        return (
            HEAD + self.program.replace("@@", text) + ("" if "optimizer" in self.program else STEP)
        )

    def is_kept_aside(self) -> bool:
        return zlib.crc32(self.name.encode()) % 3 == 0


LINEAR = "model = nn.Linear(C, V)\ndef compute(model):\n    @@\n"
WEIGHT = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(V, C))
        self.kernel = nn.Parameter(torch.randn(5, 3, 3, 3))
        self.table = nn.Parameter(torch.randn(V, C))
        self.register_buffer("count", torch.zeros(V, C))
    def forward(self, x):
        @@
model = Net()
def compute(model):
    return model(x).float().sum()
"""
EMBED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(V, C)
        self.head = nn.Linear(C, V)
        self.rnn = nn.LSTM(C, C, batch_first=True)
    def forward(self, tokens):
        @@
model = Net()
def compute(model):
    return model(tokens).sum()
"""
LOOP = """
model = nn.Sequential(nn.Linear(C, C), nn.ReLU(), nn.Linear(C, V)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
@@
"""
CASES = (
    Case("linear_of_two_dtypes", WEIGHT, "return F.linear(x.bfloat16(), self.weight)", "return F.linear(x.bfloat16(), self.weight.bfloat16())"),
    Case("matmul_of_two_dtypes", WEIGHT, "return x.half() @ self.weight.t()", "return x.half() @ self.weight.t().half()"),
    Case("matmul_of_integers", WEIGHT, "return torch.arange(C, device=device) @ self.weight.t()", "return torch.arange(C, device=device).float() @ self.weight.t()"),
    Case("convolution_of_two_dtypes", WEIGHT, "return F.conv2d(image.bfloat16(), self.kernel)", "return F.conv2d(image, self.kernel)"),
    Case("index_add_of_two_dtypes", WEIGHT, "return self.table.clone().index_add_(0, y, x.bfloat16())", "return self.table.clone().index_add_(0, y, x)"),
    Case("index_put_of_two_dtypes", WEIGHT, "t = self.table.clone(); t[y] = (x * 2).half(); return t.index_put((y,), x.bfloat16())", "t = self.table.clone(); return t.index_put((y,), x)"),
    Case("index_copy_of_two_dtypes", WEIGHT, "return self.table.clone().index_copy_(0, torch.arange(B, device=device), x.double())", "return self.table.clone().index_copy_(0, torch.arange(B, device=device), x)"),
    Case("scatter_of_two_dtypes", WEIGHT, "return self.table.clone().scatter_add(0, y[:, None].expand(B, C), x.half())", "return self.table.clone().scatter_add(0, y[:, None].expand(B, C), x)"),
    Case("int32_targets", LINEAR, "return F.cross_entropy(model(x), y.int())", "return F.cross_entropy(model(x), y)"),
    Case("float_targets", LINEAR, "return F.nll_loss(F.log_softmax(model(x), 1), y.float())", "return F.nll_loss(F.log_softmax(model(x), 1), y)"),
    Case("class_weights_of_another_dtype", LINEAR, "return F.cross_entropy(model(x), y, weight=torch.ones(V, device=device).double())", "return F.cross_entropy(model(x), y, weight=torch.ones(V, device=device))"),
    Case("integer_bce_targets", LINEAR, "return F.binary_cross_entropy(torch.sigmoid(model(x)), F.one_hot(y, V))", "return F.binary_cross_entropy(torch.sigmoid(model(x)), F.one_hot(y, V).float())"),
    Case("targets_out_of_range", LINEAR, "return F.cross_entropy(model(x), y + V)", "return F.cross_entropy(model(x), y)"),
    Case("targets_count_from_one", LINEAR, "return F.cross_entropy(model(x), torch.tensor([1, 2, 3, 10], device=device))", "return F.cross_entropy(model(x), torch.tensor([1, 2, 3, 9], device=device))"),
    Case("ignore_index_left_out", LINEAR, "return F.cross_entropy(model(x), torch.tensor([1, 2, -1, 3], device=device))", "return F.cross_entropy(model(x), torch.tensor([1, 2, -1, 3], device=device), ignore_index=-1)"),
    Case("tokens_out_of_range", EMBED, "return self.head(self.embedding(tokens + V))", "return self.head(self.embedding(tokens))"),
    Case("tokens_after_an_offset", EMBED, "ids = tokens.clone(); ids[0, 0] = V; return self.head(self.embedding(ids))", "ids = tokens.clone(); ids[0, 0] = 0; return self.head(self.embedding(ids))"),
    Case("float_tokens", EMBED, "return self.head(self.embedding(tokens.float()))", "return self.head(self.embedding(tokens))"),
    Case("gather_out_of_range", EMBED, "h = self.head(self.embedding(tokens)); return h.gather(-1, torch.full((B, T, 1), V, device=device))", "h = self.head(self.embedding(tokens)); return h.gather(-1, torch.full((B, T, 1), V - 1, device=device))"),
    Case("gather_with_int32", EMBED, "h = self.head(self.embedding(tokens)); return h.gather(-1, tokens[..., None].short())", "h = self.head(self.embedding(tokens)); return h.gather(-1, tokens[..., None])"),
    Case("index_select_out_of_range", EMBED, "return self.embedding.weight.index_select(0, torch.tensor([3, V], device=device))", "return self.embedding.weight.index_select(0, torch.tensor([3, 0], device=device))"),
    Case("index_out_of_range", EMBED, "return self.embedding.weight[torch.tensor([3, V], device=device)]", "return self.embedding.weight[torch.tensor([3, -V], device=device)]"),
    Case("unsorted_lengths", EMBED, "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([3, 6, 2, 1]), batch_first=True))[0].data", "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([6, 3, 2, 1]), batch_first=True))[0].data"),
    Case("length_zero", EMBED, "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([6, 3, 2, 0]), batch_first=True))[0].data", "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([6, 3, 2, 2]), batch_first=True))[0].data"),
    Case("length_beyond_time", EMBED, "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([7, 3, 2, 1]), batch_first=True))[0].data", "return self.rnn(nn.utils.rnn.pack_padded_sequence(self.embedding(tokens), torch.tensor([6, 3, 2, 1]), batch_first=True))[0].data"),
    Case("one_hot_of_too_few_classes", LINEAR, "return (model(x)[:, :3] * F.one_hot(torch.tensor([0, 1, 2, 3], device=device), 3)).sum()", "return (model(x)[:, :4] * F.one_hot(torch.tensor([0, 1, 2, 3], device=device), 4)).sum()"),
    Case("one_hot_of_floats", LINEAR, "return (model(x) * F.one_hot(y.float(), V)).sum()", "return (model(x) * F.one_hot(y, V)).sum()"),
    Case("mask_is_not_boolean", WEIGHT, "return self.table.masked_fill(torch.ones(V, C, device=device), 0.0)", "return self.table.masked_fill(torch.ones(V, C, device=device).bool(), 0.0)"),
    Case("masked_scatter_with_integers", WEIGHT, "return self.table.masked_scatter(torch.ones(V, C, device=device).long(), x.repeat(20, 1))", "return self.table.masked_scatter(torch.ones(V, C, device=device).bool(), x.repeat(20, 1))"),
    Case("too_many_samples", LINEAR, "p = model(x).softmax(-1); i = torch.multinomial(p, V + 1); return p.gather(1, i).sum()", "p = model(x).softmax(-1); i = torch.multinomial(p, V); return p.gather(1, i).sum()"),
    Case("boundaries_of_two_axes", WEIGHT, "return self.table[torch.bucketize(x[:, 0], torch.zeros(2, 3, device=device))]", "return self.table[torch.bucketize(x[:, 0], torch.zeros(3, device=device))]"),
    Case("complex_of_two_dtypes", WEIGHT, "return torch.complex(self.table, self.table.double()).abs()", "return torch.complex(self.table, self.table).abs()"),
    Case("lerp_of_two_dtypes", WEIGHT, "return torch.lerp(self.table, self.table.double(), 0.5)", "return torch.lerp(self.table, self.table, 0.5)"),
    Case("in_place_into_integers", WEIGHT, "c = torch.zeros(B, C, dtype=torch.long, device=device); c += self.weight[:B]; return c", "c = torch.zeros(B, C, device=device); c += self.weight[:B]; return c"),
    Case("attention_of_two_dtypes", WEIGHT, "q = (x[:, None, None] * self.weight[0]); return F.scaled_dot_product_attention(q, q.bfloat16(), q)", "q = (x[:, None, None] * self.weight[0]); return F.scaled_dot_product_attention(q, q, q)"),
    Case("mask_of_another_dtype", WEIGHT, "q = (x[:, None, None] * self.weight[0]); return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(1, 1, device=device).long())", "q = (x[:, None, None] * self.weight[0]); return F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(1, 1, device=device).bool())"),
    Case("layer_norm_of_two_dtypes", WEIGHT, "return F.layer_norm(self.table, (C,), self.weight[0].double(), self.weight[1].double())", "return F.layer_norm(self.table, (C,), self.weight[0], self.weight[1])"),
    Case("einsum_of_two_dtypes", WEIGHT, "return torch.einsum('bc,vc->bv', x.double(), self.weight)", "return torch.einsum('bc,vc->bv', x, self.weight)"),
    Case("baddbmm_of_two_dtypes", WEIGHT, "a = self.table[None]; return torch.bmm(a, a.transpose(1, 2).half())", "a = self.table[None]; return torch.bmm(a, a.transpose(1, 2))"),
    Case("mean_of_integers", LINEAR, "return model(x).argmax(-1).mean() + model(x).sum()", "return model(x).argmax(-1).float().mean() + model(x).sum()"),
    Case("softmax_of_integers", WEIGHT, "return self.table[0] * torch.arange(C, device=device).softmax(0)", "return self.table[0] * torch.arange(C, device=device).softmax(0, dtype=torch.float32)"),
    Case("lstm_state_of_another_dtype", EMBED, "h = torch.zeros(1, B, C, device=device).double(); return self.rnn(self.embedding(tokens), (h, h))[0]", "h = torch.zeros(1, B, C, device=device); return self.rnn(self.embedding(tokens), (h, h))[0]"),
    Case("second_backward_after_step", LOOP, "for _ in range(2):\n    h = model(x); a = h.sum(); b = (h * h).sum(); optimizer.zero_grad(); a.backward(retain_graph=True); optimizer.step(); b.backward()", "for _ in range(2):\n    h = model(x); a = h.sum(); b = (h * h).sum(); optimizer.zero_grad(); a.backward(retain_graph=True); b.backward(); optimizer.step()"),
    Case("state_of_the_last_step", LOOP, "h = x\nfor _ in range(3):\n    h = torch.tanh(h @ model[0].weight); loss = h.sum(); optimizer.zero_grad(); loss.backward(); optimizer.step()", "h = x\nfor _ in range(3):\n    h = torch.tanh(h.detach() @ model[0].weight); loss = h.sum(); optimizer.zero_grad(); loss.backward(); optimizer.step()"),
    Case("clipped_before_backward", LOOP, "for _ in range(2):\n    h = model(x); loss = (h * h).sum(); torch._foreach_mul_([p.data for p in model.parameters()], 0.9); model[0].weight.data.mul_(1); h.mul_(2); loss.backward(); optimizer.step()", "for _ in range(2):\n    h = model(x); loss = (h * h).sum(); loss.backward(); optimizer.step()"),
    Case("probabilities_from_outside", LINEAR, "return F.binary_cross_entropy(torch.full((B,), 1.5, device=device), torch.ones(B, device=device)) + model(x).sum()", "return F.binary_cross_entropy(torch.full((B,), 0.5, device=device), torch.ones(B, device=device)) + model(x).sum()"),
    Case("repeat_of_negative_counts", WEIGHT, "return self.table.repeat_interleave(torch.tensor([-1] + [1] * 9, device=device), dim=0)", "return self.table.repeat_interleave(torch.tensor([0] + [1] * 9, device=device), dim=0)"),
    Case("gru_input_of_another_dtype", EMBED, "return self.rnn(self.embedding(tokens).bfloat16())[0]", "return self.rnn(self.embedding(tokens))[0]"),
    Case("group_norm_of_odd_channels", WEIGHT, "return F.group_norm(F.conv2d(image, self.kernel), 2)", "return F.group_norm(F.conv2d(image, self.kernel), 5)"),
    Case("pad_wider_than_input", WEIGHT, "return F.pad(F.conv2d(image, self.kernel), (6, 6, 0, 0), mode='reflect')", "return F.pad(F.conv2d(image, self.kernel), (5, 5, 0, 0), mode='reflect')"),
)  # fmt: skip


def verify() -> int:
    """Eager has to refuse each wrong program and accept each right one."""
    bad = 0
    for case in CASES:
        wrong, right = (
            subprocess.run(
                [sys.executable, "-c", case.script(text)],
                capture_output=True,
                text=True,
                check=False,
            )
            for text in (case.wrong, case.right)
        )
        if not wrong.returncode or right.returncode:
            bad += 1
            last = (right.stderr.strip().splitlines() or [""])[-1]
            print(
                f"{case.name}: eager accepts the wrong one"
                if not wrong.returncode
                else f"{case.name}: {last}"
            )
    print(f"{len(CASES) - bad} of {len(CASES)} cases are as eager says")
    return bad


def main(words: list[str]) -> int:
    if words[:1] == ["verify"]:
        return verify()
    from torchstone.dryrun.run import dry_run

    part = words[0] if words else "tuned"
    device = "cpu" if "cpu" in words else "h100-80g"
    names = [word for word in words[1:] if word != "cpu"]
    found = accused = total = 0
    for case in CASES:
        if case.is_kept_aside() != (part == "kept_aside") or (names and case.name not in names):
            continue
        with tempfile.TemporaryDirectory() as place:
            os.chdir(place)
            reports = []
            for text in (case.wrong, case.right):
                Path("train.py").write_text(case.script(text), "utf-8")
                reports.append(dry_run("train.py", device=device))
            os.chdir("/")
        wrong, right = reports
        hit = any(item.rule.startswith("DR1") for item in wrong.findings)
        clean = not right.findings and not right.gaps
        total, found, accused = total + 1, found + hit, accused + (not clean)
        if not hit or not clean or names:
            said = [
                f"{item.rule} {item.message('en')}" for item in (*wrong.findings, *right.findings)
            ]
            print(case.name, "found" if hit else "MISSED", "twin clean" if clean else "twin ACCUSED", *said, sep=" | ")  # fmt: skip
            for gap in (*wrong.gaps, *right.gaps):
                print("   gap:", gap)
    print(f"{part}: {found} of {total} refused, {accused} right twins accused")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
