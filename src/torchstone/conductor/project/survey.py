"""From the files of a project to its facts: parsed, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from torchstone.conductor.project.copying import project_files
from torchstone.conductor.project.entry_points import find_entry_points
from torchstone.conductor.project.facts import (
    Feature,
    GitState,
    ProjectFacts,
    Tests,
)  # fmt: skip
from torchstone.conductor.project.gathered import Gathered, relative
from torchstone.core.errors import InputError
from torchstone.core.files import read_regular
from torchstone.core.place import Place
from torchstone.sources.discover import File, discover
from torchstone.sources.git import git_state
from torchstone.sources.project import parse
from torchstone.sources.source import Source, decode
from torchstone.sources.versions import project_torch
from torchstone.starting.commands import is_script
from torchstone.starting.console_scripts import find_console_scripts
from torchstone.starting.documents import python_blocks, python_of

_MOST_PLACES = 12
"""Lines shown for one feature; the count is in the plan all the same."""
_FRAMEWORKS = ("accelerate", "deepspeed", "lightning", "megatron", "pytorch_lightning",
               "transformers", "torchtitan", "ray", "fairscale", "apex", "transformer_engine")  # fmt: skip
_LIBRARIES = ("cv2", "PIL", "numpy", "scipy", "librosa", "torchvision", "pandas", "jaxtyping")
# Identifiers of the code that show a feature; comments and texts are not looked at.
_PARALLEL = {
    "DDP": {"DistributedDataParallel", "DDP"},
    "FSDP": {"FullyShardedDataParallel", "FSDP", "fully_shard"},
    "TP": {"ColwiseParallel", "RowwiseParallel", "parallelize_module", "tp_size", "tp_group",
           "tensor_parallel_size", "ColumnParallelLinear", "RowParallelLinear", "tp_rank"},
    "PP": {"PipelineStage", "Schedule1F1B", "ScheduleGPipe", "pp_size", "pp_group",
           "pipeline_parallel_size", "pp_rank"},
    "EP": {"ep_size", "ep_group", "expert_parallel_size", "all_to_all_single", "all_to_all",
           "ep_rank", "ExpertParallel"},
    "collectives": {"all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter_tensor",
                    "broadcast", "barrier", "broadcast_object_list", "all_gather_object"},
    "process group": {"init_process_group", "init_device_mesh", "new_group"},
}  # fmt: skip
_PRECISION = {
    "autocast": {"autocast"},
    "scaler": {"GradScaler"},
    "half": {"half", "float16", "bfloat16"},
    "fp8": {"fp8_autocast", "float8_e4m3fn", "float8_e5m2", "Float8Linear"},
}
_COMPONENTS = {
    "MLA": {"kv_lora_rank", "q_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "kv_latent",
            "latent_dim", "kv_a_proj", "kv_down", "kv_up", "absorb", "MultiLatentAttention",
            "MultiHeadLatentAttention", "MLA", "MLAttention", "kv_down_proj", "kv_up_proj",
            "d_latent", "w_uk", "w_uv", "w_dkv", "latent_cache", "compressed_kv", "kv_rank"},
    "MoE": {"experts", "n_experts", "num_experts", "top_k", "topk", "router", "gate_logits",
            "router_logits", "MoE", "MoELayer", "capacity_factor", "aux_loss", "TopKRouter",
            "load_balance_loss", "expert_capacity", "z_loss"},
}  # fmt: skip
_ENOUGH = {"MLA": 2, "MoE": 3}
"""Distinct names: `latent_dim` alone is also an autoencoder's, `top_k` a sampler's."""
_TOGETHER = {"MLA": ("nope", "rope")}
"""Parts of names that no other component has together, whatever the names: a head of rotated and
unrotated parts."""
_STARTS = re.compile(r"^(?:train|fit|run|learn)|train(?:er|ing)?$|_loop$", re.I)
_TRAINERS = {"Trainer", "fit", "SFTTrainer", "Seq2SeqTrainer", "Accelerator", "LightningCLI"}
"""Names of what trains on behalf of a script that has no backward of its own."""
_OPTIMIZERS = {"step", "optim", "optimizer", "Adam", "AdamW", "SGD", "configure_optimizers"}
"""A backward pass without any of these makes no step."""
_CALLED = {"fit", "train", "learn", "main", "run", "cli_main", "app"}
_README_BYTES = 1 << 20
_LAUNCHED = {"$RANK", "$WORLD_SIZE", "$LOCAL_RANK", "init_process_group"}
"""A variable of the environment, or the call: a field of a configuration may be called `RANK`, too."""


def survey(root: Path) -> ProjectFacts:
    """Read every file of the project once."""
    files, _ = discover([str(root)])
    found = Gathered()
    for file in (*files, *_bare_scripts(root)):
        _read_file(file, root, found)
    _note_examples(root, found)
    for script in find_console_scripts(root):
        found.entries.setdefault(script.path, (script.path in found.training, False))
    return ProjectFacts(
        name=root.resolve().name,
        files=len(files),
        lines=found.lines,
        torch=_torch(root),
        frameworks=tuple(sorted(found.frameworks)),
        libraries=tuple(sorted(found.libraries)),
        entry_points=find_entry_points(root, found),
        models=tuple(found.models),
        training_loops=tuple(found.loops),
        parallel=_features(_PARALLEL, found),
        precision=_features(_PRECISION, found),
        components=_features(_COMPONENTS, found),
        data=tuple(found.data),
        tests=Tests(tuple(found.tests), sum(found.tests.values())),
        buildable=tuple(sorted(found.buildable)),
        checkpoints=tuple(_checkpoints(root)),
        git=_git(root),
        unread=tuple(found.unread),
    )


def _torch(root: Path) -> str:
    version = project_torch(root)
    return f"{version[0]}.{version[1]}" if version else ""


def _git(root: Path) -> GitState | None:
    try:
        commit, dirty = git_state(root)
    except InputError:
        return None
    return GitState(commit, dirty)


def _read_file(file: File, root: Path, found: Gathered) -> None:
    name = relative(file.path, root)
    data = file.read()
    text = decode(data, file.name) if isinstance(data, bytes) else data
    if name.endswith(".ipynb"):
        if isinstance(text, str):
            _note_document(name, text, found)
        return
    tree = parse(Source(file.name, text)) if isinstance(text, str) else text
    if not isinstance(text, str) or not isinstance(tree, ast.Module):
        found.unread.append(name)
        return
    found.lines += text.count("\n") + 1
    _note_tree(tree, name, found)
    count = sum(isinstance(item, ast.FunctionDef) and item.name.startswith("test")
                for item in ast.walk(tree))  # fmt: skip
    stem = Path(name).name
    if count and (stem.startswith("test_") or stem.endswith("_test.py")):
        found.tests[name] = count


def _bare_scripts(root: Path) -> Iterator[File]:
    """Files without a suffix that say in their first line that they are Python."""
    for path in project_files(root):
        if not path.suffix and is_script(path):
            yield File(path, path.as_posix())


def _note_examples(root: Path, found: Gathered) -> None:
    """Blocks of Python in the README that train."""
    for path in sorted(root.glob("README*.md")):
        try:
            text = read_regular(path, _README_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        for line in python_blocks(text):
            _note_document(f"{relative(path, root)}#{line}", text, found)


def _note_document(name: str, text: str, found: Gathered) -> None:
    """A notebook or a block of a text is an entry point where running it from the top trains."""
    source = python_of(name, text)
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    words = {word for node in ast.walk(tree) for word in _words(node)}
    if words & {"backward", *_TRAINERS, *_CALLED} and _runs_at_once(tree):
        found.entries[name] = (bool(words & {"backward", *_TRAINERS, "train"}), False)


def _note_tree(tree: ast.Module, name: str, found: Gathered) -> None:
    backward, words = False, set()
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.ClassDef) and _is_module(node):
            found.models.append(Place(name, line, node.name))
            if _needs_nothing(node):
                found.buildable.add(node.name)
        elif isinstance(node, (ast.For, ast.While)) and _has_backward(node):
            found.loops.append(Place(name, line))
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.imports.setdefault(name, set()).update(_modules(node, name))
            for top in _tops(node):
                if top in _FRAMEWORKS:
                    found.frameworks.add(top)
                if top in _LIBRARIES:
                    found.libraries.add(top)
        for word in _words(node):
            words.add(word)
            found.names.setdefault(word, []).append(Place(name, line))
            backward = backward or word == "backward"
            if word == "DataLoader" and isinstance(node, ast.Name):
                found.data.append(Place(name, line))
    trains = (backward and bool(words & _OPTIMIZERS)) or bool(words & _TRAINERS)
    if trains:
        found.training.add(name)
    starts = any(map(_STARTS.search, words))
    launched = bool(words & _LAUNCHED)
    if any(map(_starts_work, tree.body)) or ((trains or starts) and _runs_at_once(tree)):
        found.entries[name] = (trains or "train" in Path(name).stem, launched)
    else:
        found.others[name] = (any(map(_does_work, tree.body)), launched)


def _words(node: ast.AST) -> Iterator[str]:
    """Identifiers of a node; of texts only those that name environment variables, after a `$`."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
        yield node.arg
    elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
        yield node.name
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.rpartition(".")[2]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if f"${node.value}" in _LAUNCHED:
            yield f"${node.value}"


def _is_module(node: ast.ClassDef) -> bool:
    bases = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
             for base in node.bases]  # fmt: skip
    has_forward = any(isinstance(item, ast.FunctionDef) and item.name == "forward"
                      for item in node.body)  # fmt: skip
    return "Module" in bases or has_forward


def _needs_nothing(node: ast.ClassDef) -> bool:
    """Whether every argument of its constructor has a default."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            arguments = item.args
            needed = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
            return needed <= 1 and None not in arguments.kw_defaults
    return True


def _checkpoints(root: Path) -> Iterator[str]:
    for path in project_files(root):
        if path.suffix in (".safetensors", ".gguf", ".npz", ".npy", ".pt", ".pth", ".bin"):
            yield relative(path, root)


def _has_backward(loop: ast.AST) -> bool:
    return any(
        isinstance(item, ast.Call)
        and isinstance(item.func, ast.Attribute)
        and item.func.attr == "backward"
        for item in ast.walk(loop)
    )


def _tops(node: ast.Import | ast.ImportFrom) -> Iterable[str]:
    names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
    return [(name or "").partition(".")[0] for name in names]


def _is_main_guard(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _starts_work(node: ast.stmt) -> bool:
    """A main part that does something: `pass` alone is none."""
    return _is_main_guard(node) and not all(
        isinstance(item, ast.Pass) for item in getattr(node, "body", ())
    )


def _does_work(node: ast.stmt) -> bool:
    """A statement of the top level that is more than a definition: a loop, a block, a call for its effect."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call)
    return isinstance(node, (ast.For, ast.While, ast.With, ast.Try))


def _runs_at_once(tree: ast.Module) -> bool:
    """Whether importing the file would train: its top level steps, or calls what may."""
    own = {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}

    def works(item: ast.AST) -> bool:
        if not isinstance(item, ast.Call):
            return False
        if isinstance(item.func, ast.Name):
            return item.func.id in own
        return isinstance(item.func, ast.Attribute) and item.func.attr in ("backward", *_CALLED)

    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return any(
        not isinstance(node, kinds) and not _is_main_guard(node) and any(map(works, ast.walk(node)))
        for node in tree.body
    )


def _features(table: dict[str, set[str]], found: Gathered) -> tuple[Feature, ...]:
    features: list[Feature] = []
    for name, words in table.items():
        seen = [word for word in sorted(words) if word in found.names]
        told = _named_with(_TOGETHER.get(name, ()), found)
        if len(seen) >= _ENOUGH.get(name, 1) or told:
            seen += told
            places = sorted(
                {place for word in seen for place in found.names[word]},
                key=lambda place: (place.path, place.line),
            )
            features.append(Feature(name, tuple(places[:_MOST_PLACES])))
    return tuple(features)


def _named_with(parts: tuple[str, ...], found: Gathered) -> list[str]:
    """The names that have one of these parts, where every part stands in some name."""
    named = {word: set(word.lower().split("_")) & set(parts) for word in found.names} if parts else {}  # fmt: skip
    if set().union(*named.values()) != set(parts):
        return []
    return sorted(word for word, has in named.items() if has)


def _modules(node: ast.Import | ast.ImportFrom, name: str) -> Iterator[str]:
    """The dotted names that an import may load; relative ones by the folder of the file."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    home = Path(name).parts[: -node.level] if node.level else ()
    base = ".".join((*home, *((node.module,) if node.module else ())))
    yield base
    yield from (f"{base}.{alias.name}".strip(".") for alias in node.names)
