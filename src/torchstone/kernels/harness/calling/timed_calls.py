"""Calls that are timed from outside: inputs come with the message, answers go back with the reply.

The same code runs in the candidate's process and in the referee's, so that what it costs to read and
to write the messages is the same for both and can be taken off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchstone.kernels.harness.inputs.cases import structure_of
from torchstone.kernels.harness.reference.running import leaves_of
from torchstone.kernels.harness.values import decode, encode, plain_place


def answered(header: dict[str, Any], buffers: list[bytes], call: Callable[..., Any]) -> Any:
    """One reply to several inputs: the answers, and the number by which the message is known."""
    data: list[bytes] = []
    answers = []
    with torch.no_grad():
        for item in header["cases"]:
            found = call(*decode(item["tree"], buffers[item["start"] :], plain_place))
            own: list[bytes] = []
            leaves = [encode(leaf, own) for leaf in leaves_of(found)]
            tree = {"structure": structure_of(found), "leaves": leaves}
            answers.append({"tree": tree, "start": len(data), "count": len(own)})
            data += own
    return {"answers": answers, "number": header["number"]}, data
