"""Names that newer versions of common packages no longer have, with what does the same today."""

from __future__ import annotations

SUCCESSORS = {
    ("numpy", "float"): "builtins:float",
    ("numpy", "int"): "builtins:int",
    ("numpy", "bool"): "builtins:bool",
    ("numpy", "object"): "builtins:object",
    ("numpy", "str"): "builtins:str",
    ("numpy", "complex"): "builtins:complex",
    ("numpy", "long"): "builtins:int",
    ("numpy", "float_"): "numpy:float64",
    ("numpy", "Inf"): "numpy:inf",
    ("numpy", "Infinity"): "numpy:inf",
    ("numpy", "NaN"): "numpy:nan",
    ("numpy", "NAN"): "numpy:nan",
    ("numpy", "product"): "numpy:prod",
    ("numpy", "alltrue"): "numpy:all",
    ("numpy", "in1d"): "numpy:isin",
    ("numpy", "trapz"): "numpy:trapezoid",
    ("numpy", "row_stack"): "numpy:vstack",
    ("numpy", "bool8"): "numpy:bool_",
    ("numpy", "int0"): "numpy:intp",
    ("numpy", "uint0"): "numpy:uintp",
    ("numpy", "object0"): "numpy:object_",
    ("numpy", "str0"): "numpy:str_",
    ("numpy", "bytes0"): "numpy:bytes_",
    ("numpy", "void0"): "numpy:void",
    ("numpy", "cumproduct"): "numpy:cumprod",
    ("numpy", "sometrue"): "numpy:any",
    ("numpy", "msort"): "numpy:sort",
    ("numpy", "round_"): "numpy:round",
    ("numpy", "mat"): "numpy:asmatrix",
    ("numpy", "asfarray"): "numpy:asarray",
    ("numpy", "complex_"): "numpy:complex128",
    ("numpy", "longfloat"): "numpy:longdouble",
    ("numpy", "singlecomplex"): "numpy:complex64",
    ("numpy", "cfloat"): "numpy:complex128",
    ("numpy", "longcomplex"): "numpy:clongdouble",
    ("numpy", "clongfloat"): "numpy:clongdouble",
    ("numpy", "string_"): "numpy:bytes_",
    ("numpy", "unicode_"): "numpy:str_",
    ("numpy", "infty"): "numpy:inf",
    ("numpy", "PINF"): "numpy:inf",
    ("numpy", "issubsctype"): "numpy:issubdtype",
    ("numpy", "find_common_type"): "numpy:result_type",
    ("collections", "Iterable"): "collections.abc:Iterable",
    ("collections", "Mapping"): "collections.abc:Mapping",
    ("collections", "Sequence"): "collections.abc:Sequence",
    ("collections", "Callable"): "collections.abc:Callable",
    ("transformers", "AdamW"): "torch.optim:AdamW",
    ("transformers.optimization", "AdamW"): "torch.optim:AdamW",
    (
        "transformers",
        "default_data_collator",
    ): "transformers.data.data_collator:default_data_collator",
    ("pytorch_lightning.loggers", "TestTubeLogger"): "pytorch_lightning.loggers:CSVLogger",
    (
        "pytorch_lightning.utilities.distributed",
        "rank_zero_only",
    ): "pytorch_lightning.utilities:rank_zero_only",
    ("pytorch_lightning.utilities.seed", "seed_everything"): "pytorch_lightning:seed_everything",
    ("pytorch_lightning.plugins", "DDPPlugin"): "pytorch_lightning.strategies:DDPStrategy",
    ("torch", "_six"): "torchstone.starting.replacements.torch_six:",
    ("torchvision.transforms", "Scale"): "torchvision.transforms:Resize",
    ("torchvision.transforms", "RandomSizedCrop"): "torchvision.transforms:RandomResizedCrop",
    ("PIL.Image", "ANTIALIAS"): "PIL.Image:LANCZOS",
    ("sklearn.externals", "joblib"): "joblib:",
}
"""By module and name: `module:name` of the successor, `module:` for a whole module; empty where
there is none."""


def successor_of(module: str, name: str) -> str:
    """`module:name` of what to use instead; empty where nothing is known."""
    while module:
        if known := SUCCESSORS.get((module, name)):
            return known
        module = module.rpartition(".")[0]  # a part of a package whose own names it also gives
    return ""
