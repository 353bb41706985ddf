"""Write the public names of the installed torch, with the arguments that each takes.

    python scripts/list_torch_names.py > 2.13.names          # once for each release, in its environment
    python scripts/list_torch_names.py --merge *.names > src/torchstone/lint/knowledge/torch_names.txt

One line for each name under the line of its module: `name(a,b,c;2) 2.3-2.9`. The number is how many
arguments go by position (`*`: any); `**` takes any keyword. A range of releases stands where not
every release that was read has the name.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from pathlib import Path

MODULES = """torch torch.Tensor torch.nn torch.nn.Module torch.nn.functional torch.nn.init torch.nn.utils
torch.nn.parallel torch.nn.utils.rnn torch.nn.utils.parametrizations torch.optim torch.optim.lr_scheduler
torch.optim.swa_utils torch.utils.data torch.utils.data.distributed torch.utils.checkpoint torch.distributed
torch.cuda torch.cuda.amp torch.amp torch.autograd torch.autograd.Function torch.linalg torch.fft torch.special
torch.distributions torch.backends.cudnn torch.backends.cuda torch.random torch.jit torch.hub
torch.multiprocessing torch.profiler""".split()
Signature = tuple[tuple[str, ...], str]


def main() -> None:
    if sys.argv[1:2] == ["--merge"]:
        print("\n".join(merged([Path(name) for name in sys.argv[2:]])))
    else:
        print("\n".join(listed()))


def listed() -> list[str]:
    import torch

    folder = Path(torch.__file__).parent / "_C"
    methods = read_stubs(folder / "__init__.pyi", "TensorBase")
    written = {
        "torch": read_stubs(folder / "_VariableFunctions.pyi"),
        "torch.nn.functional": read_stubs(folder / "_nn.pyi"),
        "torch.Tensor": methods or read_stubs(folder / "__init__.pyi", "_TensorBase"),
    }
    lines = [f"# {torch.__version__.partition('+')[0]}"]
    for module in MODULES:
        home = resolve(module)
        lines.append(f"[{module}]")
        names = set(dir(home)) | set(dir(type(home)))  # some modules have properties
        if inspect.ismodule(home) and hasattr(home, "__path__"):
            names |= {item.name for item in pkgutil.iter_modules(home.__path__)}
        for name in sorted(name for name in names if not name.startswith("_")):
            thing = getattr(home, name, None)
            found = signature_of(thing, inspect.isclass(home), written.get(module, {}), name)
            lines.append(name + shown(found))
    return lines


def resolve(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, last = name.rpartition(".")
        return getattr(resolve(module), last)


def signature_of(
    thing: object, is_method: bool, stubs: dict[str, Signature], name: str
) -> Signature | None:
    if not callable(thing):
        return None
    try:
        rows = list(inspect.signature(thing).parameters.values())
    except (ValueError, TypeError):
        return None if inspect.isclass(thing) else stubs.get(name)
    if is_method and rows and rows[0].name in ("self", "cls"):
        rows = rows[1:]
    kinds = [row.kind for row in rows]
    names = tuple(r.name for r in rows if r.kind not in (r.VAR_POSITIONAL, r.VAR_KEYWORD))
    if inspect.Parameter.VAR_KEYWORD in kinds:
        names = (*names, "**")
    by_place = sum(r.kind in (r.POSITIONAL_ONLY, r.POSITIONAL_OR_KEYWORD) for r in rows)
    return names, "*" if inspect.Parameter.VAR_POSITIONAL in kinds else str(by_place)


def read_stubs(file: Path, owner: str = "") -> dict[str, Signature]:
    """Functions that are written in C++: all overloads of one name together."""
    body = ast.parse(file.read_text()).body
    if owner:
        body = [row for item in body if getattr(item, "name", "") == owner for row in item.body]  # type: ignore[attr-defined]
    found: dict[str, Signature] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            found[node.name] = joined(found.get(node.name), of_stub(node, bool(owner)))
    return found


def of_stub(node: ast.FunctionDef, is_method: bool) -> Signature:
    """What one overload takes; a size may be given as several numbers."""
    rows = [row.arg for row in (*node.args.posonlyargs, *node.args.args)]
    rows = rows[1:] if is_method and rows[:1] == ["self"] else rows
    sizes = ("_size", "Sequence", "SymInt", "_int, ...", "TensorOrTensors", "Tuple", "List")
    notes = [ast.unparse(row.annotation) for row in node.args.args if row.annotation]
    several = node.args.vararg or any(word in note for note in notes for word in sizes)
    names = [*rows, *(row.arg for row in node.args.kwonlyargs)]
    if node.args.kwarg:
        names.append("**")
    return tuple(names), "*" if several else str(len(rows))


def joined(one: Signature | None, other: Signature | None) -> Signature:
    if one is None or other is None:
        found = one or other
        assert found is not None
        return found
    names = tuple(dict.fromkeys((*one[0], *other[0])))
    return names, "*" if "*" in (one[1], other[1]) else str(max(int(one[1]), int(other[1])))


def shown(signature: Signature | None) -> str:
    return "" if signature is None else f"({','.join(signature[0])};{signature[1]})"


def merged(files: list[Path]) -> list[str]:
    releases: list[str] = []
    having: dict[tuple[str, str], list[str]] = defaultdict(list)
    signatures: dict[tuple[str, str], Signature | None] = {}
    for file in sorted(files, key=lambda path: [int(part) for part in path.stem.split(".")]):
        module = ""
        for line in file.read_text().splitlines():
            if line.startswith("#"):
                releases.append(".".join(line[2:].split(".")[:2]))
            elif line.startswith("["):
                module = line[1:-1]
            else:
                match = re.fullmatch(r"(\w+)(?:\((.*);(.*)\))?", line)
                assert match is not None, line
                key = (module, match[1])
                own = (tuple(match[2].split(",")), match[3]) if match[3] else None
                known = signatures.get(key, own)
                signatures[key] = joined(known, own) if known and own else None
                having[key].append(releases[-1])
    lines = [f"# {' '.join(releases)}"]
    last = ""
    for (module, name), rows in sorted(having.items()):
        if module != last:
            lines.append(f"[{module}]")
            last = module
        span = "" if len(rows) == len(releases) else f" {rows[0]}-{rows[-1]}"
        lines.append(name + shown(signatures[module, name]) + span)
    return lines


if __name__ == "__main__":
    main()
