"""`dryrun` of a script for torchrun runs two ranks by itself, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchstone.cli.main import run
from torchstone.cli.torchrun import is_for_torchrun

DEADLOCK = """\
import torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 0:
    dist.all_reduce(torch.ones(1))
dist.barrier()
"""


@pytest.mark.parametrize(
    ("text", "recognised"),
    [
        (DEADLOCK, True),
        ("import os\nrank = int(os.environ['LOCAL_RANK'])\n", True),
        (
            (
                "from torch.distributed import init_process_group as start, init_process_group\n"
                "init_process_group('nccl', init_method='env://')\n"
            ),
            True,
        ),
        ("import torch\ntorch.nn.Linear(2, 2)\n", False),
        ("import os\nrank = int(os.environ.get('RANK', 0))\n", False),
        (
            "import os\nos.environ['RANK'] = '0'\nimport torch.distributed as d\nd.init_process_group('gloo')\n",
            False,
        ),
        (
            "import torch.distributed as d\nd.init_process_group('gloo', rank=0, world_size=1)\n",
            False,
        ),
        (
            "import torch.distributed as d\nd.init_process_group('gloo', init_method='file:///x')\n",
            False,
        ),
        (
            (
                "import torch.multiprocessing as mp\nimport torch.distributed as d\n"
                "def work(rank):\n    d.init_process_group('gloo')\nmp.spawn(work, nprocs=2)\n"
            ),
            False,
        ),
        (
            (
                "import os, torch.distributed as d\nddp = int(os.environ.get('RANK', -1)) != -1\n"
                "if ddp:\n    d.init_process_group('nccl')\n    local = int(os.environ['LOCAL_RANK'])\n"
            ),
            False,
        ),
        (
            (
                "import os, torch.distributed as d\nif 'RANK' in os.environ and 'WORLD_SIZE' in os.environ:\n"
                "    d.init_process_group('nccl')\n"
            ),
            False,
        ),
        (
            (
                "import os, torch.distributed as d\nlocal = int(os.environ.get('LOCAL_RANK', 0))\n"
                "d.init_process_group('nccl')\n"
            ),
            True,
        ),
        ("def broken(:\n", False),
    ],
)
def test_what_a_script_asks_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, recognised: bool
) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text(text, "utf-8")
    assert is_for_torchrun(str(tmp_path / "train.py")) is recognised
    (tmp_path / "start.py").write_text("import train\n", "utf-8")
    assert is_for_torchrun(str(tmp_path / "start.py")) is recognised, "by a file beside it"


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "en",
            (
                "ranks do not call the same collective",
                "2, because the script is started by torchrun",
            ),
        ),
        ("zh", ("各 rank 调用的集合通信不一致", "2，因为该脚本由 torchrun 启动")),
    ],
)
def test_is_my_ddp_script_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lang: str, words: tuple[str, ...]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(DEADLOCK, "utf-8")
    assert run(["dryrun", str(script), "--lang", lang]) == 1
    first_screen = "\n".join(capsys.readouterr().out.splitlines()[:12])
    assert all(word in first_screen for word in words)
