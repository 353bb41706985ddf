"""Recurrent layers: every weight matrix meets every time step of every sequence once.

Vector work per hidden unit and step, forward: LSTM 22 (4 gates x (2 additions of biases, 1 of
the two products, 1 activation) + 6 for cell and output), GRU 15 (3 gates x 4 + 3), plain RNN 4.
Backward costs twice the products and twice the vector work.
"""

# Every counter has the same three arguments; few need them all.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchstone.cost.counters import Count, Family
from torchstone.cost.counters._sizes import tensors

FAMILY = Family("recurrent")

LSTM, GRU, PLAIN = 22, 15, 4
_BY_GATES = {4: LSTM, 3: GRU, 1: PLAIN}


def _layers(given: Tensor, weights: list[Tensor], hidden: int) -> Count:
    """All layers and directions that these matrices make."""
    steps = given.numel() // max(given.shape[-1], 1)
    matrices = [weight for weight in weights if weight.dim() == 2]
    flops = 2 * steps * sum(weight.numel() for weight in matrices)
    # A layer and direction has one matrix for the input and one for the hidden state.
    gated = [weight for weight in matrices if weight.shape[0] % hidden == 0]
    vector = sum(_BY_GATES.get(weight.shape[0] // hidden, PLAIN) for weight in gated) // 2
    return Count(flops=flops, vector=steps * hidden * vector)


def _twice(count: Count) -> Count:
    return Count(flops=2 * count.flops, vector=2 * count.vector)


@FAMILY.counts("aten.mkldnn_rnn_layer")
def one_dnn(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _layers(args[0], [args[1], args[2]], args[10])


@FAMILY.counts("aten.mkldnn_rnn_layer_backward")
def one_dnn_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _twice(_layers(args[0], [args[1], args[2]], args[15]))


@FAMILY.counts("aten._cudnn_rnn")
def cudnn(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _layers(args[0], list(args[1]), args[7])


@FAMILY.counts("aten._cudnn_rnn_backward", "aten.miopen_rnn_backward")
def cudnn_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _twice(_layers(args[0], list(args[1]), args[11]))


@FAMILY.counts("aten.miopen_rnn")
def miopen(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _layers(args[0], list(args[1]), args[6])


@FAMILY.counts("aten.lstm")
def lstm(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _stack(args, gates=4)


@FAMILY.counts("aten.gru")
def gru(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _stack(args, gates=3)


@FAMILY.counts("aten.rnn_tanh", "aten.rnn_relu")
def plain(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _stack(args, gates=1)


def _stack(args: tuple[Any, ...], gates: int) -> Count:
    """Whole stacks, seen in inference mode: the matrices are in the list of parameters."""
    lists = [item for item in args if isinstance(item, (list, tuple))]
    matrices = [item for item in tensors(lists) if item.dim() == 2]
    return _layers(args[0], matrices, matrices[0].shape[0] // gates)


@FAMILY.counts("aten.lstm_cell", "aten.gru_cell", "aten.rnn_tanh_cell", "aten.rnn_relu_cell")
def cell(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return _layers(args[0], [args[2], args[3]], args[3].shape[1])


@FAMILY.counts("aten._thnn_fused_lstm_cell")
def lstm_gates(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=LSTM * args[2].numel())


@FAMILY.counts("aten._thnn_fused_lstm_cell_backward_impl", "aten._thnn_fused_lstm_cell_backward")
def lstm_gates_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=2 * LSTM * args[2].numel())


@FAMILY.counts("aten._thnn_fused_gru_cell")
def gru_gates(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=GRU * args[2].numel())


@FAMILY.counts("aten._thnn_fused_gru_cell_backward")
def gru_gates_backward(args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Count:
    return Count(vector=2 * GRU * args[0].numel())


def _run_lstm(device: str) -> None:
    layer = torch.nn.LSTM(6, 8, num_layers=2, bidirectional=True, device=device)
    layer(torch.empty(5, 3, 6, device=device))


_LSTM_FLOPS = 2 * (5 * 3) * 2 * ((32 * 6 + 32 * 8) + (32 * 16 + 32 * 8))
_LSTM_WORDS = (
    "15 steps x 2 directions; layer 1 has 32 x 6 and 32 x 8 weights, layer 2 32 x 16 and 32 x 8"
)
FAMILY.example(lambda: _run_lstm("meta"), flops=_LSTM_FLOPS, why=_LSTM_WORDS)
FAMILY.example(
    lambda: _run_lstm("cpu"), flops=_LSTM_FLOPS, why=_LSTM_WORDS + " (oneDNN's fused layer)"
)
FAMILY.example(
    lambda: torch.nn.GRUCell(4, 8, device="meta")(torch.empty(2, 4, device="meta")),
    flops=2 * 2 * (24 * 4 + 24 * 8),
    why="2 rows; 3 gates x 8 units from 4 inputs and from 8 hidden",
)
