"""Which classes of torch hold weights, behave differently in training, are losses, optimizers."""

from __future__ import annotations

import ast

from torchstone.sources.scene import Scene

WITH_WEIGHTS = frozenset(
    "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
    "EmbeddingBag GRU GRUCell LSTM LSTMCell RNN RNNCell LayerNorm GroupNorm RMSNorm BatchNorm1d "
    "BatchNorm2d BatchNorm3d SyncBatchNorm MultiheadAttention PReLU Transformer TransformerEncoder "
    "TransformerDecoder TransformerEncoderLayer TransformerDecoderLayer LazyLinear LazyConv1d "
    "LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d "
    "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d AdaptiveLogSoftmaxWithLoss".split()
)
"""Classes of torch.nn whose instances hold parameters by default."""

DROPOUTS = frozenset(
    "Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout RReLU".split()
)
"""Classes without weights that do something else in training than in evaluation."""

LOSSES = frozenset(
    "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss "
    "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss "
    "MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss SoftMarginLoss "
    "TripletMarginLoss TripletMarginWithDistanceLoss".split()
)
OPTIMIZERS = (
    "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop",
    "ASGD", "LBFGS", "SparseAdam", "Adafactor", "Muon",
)  # fmt: skip
"""Classes of torch.optim."""

CONTAINERS = frozenset(("Sequential", "ModuleList", "ModuleDict"))


def nn_class(scene: Scene, node: ast.AST | None) -> str:
    """`Linear` for a name that stands for torch.nn.Linear, else ""."""
    full = scene.qualified(node)
    if not full.startswith("torch.nn."):
        return ""
    name = full.rpartition(".")[2]
    home = full.removesuffix(f".{name}")
    return name if home == "torch.nn" or home.startswith("torch.nn.modules") else ""


def is_parameter(scene: Scene, node: ast.AST | None) -> bool:
    """Whether a name stands for torch.nn.Parameter."""
    return scene.qualified(node) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter")


def holds_weights(scene: Scene, node: ast.AST | None, depth: int = 3) -> bool:
    """Whether an expression makes a module whose weights (or mode) must be registered."""
    if not isinstance(node, ast.Call):
        return False
    name = nn_class(scene, node.func)
    if name in WITH_WEIGHTS or name in DROPOUTS:
        return True
    if name in CONTAINERS and depth:
        inner: list[ast.expr] = []
        for item in node.args:
            item = item.value if isinstance(item, ast.Starred) else item
            inner += item.elts if isinstance(item, (ast.List, ast.Tuple)) else [item]
            if isinstance(item, (ast.ListComp, ast.GeneratorExp)):
                inner.append(item.elt)
        return any(holds_weights(scene, item, depth - 1) for item in inner)
    if name:
        return False
    found = scene.project.class_named(scene, node.func, scene.qualified(node.func))
    return found is not None and _class_holds_weights(found[0], found[1], depth)


def _class_holds_weights(scene: Scene, owner: ast.ClassDef, depth: int) -> bool:
    """Whether a Module class of the project makes weights in its own body."""
    if not depth or not scene.is_module_class(owner):
        return False
    return any(
        isinstance(item, ast.Call)
        and (is_parameter(scene, item.func) or holds_weights(scene, item, depth - 1))
        for item in scene.inside(owner)
    )
