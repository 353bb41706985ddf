"""Changes that are offered for what runs have shown: what they turn a program into."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from torchstone.conductor.changes.patches import changes_of
from torchstone.conductor.repairs import edits_for, repairs_by_rule
from torchstone.core.evidence import Snippet
from torchstone.core.finding import Confidence, Finding, Location, Severity
from torchstone.core.text import Message, Text


@dataclass(frozen=True)
class Case:
    """A program, the line that a run named (marked with `# here`), and programs that must be among the offers."""

    rule: str
    before: str
    after: tuple[str, ...]
    args: dict[str, str] = field(default_factory=dict)


CASES = {
    "state copied": Case(
        "EX126",
        """
        import torch

        best = model.state_dict()  # here
        """,
        (
            """
            import copy
            import torch

            best = copy.deepcopy(model.state_dict())  # here
            """,
        ),
    ),
    "state copied in full": Case(
        "EX105",
        """
        import copy

        class Best:
            def keep(self, model):
                self.state = copy.copy(model.state_dict())

        model.load_state_dict(best.state)  # here
        """,
        (
            """
            import copy

            class Best:
                def keep(self, model):
                    self.state = copy.deepcopy(model.state_dict())

            model.load_state_dict(best.state)  # here
            """,
        ),
    ),
    "gradients cleared after the step": Case(
        "EX102",
        """
        for x in data:
            loss(x).backward()
            opt.zero_grad()
            opt.step()  # here
        """,
        (
            """
            for x in data:
                loss(x).backward()
                opt.step()  # here
                opt.zero_grad()
            """,
        ),
    ),
    "cleared between passes": Case(
        "EX122",
        """
        def train(model, data, opt):
            for i, x in enumerate(data):
                opt.zero_grad()  # here
                model(x).backward()
                if i % 4 == 3:
                    opt.step()
        """,
        (
            """
            def train(model, data, opt):
                for i, x in enumerate(data):
                    model(x).backward()
                    if i % 4 == 3:
                        opt.step()
                        opt.zero_grad()
            """,
        ),
    ),
    "history": Case(
        "EX104",
        """
        for x in data:
            total += loss
            kept.append(loss)
            opt.step()  # here
        """,
        (
            """
            for x in data:
                total += loss.detach()
                kept.append(loss)
                opt.step()  # here
            """,
            """
            for x in data:
                total += loss
                kept.append(loss.detach())
                opt.step()  # here
            """,
        ),
    ),
    "shapes": Case(
        "EX106",
        """
        error = (model(x) - y).pow(2).mean()  # here
        """,
        (
            """
            error = (model(x).squeeze(-1) - y).pow(2).mean()  # here
            """,
            """
            error = (model(x) - y.unsqueeze(-1)).pow(2).mean()  # here
            """,
        ),
        {"left": "(8, 1)", "right": "(8,)"},
    ),
    "shapes of a call": Case(
        "EX106",
        """
        error = F.mse_loss(model(x), y)  # here
        """,
        (
            """
            error = F.mse_loss(model(x).squeeze(-1), y)  # here
            """,
        ),
        {"left": "(8, 1)", "right": "(8,)"},
    ),
    "sample": Case(
        "EX121",
        """
        class Data:
            def __getitem__(self, i):
                x, y = self.x[i], self.y[i]
                x.sub_(self.mean)  # here
                return x, y
        """,
        (
            """
            class Data:
                def __getitem__(self, i):
                    x, y = self.x[i], self.y[i]
                    x = x.clone()
                    x.sub_(self.mean)  # here
                    return x, y
            """,
            """
            class Data:
                def __getitem__(self, i):
                    x, y = self.x[i], self.y[i]
                    x = x.copy()
                    x.sub_(self.mean)  # here
                    return x, y
            """,
        ),
    ),
    "sample changed where it is read": Case(
        "EX121",
        """
        class Data:
            def __getitem__(self, i):
                return self.x[i].sub_(self.mean, alpha=2)  # here
        """,
        (
            """
            class Data:
                def __getitem__(self, i):
                    return self.x[i].sub(self.mean, alpha=2)  # here
            """,
        ),
    ),
    "probabilities": Case(
        "DR204",
        """
        p = F.softmax(x / 2, dim=1)
        loss = F.kl_div(p, q)  # here
        """,
        (
            """
            p = F.log_softmax(x / 2, dim=1)
            loss = F.kl_div(p, q)  # here
            """,
        ),
        {
            "said": "takes log-probabilities and is given probabilities, made by F.softmax at train.py:1"
        },
    ),
    "logits": Case(
        "DR204",
        """
        p = model(x).softmax(-1)
        loss = F.cross_entropy(p, y)  # here
        """,
        (
            """
            p = model(x)
            loss = F.cross_entropy(p, y)  # here
            """,
        ),
        {"said": "takes logits and is given probabilities, made by Tensor.softmax at train.py:1"},
    ),
    "axis": Case(
        "EX116",
        """
        def forward(self, x):  # here
            return F.normalize(self.out(x), dim=0)
        """,
        (
            """
            def forward(self, x):  # here
                return F.normalize(self.out(x), dim=-1)
            """,
        ),
    ),
    "mean over padding": Case(
        "EX117",
        """
        def forward(self, x, mask):  # here
            return self.states(x).mean(1)
        """,
        (
            """
            def forward(self, x, mask):  # here
                return ((self.states(x) * mask.unsqueeze(-1).float()).sum(1) / mask.unsqueeze(-1).float().sum(1).clamp(min=1))
            """,
        ),
    ),
    "state restored": Case(
        "EX118",
        """
        def save(path, model, sched):
            torch.save({"m": model.state_dict(), "s": sched.state_dict()}, path)

        def load(path, model, sched):
            ckpt = torch.load(path)  # here
            model.load_state_dict(ckpt["m"])
            return ckpt
        """,
        (
            """
            def save(path, model, sched):
                torch.save({"m": model.state_dict(), "s": sched.state_dict()}, path)

            def load(path, model, sched):
                ckpt = torch.load(path)  # here
                model.load_state_dict(ckpt["m"])
                sched.load_state_dict(ckpt["s"])
                return ckpt
            """,
        ),
        {"name": "sched"},
    ),
    "shares exchanged": Case(
        "EX127",
        """
        class Average:
            @torch.no_grad()  # here
            def update(self, model):
                for a, p in zip(self.parameters(), model.parameters()):
                    a.mul_(1 - self.decay).add_(p, alpha=self.decay)
        """,
        (
            """
            class Average:
                @torch.no_grad()  # here
                def update(self, model):
                    for a, p in zip(self.parameters(), model.parameters()):
                        a.mul_(self.decay).add_(p, alpha=(1 - self.decay))
            """,
        ),
    ),
    "buffers of an average": Case(
        "EX108",
        """
        def update(self, model):  # here
            for a, p in zip(self.module.parameters(), model.parameters()):
                a.lerp_(p, 0.1)
        """,
        (
            """
            def update(self, model):  # here
                for a, p in zip(self.module.parameters(), model.parameters()):
                    a.lerp_(p, 0.1)
                for kept, new in zip(self.module.buffers(), model.buffers()):
                    kept.copy_(new)
            """,
        ),
    ),
    "share of a lerp": Case(
        "EX127",
        """
        def update(self, model):  # here
            self.w.lerp_(model.w, self.decay)
        """,
        (
            """
            def update(self, model):  # here
                self.w.lerp_(model.w, 1 - self.decay)
            """,
        ),
    ),
    "mean by samples": Case(
        "EX107",
        """
        def evaluate(model, loader):
            total = 0.0
            for x, y in loader:
                total += loss(model(x), y).item()
            return total / len(loader)  # here
        """,
        (
            """
            def evaluate(model, loader):
                total = 0.0
                counted = 0
                for x, y in loader:
                    total += loss(model(x), y).item() * len(x)
                    counted += len(x)
                return total / counted  # here
            """,
        ),
    ),
    "mean by counts": Case(
        "EX107",
        """
        def evaluate(model, loader):
            total, n = 0.0, 0
            for batch in loader:
                error, count = errors(model, batch)
                total += (error / count).item()
                n += 1
            return total / n  # here
        """,
        (
            """
            def evaluate(model, loader):
                total, n = 0.0, 0
                counted = 0.0
                for batch in loader:
                    error, count = errors(model, batch)
                    total += (error).item()
                    counted += float(count)
                    n += 1
                return total / counted  # here
            """,
        ),
    ),
    "mean of a list": Case(
        "EX107",
        """
        def evaluate(model, loader):
            scores = []
            for batch in loader:
                scores.append(score(model, batch["image"]))
            return np.mean(scores)  # here
        """,
        (
            """
            def evaluate(model, loader):
                scores = []
                counted = 0
                for batch in loader:
                    scores.append(score(model, batch["image"]) * len(batch["image"]))
                    counted += len(batch["image"])
                return (sum(scores) / counted)  # here
            """,
        ),
    ),
    "schedule too short": Case(
        "EX120",
        """
        def run(model, loader, opt, epochs):
            sched = CosineAnnealingLR(opt, epochs)  # here
            for epoch in range(epochs):
                for x in loader:
                    opt.step()
                    sched.step()
        """,
        (
            """
            def run(model, loader, opt, epochs):
                sched = CosineAnnealingLR(opt, epochs * len(loader))  # here
                for epoch in range(epochs):
                    for x in loader:
                        opt.step()
                        sched.step()
            """,
            """
            def run(model, loader, opt, epochs):
                sched = CosineAnnealingLR(opt, epochs)  # here
                for epoch in range(epochs):
                    for x in loader:
                        opt.step()
                    sched.step()
            """,
        ),
        {"made": "40", "end": "4"},
    ),
    "schedule too short, stepped by a function": Case(
        "EX120",
        """
        def train_epoch(model, batches, opt, sched):
            for x in batches:
                opt.step()
                sched.step()

        def run(model, loader, opt, epochs):
            sched = OneCycleLR(opt, 0.1, total_steps=epochs)  # here
            for epoch in range(epochs):
                train_epoch(model, loader, opt, sched)
        """,
        (
            """
            def train_epoch(model, batches, opt, sched):
                for x in batches:
                    opt.step()
                    sched.step()

            def run(model, loader, opt, epochs):
                sched = OneCycleLR(opt, 0.1, total_steps=epochs * len(loader))  # here
                for epoch in range(epochs):
                    train_epoch(model, loader, opt, sched)
            """,
            """
            def train_epoch(model, batches, opt, sched):
                for x in batches:
                    opt.step()

            def run(model, loader, opt, epochs):
                sched = OneCycleLR(opt, 0.1, total_steps=epochs)  # here
                for epoch in range(epochs):
                    train_epoch(model, loader, opt, sched)
                    sched.step()
            """,
        ),
        {"made": "40", "end": "4"},
    ),
    "schedule too long": Case(
        "EX120",
        """
        sched = CosineAnnealingLR(opt, args.epochs * len(train))  # here
        for epoch in range(args.epochs):
            for i, x in enumerate(train):
                if (i + 1) % args.accumulate == 0:
                    opt.step()
                    sched.step()
        """,
        (
            """
            sched = CosineAnnealingLR(opt, (args.epochs * len(train)) // args.accumulate)  # here
            for epoch in range(args.epochs):
                for i, x in enumerate(train):
                    if (i + 1) % args.accumulate == 0:
                        opt.step()
                        sched.step()
            """,
        ),
        {"made": "10", "end": "40"},
    ),
    "schedule never stepped": Case(
        "EX115",
        """
        def run(loader, opt, epochs):
            sched = StepLR(opt, 5)  # here
            for epoch in range(epochs):
                for x in loader:
                    opt.step()
        """,
        (
            """
            def run(loader, opt, epochs):
                sched = StepLR(opt, 5)  # here
                for epoch in range(epochs):
                    for x in loader:
                        opt.step()
                    sched.step()
            """,
        ),
    ),
    "evaluated in training mode": Case(
        "EX114",
        """
        def evaluate(model, loader):  # here
            for x in loader:
                model(x)
        """,
        (
            """
            def evaluate(model, loader):  # here
                model.eval()
                for x in loader:
                    model(x)
            """,
        ),
    ),
    "not finite": Case(
        "EX101",
        """
        loss = -torch.log(p / p.sum()).mean()  # here
        """,
        (
            """
            loss = -torch.log((p / p.sum()).clamp_min(1e-6)).mean()  # here
            """,
            """
            loss = -torch.log(p / (p.sum() + 1e-6)).mean()  # here
            """,
        ),
    ),
    "barrier": Case(
        "TS401",
        """
        if rank == 0:
            save()
            dist.barrier()  # here
        """,
        (
            """
            dist.barrier()
            if rank == 0:
                save()
            """,
        ),
    ),
    "two receive": Case(
        "DR604",
        """
        dist.recv(x, src=1)  # here
        """,
        (
            """
            dist.send(x, dst=1)  # here
            """,
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_program_becomes(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    before = textwrap.dedent(case.before).lstrip()
    (tmp_path / "train.py").write_text(before)
    offers = [
        change.after
        for fix in edits_for(finding(case, before), tmp_path)
        for change in changes_of(tmp_path, fix.edits)
    ]
    for offer in offers:
        compile(offer, "train.py", "exec")
    for after in case.after:
        assert textwrap.dedent(after).lstrip() in offers, "\n---\n".join(offers)


def test_every_repair_has_a_case() -> None:
    tested = {case.rule for case in CASES.values()}
    modules = {rule: {one.__module__ for one in found} for rule, found in repairs_by_rule().items()}
    named = set().union(*(modules[rule] for rule in tested))
    assert named == set().union(*modules.values())


def test_nothing_is_offered_where_the_code_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("x = 1  # here\n")
    for rule in repairs_by_rule():
        assert not edits_for(finding(Case(rule, "", ()), "x = 1  # here\n"), tmp_path)


def finding(case: Case, text: str) -> Finding:
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "# here" in row)
    said = Message("what", Text(case.args.get("said", "it is so"), "如此"), dict(case.args))
    return Finding(
        rule=case.rule,
        name="shown",
        severity=Severity.HIGH,
        confidence=Confidence.CERTAIN,
        what=said,
        why=said,
        remedy=said,
        evidence=(Snippet("train.py", 1, text, line),),
        location=Location("train.py", line),
        fingerprint="f",
    )
