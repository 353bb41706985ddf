"""Each fact travels from one file to another: by functions, objects, attributes and several calls."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from torchstone.lint.engine import check
from torchstone.lint.options import CheckOptions


class Case(NamedTuple):
    """A small program, and whether a rule has something to say about it."""

    what: str
    rule: str
    fires: bool
    files: dict[str, str]


CASES: list[Case] = []


def program(what: str, rule: str, fires: bool, **files: str) -> None:
    CASES.append(Case(what, rule, fires, {f"{name}.py": text for name, text in files.items()}))


_JUDGE = """import torch
class Judge:
    def __init__(self, net, data):
        self.net = net
        self.data = data
    @torch.no_grad()
    def score(self):
        self.net.eval()
        hits = sum((self.net(a).argmax(1) == b).sum() for a, b in self.data)
        %s
        return hits
"""
_RUNNER = """import torch
from judge import Judge
class Runner:
    def __init__(self, net, train, val, optim):
        self.net = net
        self.judge = Judge(self.net, val)
        self.train_data = train
        self.optim = optim
    def run(self):
        for epoch in range(5):
            for a, b in self.train_data:
                self.optim.zero_grad()
                torch.nn.functional.cross_entropy(self.net(a), b).backward()
                self.optim.step()
            print(self.judge.score())
"""
program("eval in attr object", "TS205", True, judge=_JUDGE % "pass", main=_RUNNER)
program("the right twin", "TS205", False, judge=_JUDGE % "self.net.train()", main=_RUNNER)
_MEASURE = """from deep import quiet
def measure(net, data):
    quiet(net)
    return [net(a) for a, b in data]
"""
_QUIET = "def quiet(m):\n    m.eval()\n"
_FIT_AND_MEASURE = """import torch
from helper import measure
def fit(net, data, val, optim):
    net.train()
    for epoch in range(5):
        for a, b in data:
            optim.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(a), b)
            loss.backward()
            optim.step()
        measure(net, val)
"""
program("eval two levels", "TS205", True, deep=_QUIET, helper=_MEASURE, main=_FIT_AND_MEASURE)
program(
    "the right twin",
    "TS205",
    False,
    deep=_QUIET,
    helper=_MEASURE,
    main=_FIT_AND_MEASURE.replace(
        "    net.train()\n    for epoch in range(5):\n",
        "    for epoch in range(5):\n        net.train()\n",
    ),
)
program(
    "TS229 callee evals",
    "TS229",
    False,
    deep=_QUIET,
    main="""import torch
from deep import quiet
@torch.no_grad()
def evaluate(net, data):
    quiet(net)
    return [net(a) for a, b in data]
def main(net, data, val, optim):
    for a, b in data:
        optim.zero_grad(); net(a).sum().backward(); optim.step()
    evaluate(net, val)
""",
)
_UPDATE = """def update(loss, optim):
    %s
    loss.backward()
    optim.step()
"""
_FIT_WITH_UPDATE = """import torch
from up import update
def fit(net, data):
    optim = torch.optim.SGD(net.parameters(), lr=0.1)
    for a, b in data:
        loss = torch.nn.functional.cross_entropy(net(a), b)
        update(loss, optim)
"""
program("no zero_grad in callee", "TS201", True, up=_UPDATE % "pass", main=_FIT_WITH_UPDATE)
program(
    "zero_grad in callee", "TS201", False, up=_UPDATE % "optim.zero_grad()", main=_FIT_WITH_UPDATE
)
_FIT_WITH_CLEAR = """import torch
from up import clear
def fit(net, data):
    optim = torch.optim.SGD(net.parameters(), lr=0.1)
    for a, b in data:
        %s
        loss = torch.nn.functional.cross_entropy(net(a), b)
        loss.backward()
        optim.step()
"""
program(
    "clear helper",
    "TS201",
    False,
    up="def clear(o):\n    o.zero_grad()\n",
    main=_FIT_WITH_CLEAR % "clear(optim)",
)
program(
    "clear helper not called",
    "TS201",
    True,
    up="def clear(o):\n    o.zero_grad()\n",
    main=_FIT_WITH_CLEAR % "pass",
)
program(
    "unknown call silences HIGH",
    "TS201",
    False,
    up="def clear(o):\n    o.zero_grad()\n",
    main="import other\n" + _FIT_WITH_CLEAR % "other.prepare(optim)",
)
_ONE_STEP = """def one_step(net, a, b, optim, lossf):
    optim.zero_grad()
    loss = lossf(net(a), b)
    loss.backward()
    optim.step()
    return loss%s
"""
_KEEP_SUM = """import torch
from st import one_step
def fit(net, data, optim, lossf):
    running = 0.0
    for a, b in data:
        running += one_step(net, a, b, optim, lossf)
    return running
"""
program("graph returned", "TS314", True, st=_ONE_STEP % "", main=_KEEP_SUM)
program("detached", "TS314", False, st=_ONE_STEP % ".detach()", main=_KEEP_SUM)
_KEEP_IN_LIST = """import torch
from st import one_step
def fit(net, data, optim, lossf):
    history = []
    for a, b in data:
        value = one_step(net, a, b, optim, lossf)
        history.append(value)
    return history
"""
program("graph returned, append", "TS314", True, st=_ONE_STEP % "", main=_KEEP_IN_LIST)
program("item", "TS314", False, st=_ONE_STEP % ".item()", main=_KEEP_IN_LIST)
_TRAINER = """class Trainer:
    def __init__(self, net, optim, lossf):
        self.net = net
        self.optim = optim
        self.lossf = lossf
    def one_step(self, a, b):
        self.optim.zero_grad()
        loss = self.lossf(self.net(a), b)
        loss.backward()
        self.optim.step()
        return {"loss": loss%s, "n": len(a)}
"""
_KEEP_FROM_DICT = """import torch
from tr import Trainer
def fit(net, data, optim, lossf):
    t = Trainer(net, optim, lossf)
    total = 0
    for a, b in data:
        out = t.one_step(a, b)
        total += out["loss"]
    return total
"""
program("graph returned in dict by method", "TS314", True, tr=_TRAINER % "", main=_KEEP_FROM_DICT)
program("detached dict", "TS314", False, tr=_TRAINER % ".detach()", main=_KEEP_FROM_DICT)
program(
    "tuple",
    "TS314",
    True,
    st=(_ONE_STEP % "").replace("return loss", "return loss, len(a)"),
    main="""import torch
from st import one_step
def fit(net, data, optim, lossf):
    seen = 0.0
    for a, b in data:
        value, n = one_step(net, a, b, optim, lossf)
        seen += value * n
    return seen
""",
)
_START = """import torch, os
import torch.distributed as dist
def start(rank, world):
    dist.init_process_group("nccl", rank=rank, world_size=world)
    %s
"""
_WORKER = """import torch
from sd import start
from torch.nn.parallel import DistributedDataParallel as DDP
def worker(rank, world, net):
    start(rank, world)
    net = DDP(net.cuda())
    %s
    return net
"""
program("no set_device", "TS413", True, sd=_START % "pass", main=_WORKER % "pass")
program(
    "set_device in callee",
    "TS413",
    False,
    sd=_START % "torch.cuda.set_device(rank)",
    main=_WORKER % "pass",
)
program(
    "set_device in caller",
    "TS413",
    False,
    sd=_START % "pass",
    main=(_WORKER % "pass").replace(
        "    start(rank", "    torch.cuda.set_device(rank)\n    start(rank"
    ),
)
program(
    "set_device in other helper",
    "TS413",
    False,
    sd=_START % "pass",
    gpu="import torch\ndef choose(r):\n    torch.cuda.set_device(r)\n",
    main="from gpu import choose\n"
    + (_WORKER % "pass").replace("    start(rank", "    choose(rank)\n    start(rank"),
)
_VALUE = "def value(t):\n    return t%s\n"
_METER = "from deep import value\nclass Meter:\n    def __init__(self):\n        self.sum = 0.0\n    def add(self, t):\n        self.sum += value(t)\n"
_FIT_WITH_METER = """import torch
from meter import Meter
def fit(net, data, optim, device):
    m = Meter()
    for a, b in data:
        optim.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(a.to(device)), b.to(device))
        loss.backward()
        optim.step()
        m.add(loss)
"""
program(
    "item two levels method",
    "TS301",
    True,
    deep=_VALUE % ".item()",
    meter=_METER,
    main=_FIT_WITH_METER,
)
program(
    "the right twin", "TS301", False, deep=_VALUE % ".detach()", meter=_METER, main=_FIT_WITH_METER
)
_CROPS = """import numpy as np
from torch.utils.data import Dataset
class Crops(Dataset):
    def __init__(self, xs):
        self.xs = xs
    def __len__(self):
        return len(self.xs)
    def __getitem__(self, i):
        return self.xs[i] + np.random.randn()
"""
_SEED_WORKER = """import numpy as np, torch, random
def seed_worker(worker_id):
    s = torch.initial_seed() %% 2**32
    %s
"""
_LOADER_OF_CROPS = """from torch.utils.data import DataLoader
from ds import Crops
from seeding import seed_worker
def make(xs):
    return DataLoader(Crops(xs), batch_size=4, num_workers=4%s)
"""
_OLD_TORCH = "torch==1.7\n"
CASES.append(
    Case(
        "unseeded",
        "TS208",
        True,
        {
            "requirements.txt": _OLD_TORCH,
            "ds.py": _CROPS,
            "seeding.py": _SEED_WORKER % "np.random.seed(s)",
            "main.py": _LOADER_OF_CROPS % "",
        },
    )
)
CASES.append(
    Case(
        "seeded in callee file",
        "TS208",
        False,
        {
            "requirements.txt": _OLD_TORCH,
            "ds.py": _CROPS,
            "seeding.py": _SEED_WORKER % "np.random.seed(s)",
            "main.py": _LOADER_OF_CROPS % ", worker_init_fn=seed_worker",
        },
    )
)
CASES.append(
    Case(
        "worker_init that does not seed",
        "TS208",
        True,
        {
            "requirements.txt": _OLD_TORCH,
            "ds.py": _CROPS,
            "seeding.py": _SEED_WORKER % "print(s)",
            "main.py": _LOADER_OF_CROPS % ", worker_init_fn=seed_worker",
        },
    )
)
CASES.append(
    Case(
        "seeds through a call",
        "TS208",
        False,
        {
            "requirements.txt": _OLD_TORCH,
            "ds.py": _CROPS,
            "deep.py": "import numpy as np\ndef set_all(s):\n    np.random.seed(s)\n",
            "seeding.py": "from deep import set_all\n" + _SEED_WORKER % "set_all(s)",
            "main.py": _LOADER_OF_CROPS % ", worker_init_fn=seed_worker",
        },
    )
)
_CONTEXTS = """import torch
from contextlib import contextmanager, nullcontext
@contextmanager
def half_region():
    with torch.autocast("cuda", dtype=torch.float16):
        yield
def region():
    return torch.autocast("cuda", dtype=torch.float16)
@contextmanager
def quiet():
    with torch.no_grad():
        yield
def frozen(fn):
    def inner(*args, **kw):
        with torch.no_grad():
            return fn(*args, **kw)
    return inner
"""
_STEP_IN_REGION = """import torch
import torch.nn.functional as F
from ctx import half_region, region
def step(net, a, b):
    with %s:
        p = torch.sigmoid(net(a))
        return F.binary_cross_entropy(p, b)
"""
program(
    "contextmanager helper", "TS102", True, ctx=_CONTEXTS, main=_STEP_IN_REGION % "half_region()"
)
program("returned autocast", "TS102", True, ctx=_CONTEXTS, main=_STEP_IN_REGION % "region()")
program(
    "the right twin",
    "TS102",
    False,
    ctx=_CONTEXTS,
    main=(_STEP_IN_REGION % "region()").replace("return F.binary", "pass\n    return F.binary"),
)
program(
    "attribute ctx",
    "TS102",
    True,
    main="""import torch
import torch.nn.functional as F
class Trainer:
    def __init__(self):
        self.ctx = torch.autocast("cuda", dtype=torch.float16)
    def step(self, net, a, b):
        with self.ctx:
            p = torch.sigmoid(net(a))
            return F.binary_cross_entropy(p, b)
""",
)
program(
    "method ctx",
    "TS102",
    True,
    base="""import torch
class Base:
    def amp(self):
        return torch.autocast("cuda", dtype=torch.float16)
""",
    main="""import torch
import torch.nn.functional as F
from base import Base
class Trainer(Base):
    def step(self, net, a, b):
        with self.amp():
            p = torch.sigmoid(net(a))
            return F.binary_cross_entropy(p, b)
""",
)
_EVALUATE = """import torch
from ctx import quiet, frozen
%s
def evaluate(net, loader):
    net.eval()
    hits = 0
    %s
        for a, b in loader:
            hits += (net(a.cuda()).argmax(1) == b.cuda()).sum().item()
    return hits
"""
program("no_grad missing", "TS311", True, ctx=_CONTEXTS, main=_EVALUATE % ("", "if True:"))
program(
    "no_grad by helper ctx", "TS311", False, ctx=_CONTEXTS, main=_EVALUATE % ("", "with quiet():")
)
program(
    "no_grad by project decorator",
    "TS311",
    False,
    ctx=_CONTEXTS,
    main=_EVALUATE % ("@frozen", "if True:"),
)
program(
    "callers open",
    "TS102",
    True,
    inner="""import torch.nn.functional as F, torch
def crit(p, b):
    return F.binary_cross_entropy(torch.sigmoid(p), b)
""",
    main="""import torch
from inner import crit
def step(net, a, b):
    with torch.autocast("cuda", dtype=torch.float16):
        return crit(net(a), b)
""",
)
program(
    "forward in region of callee; loss outside",
    "TS103",
    True,
    fw="""import torch
def run(net, a):
    with torch.autocast("cuda", dtype=torch.float16):
        return net(a)
""",
    main="""import torch
import torch.nn.functional as F
from fw import run
def fit(net, data, optim, scaler):
    for a, b in data:
        optim.zero_grad()
        out = run(net, a)
        loss = F.mse_loss(out, b)
        scaler.scale(loss).backward()
        scaler.step(optim)
        scaler.update()
""",
)
program(
    "graph under no_grad in callee",
    "TS214",
    True,
    fw="""import torch
@torch.no_grad()
def run(net, a, b):
    return torch.nn.functional.mse_loss(net(a), b)
""",
    main="""import torch
from fw import run
def fit(net, data, optim):
    for a, b in data:
        optim.zero_grad()
        loss = run(net, a, b)
        loss.backward()
        optim.step()
""",
)
program(
    "the right twin",
    "TS214",
    False,
    fw="""import torch
def run(net, a, b):
    return torch.nn.functional.mse_loss(net(a), b)
""",
    main="""import torch
from fw import run
def fit(net, data, optim):
    for a, b in data:
        optim.zero_grad()
        loss = run(net, a, b)
        loss.backward()
        optim.step()
""",
)
program(
    "inference tensor from callee",
    "TS232",
    True,
    fw="""import torch
def targets(teacher, a):
    with torch.inference_mode():
        return teacher(a)
""",
    main="""import torch
from fw import targets
def fit(net, teacher, data, optim):
    for a in data:
        optim.zero_grad()
        t = targets(teacher, a)
        loss = torch.nn.functional.mse_loss(net(a), t)
        loss.backward()
        optim.step()
""",
)
_CHIEF = """import torch.distributed as dist
def is_chief():
    return not dist.is_initialized() or dist.get_rank() == 0
def chief_only(fn):
    def inner(*a, **k):
        if dist.get_rank() == 0:
            return fn(*a, **k)
    return inner
"""
program(
    "rank test in callee",
    "TS401",
    True,
    rg=_CHIEF,
    main="""import torch.distributed as dist
from rg import is_chief
def log(x):
    if is_chief():
        dist.all_reduce(x)
        print(x)
""",
)
program(
    "project decorator",
    "TS401",
    True,
    rg=_CHIEF,
    main="""import torch.distributed as dist
from rg import chief_only
@chief_only
def log(x):
    dist.all_reduce(x)
    print(x)
""",
)
program(
    "the right twin",
    "TS401",
    False,
    rg=_CHIEF,
    main="""import torch.distributed as dist
from rg import is_chief
def log(x):
    dist.all_reduce(x)
    if is_chief():
        print(x)
""",
)
program(
    "flag attr",
    "TS401",
    True,
    rg=_CHIEF,
    main="""import torch.distributed as dist
from rg import is_chief
class T:
    def __init__(self):
        self.talk = is_chief()
    def log(self, x):
        if self.talk:
            dist.all_reduce(x)
            print(x)
""",
)
_MEAN = """import torch.distributed as dist
def mean(x):
    dist.all_reduce(x)
    return x / dist.get_world_size()
"""
_LOG = """from coll import mean
class Log:
    def write(self, x):
        print(mean(x))
"""
program(
    "collective in callee",
    "TS401",
    True,
    coll=_MEAN,
    main="""import torch.distributed as dist
from coll import mean
def log(x):
    if dist.get_rank() == 0:
        print(mean(x))
""",
)
program(
    "two levels, method",
    "TS401",
    True,
    coll=_MEAN,
    logs=_LOG,
    main="""import torch.distributed as dist
from logs import Log
def log(x):
    out = Log()
    if dist.get_rank() == 0:
        out.write(x)
""",
)
program(
    "two levels, attribute",
    "TS401",
    True,
    coll=_MEAN,
    logs=_LOG,
    main="""import torch.distributed as dist
from logs import Log
class Run:
    def __init__(self):
        self.out = Log()
    def go(self, x):
        if dist.get_rank() == 0:
            self.out.write(x)
""",
)
program(
    "the right twin",
    "TS401",
    False,
    coll=_MEAN,
    logs=_LOG,
    main="""import torch.distributed as dist
from coll import mean
def log(x):
    m = mean(x)
    if dist.get_rank() == 0:
        print(m)
""",
)
program(
    "early return then callee collective",
    "TS401",
    True,
    coll=_MEAN,
    logs=_LOG,
    main="""import torch.distributed as dist
from coll import mean
def log(x):
    if dist.get_rank() != 0:
        return
    print(mean(x))
""",
)
program(
    "try with collective in callee",
    "TS402",
    True,
    coll=_MEAN,
    main="""import torch
from coll import mean
def fit(net, data, optim):
    for a in data:
        try:
            loss = net(a)
            loss.backward()
            print(mean(loss))
        except RuntimeError:
            continue
        optim.step()
        optim.zero_grad()
""",
)
program(
    "local condition",
    "TS403",
    True,
    coll=_MEAN,
    main="""import torch
from coll import mean
def fit(net, data, optim):
    for a in data:
        loss = net(a)
        if torch.isnan(loss):
            mean(loss)
        loss.backward()
        optim.step()
        optim.zero_grad()
""",
)
_SPREAD = """from torch.nn.parallel import DistributedDataParallel as DDP
def spread(net, rank):
    net = net.to(rank)
    return DDP(net, device_ids=[rank])
class Setup:
    def __init__(self, net, rank):
        self.net = spread(net, rank)
"""
program(
    "attr wrapped in callee, module()",
    "TS414",
    True,
    w=_SPREAD,
    main="""import torch
from w import spread
class Run:
    def __init__(self, net, rank, optim):
        self.net = spread(net, rank)
        self.optim = optim
    def go(self, data):
        for a in data:
            self.optim.zero_grad()
            loss = self.net.module(a).sum()
            loss.backward()
            self.optim.step()
""",
)
program(
    "moved after",
    "TS407",
    True,
    w=_SPREAD,
    main="""import torch
from w import spread
def run(net, rank):
    net = spread(net, rank)
    net = net.half()
    net(torch.zeros(2))
    return net
""",
)
program(
    "wrapped twice",
    "TS408",
    True,
    w=_SPREAD,
    main="""import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from w import spread
def run(net, rank):
    net = spread(net, rank)
    net = DDP(net)
    return net
""",
)
program(
    "frozen after",
    "TS412",
    True,
    w=_SPREAD,
    main="""import torch
from w import spread
def run(net, rank):
    net = spread(net, rank)
    for p in net.module.head.parameters():
        p.requires_grad = False
    return net
""",
)
program(
    "run on one rank",
    "TS416",
    True,
    w=_SPREAD,
    main="""import torch
import torch.distributed as dist
from w import spread
def run(net, rank, val):
    net = spread(net, rank)
    net.train()
    if rank == 0:
        for a in val:
            net(a)
""",
)
program(
    "wrapped each step in callee",
    "TS409",
    True,
    w=_SPREAD,
    main="""import torch
from w import spread
def run(net, rank, data, optim):
    for a in data:
        m = spread(net, rank)
        optim.zero_grad()
        m(a).sum().backward()
        optim.step()
""",
)
_LOADERS = """from torch.utils.data import DataLoader, Subset
from torch.utils.data.distributed import DistributedSampler
def loaders(train, val):
    a = DataLoader(train, batch_size=8, %s)
    b = DataLoader(val, batch_size=8)
    return a, b
"""
_FIT_ON_LOADERS = """import torch
from ld import loaders
def fit(net, train, val, optim):
    first, second = loaders(train, val)
    for epoch in range(4):
        for a, b in first:
            optim.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(a), b)
            loss.backward()
            optim.step()
"""
program(
    "training loader in order via tuple",
    "TS234",
    True,
    ld=_LOADERS % "num_workers=2",
    main=_FIT_ON_LOADERS,
)
program(
    "shuffled", "TS234", False, ld=_LOADERS % "num_workers=2, shuffle=True", main=_FIT_ON_LOADERS
)
program(
    "val only", "TS234", False, ld=_LOADERS % "num_workers=2, shuffle=True", main=_FIT_ON_LOADERS
)
_BUILD = """from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
def build(train):
    s = DistributedSampler(train)
    return DataLoader(train, batch_size=8, sampler=s), s
"""
_RUN_WITH_SAMPLER = """import torch
from ld import build
class Run:
    def __init__(self, net, train, optim):
        self.net, self.optim = net, optim
        self.data, self.order = build(train)
    def go(self):
        for epoch in range(4):
            %s
            for a, b in self.data:
                self.optim.zero_grad()
                torch.nn.functional.cross_entropy(self.net(a), b).backward()
                self.optim.step()
"""
program("sampler returned to attribute", "TS404", True, ld=_BUILD, main=_RUN_WITH_SAMPLER % "pass")
program("told", "TS404", False, ld=_BUILD, main=_RUN_WITH_SAMPLER % "self.order.set_epoch(epoch)")
program(
    "told through loader",
    "TS404",
    False,
    ld=_BUILD,
    main=_RUN_WITH_SAMPLER % "self.data.sampler.set_epoch(epoch)",
)
program(
    "same batches on every rank",
    "TS419",
    True,
    ld="""import torch
from torch.utils.data import DataLoader
def build(train):
    return DataLoader(train, batch_size=8, shuffle=True, num_workers=2)
""",
    main="""import torch
from torch.nn.parallel import DistributedDataParallel as DDP
import torch.distributed as dist
from ld import build
def main(net, train, rank):
    torch.manual_seed(0)
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)
    net = DDP(net.cuda())
    optim = torch.optim.SGD(net.parameters(), 0.1)
    data = build(train)
    for epoch in range(4):
        for a, b in data:
            optim.zero_grad()
            torch.nn.functional.cross_entropy(net(a.cuda()), b.cuda()).backward()
            optim.step()
""",
)
program(
    "sampler class attr loader",
    "TS404",
    True,
    ld=_BUILD
    + """
class Data:
    def __init__(self, train):
        self.loader, self.sampler = build(train)
""",
    main="""import torch
from ld import Data
def go(net, train, optim):
    d = Data(train)
    for epoch in range(4):
        for a, b in d.loader:
            optim.zero_grad()
            torch.nn.functional.cross_entropy(net(a), b).backward()
            optim.step()
""",
)
program(
    "told",
    "TS404",
    False,
    ld=_BUILD
    + """
class Data:
    def __init__(self, train):
        self.loader, self.sampler = build(train)
""",
    main="""import torch
from ld import Data
def go(net, train, optim):
    d = Data(train)
    for epoch in range(4):
        d.sampler.set_epoch(epoch)
        for a, b in d.loader:
            optim.zero_grad()
            torch.nn.functional.cross_entropy(net(a), b).backward()
            optim.step()
""",
)

program(
    "a position beyond the end of a tuple", "TS407", False,
    main="""from torch.nn.parallel import DistributedDataParallel

def pick(model):
    return (model, model)[-9]

def run(net):
    model = pick(DistributedDataParallel(net))
    model.half()
    return model(1)
""",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_case(tmp_path: Path, case: Case) -> None:
    for name, text in case.files.items():
        (tmp_path / name).write_text(text, "utf-8")
    report = check(CheckOptions(paths=(str(tmp_path),), select=(case.rule,), no_cache=True))
    assert not report.gaps
    assert bool(report.findings) == case.fires
