"""Dry runs: torch's own wrong calls, and the suites of faulty distributed programs."""

from __future__ import annotations

import warnings
from collections import Counter

VALUES = (
    "is out of bounds for dimension",
    "cannot be negative",
    "probabilit",
    "multinomial distribution",
)
"""Words of refusals that depend on the values of tensors, which a dry run does not have."""


def wrong_calls() -> tuple[Counter[str], list[str], list[str]]:
    """Counts; refusals that were missed; calls that only a dry run refuses."""
    import torch
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.utils._pytree import tree_map_only

    from torchstone.dryrun.script.fakes.answers import Answers
    from torchstone.dryrun.script.fakes.lazy import make_fake, make_mode
    from torchstone.dryrun.session import Session
    from torchstone.dryrun.settings import ScriptSettings
    from torchstone.dryrun.world import quiet_torch

    quiet_torch()
    warnings.simplefilter("ignore")
    session = Session(ScriptSettings(), make_mode())
    counts: Counter[str] = Counter()
    missed: list[str] = []
    false: list[str] = []

    def refuses(op: object, sample: object, fake: bool) -> str:
        arguments = (sample.input, sample.args, sample.kwargs)  # type: ignore[attr-defined]
        if fake:
            arguments = tree_map_only(
                torch.Tensor, lambda item: make_fake(session.mode, item), arguments
            )
        first, args, kwargs = arguments
        try:
            if fake:
                with Answers(session):
                    op(first, *args, **kwargs)  # type: ignore[operator]
            else:
                op(first, *args, **kwargs)  # type: ignore[operator]
        except Exception as error:
            return (
                f"{type(error).__name__}: {str(error).splitlines()[0][:70] if str(error) else ''}"
            )
        return ""

    for op in op_db:
        if op.error_inputs_func is not None:
            for item in op.error_inputs("cpu"):
                said = refuses(op, item.sample_input, False)
                if not said:
                    continue
                kind = "value" if any(word in said for word in VALUES) else "shape"
                counts[f"{kind} refused by eager"] += 1
                if refuses(op, item.sample_input, True):
                    counts[f"{kind} refused by dryrun"] += 1
                else:
                    missed.append(f"{op.name}: {said}")
        if torch.float32 in op.dtypes:
            sample = next(iter(op.sample_inputs("cpu", torch.float32)), None)
            if sample is not None and not refuses(op, sample, False):
                counts["accepted by eager"] += 1
                said = refuses(op, sample, True)
                if said:
                    false.append(f"{op.name}: {said}")
                else:
                    counts["accepted by dryrun"] += 1
    return counts, missed, false


def run() -> str:
    counts, missed, false = wrong_calls()
    total, found = counts["shape refused by eager"], counts["shape refused by dryrun"]
    lines = [
        "## Dry runs", "",
        f"torch's own wrong calls that depend on shape, dtype or arguments: {found} of {total} refused "
        f"({100 * found / max(1, total):.1f} %); on values: {counts['value refused by dryrun']} of "
        f"{counts['value refused by eager']}. Right calls: {counts['accepted by dryrun']} of "
        f"{counts['accepted by eager']} accepted.", "",
        "Missed: " + "; ".join(f"`{item}`" for item in missed), "",
        "Refused by the dry run alone: " + ("; ".join(f"`{item}`" for item in false) or "none"), "",
        "Faulty distributed programs: `python benchmarks/ranks_suite.py tuned` and `held_out`.",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    print(run())
