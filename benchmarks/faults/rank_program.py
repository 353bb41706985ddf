"""One rank of a case of `faults.ranks`, started by torchrun: case, model, seed, folder of answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.models import KINDS
from faults.scene import Scene
from faults.score import cases, steps_of, watch

name, model, seed, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
case = next(item for item in cases("ranks") if item.name == name)
scene = Scene(model, seed)
source = KINDS[model].source(torch.Generator().manual_seed(1000 + seed + 7 * rank))
scene.batch = lambda: source(scene.batch_size)
scene.model = DistributedDataParallel(scene.model)
alarms, said = watch(scene, case, steps_of(case))
(folder / f"{rank}.json").write_text(json.dumps({"alarms": alarms, "said": said}))
dist.destroy_process_group()
