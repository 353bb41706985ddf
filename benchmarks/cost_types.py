"""Every model type of transformers: is it counted, and is it said when a part of it never ran?

What ran is judged apart from `cost`: a plain forward on the meta device, with every parameter that
reaches an operator noted. `python benchmarks/cost_types.py [TYPE ...]`
"""

from __future__ import annotations

import multiprocessing
import sys
from dataclasses import dataclass
from typing import Any

_SECONDS = 120
_SMALL = 0.01
"""Share of the parameters below which an unused part is no tower: an unused bias, a pooler's scale."""


@dataclass(frozen=True)
class Seen:
    """One type: the share of parameters that reached no operator, and the share that `cost` tells."""

    name: str
    unused: float = 0.0
    told: float = 0.0
    failure: str = ""


def look_at(name: str) -> Seen:
    import torch

    from torchstone.cost.options import CostOptions
    from torchstone.cost.prepared import InputMaker, prepared
    from torchstone.cost.records.idle import idle_parts
    from torchstone.cost.survey import _measured
    from torchstone.runtime.targets import build_target

    options = CostOptions(target=f"hf:{name}")
    target = build_target(options.target)
    model = prepared(target, options)
    inputs = InputMaker(target, model, options)(1, None)
    report = _measured(model, inputs, options, None, 1, None)
    whole = max(report.cost.parameters(), 1)
    told = sum(idle_parts(report.cost).values()) / whole
    with torch.no_grad():
        # as `cost` counts it: in evaluation mode no layer is dropped at random
        unused = _unused(model.eval().to("meta"), inputs) / whole
    return Seen(name, unused, told)


def _unused(model: Any, inputs: Any) -> int:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Noted(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.storages: set[int] = set()

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            for item in torch.utils._pytree.tree_leaves((args, kwargs)):
                if isinstance(item, torch.Tensor):
                    self.storages.add(item.untyped_storage()._cdata)
            return func(*args, **(kwargs or {}))

    on_meta = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), inputs)
    held = {p.untyped_storage()._cdata: p.numel() for p in model.parameters()}
    with Noted() as noted:
        model(**on_meta) if isinstance(on_meta, dict) else model(*on_meta)
    return sum(count for storage, count in held.items() if storage not in noted.storages)


def _child(name: str, answers: Any) -> None:
    try:
        answers.put(look_at(name))
    except Exception as error:
        answers.put(Seen(name, failure=f"{type(error).__name__}: {error}".splitlines()[0][:150]))


def _looked_at(name: str) -> Seen:
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_child, args=(name, answers))
    process.start()
    try:
        return answers.get(timeout=_SECONDS)
    except Exception:
        return Seen(name, failure=f"no answer in {_SECONDS} s")
    finally:
        process.kill()
        process.join()


def main(names: list[str]) -> None:
    import torch
    import transformers

    from torchstone.cost import survey  # noqa: F401 - loaded once, before the forks

    torch.set_num_threads(1)
    rows = []
    for name in names or sorted(transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES):
        row = _looked_at(name)
        rows.append(row)
        print(f"{row.name}\t{row.unused:.4f}\t{row.told:.4f}\t{row.failure}", flush=True)
    counted = [row for row in rows if not row.failure]
    partial = [row for row in counted if row.unused > _SMALL]
    silent = [row.name for row in partial if row.told < 0.5 * row.unused]
    wrong = [row.name for row in counted if row.told > row.unused + _SMALL]
    print(f"{len(rows)} types, {len(counted)} counted by both; {len(partial)} with a part that never "
          f"ran, of which {len(partial) - len(silent)} are told; silent: {silent}; told wrongly: {wrong}")  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
