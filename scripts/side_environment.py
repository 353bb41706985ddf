"""Makes an environment that has everything of this one and some packages more.

python scripts/side_environment.py .venv-timm [--no-deps] timm torchvision

It is for packages that would break this environment or that only a benchmark needs. Nothing heavy
is installed twice: the new environment sees the packages of this one, its own come first. Versions
are those of constraints.txt where the package is given without one. A second call does nothing until a version or this file changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def make(folder: Path, packages: list[str], options: list[str]) -> Path:
    """The environment's Python."""
    python = folder / "bin" / "python"
    stamp = folder / "made-of"
    wanted = _fingerprint(packages, options)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two test processes may want it at once
        if not stamp.exists() or stamp.read_text("utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _fill(folder, python, packages, options)
            stamp.write_text(wanted, "utf-8")
    return python


def _fill(folder: Path, python: Path, packages: list[str], options: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    ours = sysconfig.get_path("purelib")
    theirs = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    # not just its path: the .pth files in it (that of torchstone) are to be read too
    (theirs / "parent.pth").write_text(f"import site; site.addsitedir({ours!r})\n", "utf-8")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    constraints = folder / "constraints.txt"
    constraints.write_text(_constraints(packages), "utf-8")
    subprocess.run(
        [*pip, "install", "-qq", "-c", str(constraints), *options, *packages],
        check=True,
        stdout=sys.stderr,
    )


def _constraints(packages: list[str]) -> str:
    """Without those of packages whose version is given."""
    given = {name.partition("==")[0].lower() for name in packages if "==" in name}
    lines = CONSTRAINTS.read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if line.partition("==")[0].strip().lower() not in given)


def _fingerprint(packages: list[str], options: list[str]) -> str:
    parts = [sys.executable, *packages, *options]
    text = "\n".join(parts).encode() + CONSTRAINTS.read_bytes() + Path(__file__).read_bytes()
    return hashlib.sha256(text).hexdigest()


def main(words: list[str]) -> int:
    options = [word for word in words if word.startswith("-")]
    names = [word for word in words if not word.startswith("-")]
    if len(names) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder, *packages = names
    try:
        print(make((ROOT / folder).absolute(), packages, options))
    except subprocess.CalledProcessError as error:
        command = " ".join(map(str, error.cmd))
        print(f"side_environment: {folder} was not made: `{command}` failed", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
