"""What one file holds: the name of a maker with its settings, from the file's name and from the code that
reads it."""

from __future__ import annotations

import ast
import re
from pathlib import PurePath

from torchstone.starting.files.makers import TOKENS
from torchstone.starting.files.reading import Reading, name_of

IMAGES = frozenset((".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".ppm", ".webp", ".gif"))
SOUNDS = frozenset((".wav", ".flac", ".mp3", ".ogg"))
_CHECKPOINTS = frozenset(
    (".pth", ".pt", ".ckpt", ".tar", ".pkl", ".weights", ".bin", ".model", ".th")
)
_TABLES = {".csv": "", ".tsv": "tab", ".rating": "tab"}
_DTYPES: dict[str, str] = {
    "uint16": "<u2", "int64": "<i8", "int32": "<i4", "float32": "<f4", "float64": "<f8", "uint8": "|u1",
    "int": "<i8",
}  # fmt: skip
_PATTERN = re.compile(
    r"\*{0,2}/?\*?(\.(?:png|jpe?g|bmp|tiff?|ppm|webp|wav|flac|mp3|npy|npz|txt|json|pt))\b", re.I
)
_OF_IMAGES = (
    "Image",
    "imread",
    "ImageFolder",
    "cv2",
    "imageio",
    "transforms",
    "default_loader",
    "pil_loader",
)
_OF_SOUNDS = (
    "torchaudio",
    "librosa",
    "soundfile",
    "wavfile",
    "load_wav_to_torch",
    "load_wav",
    "load_audio",
)
_OF_MASKS = re.compile(
    r"(^|[/_.-])(masks?|seg\w*|labels?|annotations?|gt|ground_?truth|targets?)([/_.-]|$)", re.I
)


def form_of_file(path: str, suffix: str, reading: Reading) -> str:
    """The name of a maker with its settings; empty where the form is not known."""
    if suffix in IMAGES:
        return "image:mask" if _OF_MASKS.search(path) and suffix == ".png" else "image"
    if suffix in SOUNDS:
        return "sound"
    if suffix in _CHECKPOINTS and reading.mentions(
        "torch.load", "load_state_dict", "load_checkpoint"
    ):
        return "checkpoint"
    if suffix in _TABLES or reading.reads_with("read_csv", "read_table"):
        return f"table:{_table(_TABLES.get(suffix, ''), reading)}"
    if suffix in (".npy", ".npz"):
        return _array(path, suffix, reading)
    if suffix in (".h5", ".hdf5", ".mat"):
        return "groups"
    if suffix == ".bin" or reading.reads_with("memmap", "fromfile"):
        return f"tokens:{_dtype(('memmap', 'fromfile'), reading) or '<u2'}"
    if suffix in (".json", ".jsonl"):
        return f"{'lines' if suffix == '.jsonl' else 'json'}:{suffix_of(reading)}"
    if suffix in (".pkl", ".pickle", ".p"):
        return f"pickle:{suffix_of(reading)}"
    if suffix in (".zip", ".gz", ".tgz", ".7z", ".rar", ".py", ".yaml", ".yml", ".cfg", ".sh"):
        return ""
    return _lines(reading)


def suffix_of(reading: Reading) -> str:
    """Of the files of a folder: as the code writes it, else by what it reads them with."""
    found = [str(item).lower() for item in _PATTERN.findall(reading.text)]
    if found and not (reading.mentions(*_OF_IMAGES) and found[0] not in IMAGES):
        return found[0]
    if reading.mentions(*_OF_SOUNDS):
        return ".wav"
    if reading.mentions("np.load", "numpy.load") and not reading.mentions("Image", "imread"):
        return ".npy"
    if not reading.mentions(*_OF_IMAGES) and any(True for _ in reading.calls("load", "memmap")):
        whole = "\n".join(map(ast.unparse, reading.files))
        return (
            ".npy" if "np.load" in whole and not re.search(r"\bImage\b|imread", whole) else ".png"
        )
    return ".png"


def _table(separator: str, reading: Reading) -> str:
    """`separator|column|...`: what `read_csv` is told, and the columns that are named later."""
    for call in reading.calls("read_csv", "read_table"):
        given = {item.arg: item.value for item in call.keywords}
        named = given.get("sep") or given.get("delimiter")
        if isinstance(named, ast.Constant):
            separator = {"\t": "tab", " ": "space", ",": "", r"\s+": "space"}.get(str(named.value), str(named.value)[:1])  # fmt: skip
        if isinstance(names := given.get("names"), (ast.List, ast.Tuple)):
            return "|".join((separator, *(f"!#{_text(item)}" for item in names.elts)))
        header = given.get("header")
        if isinstance(header, ast.Constant) and header.value is None:
            return "|".join((separator, *(f"!#c{place}" for place in range(_width(reading)))))
        columns = reading.subscripts()
        return "|".join((separator, *(columns or ("a", "b", "c"))))
    for call in reading.calls("DictReader"):
        del call
        return "|".join((separator, *(reading.subscripts() or ("a", "b"))))
    if _fields(reading):  # `csv.reader`, or lines that are split
        return "|".join((separator, "filename", "label"))
    columns = reading.subscripts()
    return "|".join((separator, *(columns or ("filename", "label"))))


def _width(reading: Reading) -> int:
    """Columns that are used by number."""
    found = [0]
    for tree in reading.near:
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript):
                parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
                last = parts[-1]
                if isinstance(last, ast.Constant) and isinstance(last.value, int):
                    found.append(last.value + 1)
    return min(max(*found, 2), 64)


def _array(path: str, suffix: str, reading: Reading) -> str:
    """One array, or several by name."""
    if suffix == ".npz":
        keys = [key for key in reading.subscripts() if key.isidentifier()] or ["arr_0"]
        return "arrays:" + ";".join(f"{key}={_shape(key, reading)}" for key in keys)
    return f"array:{_shape(PurePath(path).stem, reading)}"


def _shape(name: str, reading: Reading) -> str:
    if re.search(r"tok|corpus|text|vocab|shard", name, re.I) or reading.mentions(
        "tokens", "token_ids", "block_size"
    ):
        return f"{_dtype(('load', 'astype'), reading) or '<i4'},{TOKENS}"
    if re.search(r"label|target|class|(^|_)y(_|$)", name, re.I):
        return "<i8,256"
    if re.search(r"ima?ge?|pix|frame", name, re.I) or reading.mentions(*_OF_IMAGES):
        return "|u1,256,32,32,3"
    return f"{_dtype(('load', 'astype'), reading) or '<f4'},256,8"


def _dtype(names: tuple[str, ...], reading: Reading) -> str:
    for call in reading.calls(*names):
        for item in (*call.args, *(word.value for word in call.keywords)):
            name = item.attr if isinstance(item, ast.Attribute) else ""
            if name in _DTYPES:
                return _DTYPES[name]
    return ""


def _lines(reading: Reading) -> str:
    """Lines of text: paths where files are opened by them, fields where they are split, else words."""
    if reading.reads_with("loadtxt", "genfromtxt"):
        return f"numbers:{_width(reading)}"
    named = {str(item).lower() for item in _PATTERN.findall(reading.text)} & (IMAGES | SOUNDS)
    names_files = named or reading.mentions(*_OF_IMAGES, *_OF_SOUNDS)
    fields = _fields(reading)
    if not names_files:
        numbers = fields and any(True for _ in reading.calls("int", "float"))
        return (
            f"fields:{fields[0]}|{'|'.join(['int'] * max(fields[1], 2))}"
            if numbers and fields
            else "text"
        )
    sound = reading.mentions(*_OF_SOUNDS)
    first = "path" + (".wav" if sound else suffix_of(reading))
    if not fields:
        return f"fields:|{first}"
    others = "words" if sound else "int"
    return f"fields:{fields[0]}|{'|'.join([first, *[others] * (max(fields[1], 2) - 1)])}"


def _fields(reading: Reading) -> tuple[str, int] | None:
    """The separator by which lines are split, and how many parts are used."""
    inside = reading.reads_with(
        "split", "rsplit"
    )  # else the line is taken as a whole, as far as is known
    for tree in reading.near if inside else ():
        for node in ast.walk(tree):
            call = node.value if isinstance(node, (ast.Assign, ast.Subscript)) else None
            if not (isinstance(call, ast.Call) and name_of(call.func) in ("split", "rsplit")):
                continue
            separator = (
                call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
            )
            if separator in ("/", "\n", ".", "\\", "_"):
                continue
            count = 2
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                count = len(node.targets[0].elts)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                count = int(node.slice.value) + 1 if isinstance(node.slice.value, int) else 2
            return {"\t": "tab", ",": "", "": "space", " ": "space"}.get(
                str(separator), str(separator)
            ), count
    return None


def _text(node: ast.expr) -> str:
    return str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
