"""A hostile candidate is contained: the walls hold without the static policy in front of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchstone.core.errors import UsageError
from torchstone.core.text import Text
from torchstone.kernels import Candidate, load_problem, verify
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.sessions.calls import Main
from torchstone.kernels.sessions.confinement import require_confinement
from torchstone.kernels.sessions.run import Run
from torchstone.kernels.sessions.workshop import Workshop
from torchstone.kernels.verdicts.verdict import LONGEST_FIELD, Verdict
from torchstone.sandbox import cell

FORM = """import ctypes, gc, os, signal, socket, subprocess, sys, threading, time
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        {body}
        return torch.relu(x)
"""
Attack = Callable[..., Main]


@pytest.fixture
def attack(workshop: Workshop) -> Attack:
    """Run a body of `forward` in the candidate's cell, whatever the policy would say of it."""

    def run(body: str, seconds: float = 20.0) -> Main:
        candidate = Candidate(FORM.format(body=body), "torch")
        run = Run(load_problem("relu"), candidate, workshop, seeds=2, timeout_seconds=seconds)
        try:
            return run.main
        finally:
            run.close()

    return run


def said(main: Main) -> str:
    """What became of the first call."""
    call = main.own[0]
    if call.ended is not None:
        return call.ended.reason
    return "" if call.error is None else f"{call.error.kind}: {call.error.text}"


def test_the_form_itself_is_right(attack: Attack) -> None:
    main = attack("pass")
    assert said(main) == ""
    assert main.families
    assert all(call.right for call in main.calls)


def test_never_ends(attack: Attack) -> None:
    start = time.monotonic()
    assert said(attack("while True: pass", seconds=1.5)) == "time is up"
    assert time.monotonic() - start < 15


def test_sleeps_and_ignores_signals(attack: Attack) -> None:
    body = "[signal.signal(s, signal.SIG_IGN) for s in (1, 2, 15)]; time.sleep(60)"
    assert said(attack(body, seconds=1.5)) == "time is up"


def test_eats_memory(attack: Attack) -> None:
    main = attack("keep = bytearray(1 << 40)")
    assert "ran out of memory" in main.limit.en
    assert "--memory" in main.limit.zh


@pytest.mark.parametrize(
    "body",
    ["os.fork()", "subprocess.run(['/bin/true'])", "os.execv('/bin/true', ['true'])",
     "os.posix_spawn('/bin/true', ['true'], {})"],
)  # fmt: skip
def test_starts_no_process(attack: Attack, body: str) -> None:
    assert said(attack(body)).startswith(("PermissionError", "OSError", "BlockingIOError"))


def test_reaches_no_network(attack: Attack) -> None:
    assert said(attack("socket.create_connection(('127.0.0.1', 9))")).startswith("PermissionError")


def test_kills_nobody(attack: Attack) -> None:
    assert said(attack(f"os.kill({os.getpid()}, 9)")).startswith("PermissionError")
    assert said(attack("os.kill(os.getppid(), 9)")).startswith("PermissionError")


def test_deletes_and_writes_nothing(attack: Attack, tmp_path: Path) -> None:
    kept = tmp_path / "kept.txt"
    kept.write_text("precious")
    for body in (
        f"os.unlink({str(kept)!r})",
        f"os.chmod({str(kept)!r}, 0)",
        f"os.rename({str(kept)!r}, 'mine')",
        f"open({str(tmp_path / 'new')!r}, 'w')",
        f"os.truncate({str(kept)!r}, 0)",
    ):
        assert said(attack(body)).startswith(("PermissionError", "OSError", "FileNotFoundError")), (
            body
        )
    assert kept.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]


def test_reads_neither_secrets_nor_the_problem(attack: Attack, tmp_path: Path) -> None:
    secret = tmp_path / "key"
    secret.write_text("sk-123")
    problem = Path(__file__).parents[2] / "src/torchstone/kernels/problems/relu.py"
    for path in (secret, problem, Path("/etc/passwd"), Path(f"/proc/{os.getpid()}/environ")):
        refused = ("PermissionError", "FileNotFoundError")
        assert said(attack(f"open({str(path)!r}).read()")).startswith(refused), path
    assert said(attack("import torchstone.kernels.problem")).startswith("ModuleNotFoundError")


def test_knows_nothing_of_the_machine(attack: Attack, tmp_path: Path) -> None:
    """Neither what lies where, nor its name, nor its keys, nor what is written on it."""
    paths = [str(tmp_path), "/etc/passwd", "/sys/devices", "/home", str(Path(__file__))]
    looked = (
        f"raise ValueError([os.path.exists(p) for p in {paths}], socket.gethostname(), "
        "[ctypes.CDLL(None).syscall(*call) for call in ((294, 0), (248, b'user', b'a', b'b', 1, -3))])"
    )
    found = said(attack(looked))
    assert found == f"ValueError: ({[False] * len(paths)}, 'localhost', [-1, -1])"


def test_what_an_exception_says_stays_in_the_cell_where_a_model_reads(workshop: Workshop) -> None:
    source = FORM.format(body="raise type('Secret', (ValueError,), {})('sk-123')")
    run = Run(load_problem("relu"), Candidate(source, "torch"), workshop, seeds=2,
              timeout_seconds=20, without_words=True)  # fmt: skip
    error = run.main.own[0].error
    run.close()
    assert error is not None
    assert (error.kind, error.text, error.line) == ("an exception of its own", "", 7)


def test_a_method_of_the_answers_own_is_not_asked(attack: Attack) -> None:
    body = "y = torch.zeros_like(x); y.detach = y.cpu = lambda: torch.relu(x); return y"
    assert not attack(body).own[0].right


def test_the_environment_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-123")
    candidate = Candidate(FORM.format(body="raise ValueError(sorted(os.environ))"), "torch")
    with Workshop() as workshop:  # a new one: it is started under the key
        run = Run(load_problem("relu"), candidate, workshop, seeds=2, timeout_seconds=20)
        found = said(run.main)
        run.close()
    assert "'PYTHONHASHSEED'" in found
    assert "OPENAI" not in found


def test_no_answer_lies_in_the_process(attack: Attack) -> None:
    """Neither frames nor the collector lead to what `relu` of the input would be."""
    body = """
        want = torch.relu(x)
        found = [o for o in gc.get_objects() if type(o) is torch.Tensor and o is not want
                 and o.shape == want.shape and torch.equal(o, want)]
        frame = sys._getframe()
        while frame:
            found += [v for v in frame.f_locals.values() if type(v) is torch.Tensor
                      and v is not want and v.shape == want.shape and torch.equal(v, want)]
            frame = frame.f_back
        assert not found"""
    assert said(attack(body.strip())) == ""


SYSV = """libc = ctypes.CDLL(None, use_errno=True)
        made = libc.{call}
        assert made >= 0, os.strerror(ctypes.get_errno())"""


@pytest.mark.parametrize("call", ["shmget(77, 4096, 0o1666)", "msgget(77, 0o1666)", "semget(77, 1, 0o1666)"])  # fmt: skip
def test_leaves_nothing_shared_behind(attack: Attack, call: str) -> None:
    assert "Operation not permitted" in said(attack(SYSV.format(call=call)))


def test_changes_nobodys_priority(attack: Attack) -> None:
    for body in (
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), {0})",
        "os.sched_setscheduler(os.getppid(), os.SCHED_BATCH, os.sched_param(0))",
    ):
        assert said(attack(body)).startswith("PermissionError"), body


def test_fills_no_disk(attack: Attack) -> None:
    """Many files, each below the limit of one."""
    body = """
        for number in range(40):
            with open(f"f{number}", "wb") as file:
                file.write(bytes(32 << 20))"""
    assert "No space left" in said(attack(body.strip(), seconds=60))
    assert said(attack("os.memfd_create('x')")).startswith("PermissionError")
    assert said(attack("open('../kept', 'w')")).startswith("PermissionError")


def test_is_not_root(attack: Attack) -> None:
    if os.geteuid() != 0:
        assert said(attack("assert os.getuid() == 0 or os.geteuid() != 0")) == ""
        return
    assert said(attack("assert os.getresuid() == (65534,) * 3, os.getresuid()")) == ""
    assert said(attack("os.setuid(0)")).startswith("PermissionError")


@pytest.mark.parametrize("wall", ["files", "system calls", "network"])
def test_a_missing_wall_is_announced_everywhere(wall: str) -> None:
    walls = {"files": "Landlock 7", "system calls": "seccomp", "network": "own"}
    problem, candidate = load_problem("relu"), Candidate("", "torch")
    quiet = Verdict(problem, candidate, (), "accepted", environment=walls).report()
    assert quiet.gaps == ()
    report = Verdict(
        problem, candidate, (), "accepted", environment={**walls, wall: "none"}
    ).report()
    for name in ("text", "json", "markdown", "html", "agent"):
        assert "not kept from" in report.to(name), name
    assert "未被隔离" in report.to("text", lang="zh")


def test_generate_refuses_where_nothing_confines(monkeypatch: pytest.MonkeyPatch) -> None:
    require_confinement(allowed=False)  # this system has the walls
    monkeypatch.setattr(cell, "available", lambda: {"files": "none", "calls": "seccomp"})
    with pytest.raises(UsageError, match="allow-unconfined"):
        require_confinement(allowed=False)
    require_confinement(allowed=True)


def test_a_prompt_has_fields_of_limited_length() -> None:
    long = GateResult("build", "failed", Text("x" * 5000 + "\x1b[0m\n", ""))
    log = Verdict(load_problem("relu"), Candidate("", "c"), (long,), "rejected").error_log()
    assert max(map(len, log.splitlines())) < LONGEST_FIELD + 40
    assert "\x1b" not in log


def test_a_crash_is_told(attack: Attack) -> None:
    assert said(attack("ctypes.string_at(0)")) == "killed by SIGSEGV"
    assert said(attack("os.abort()")) == "killed by SIGABRT"
    assert said(attack("os._exit(0)")) == "the other side is gone"
    assert said(attack("os._exit(3)")) == "exit code 3"
    assert said(attack("sys.exit('PASS')")).startswith("SystemExit")
    assert said(attack("raise KeyboardInterrupt")).startswith("KeyboardInterrupt")


def test_garbage_on_the_wire_is_no_answer(attack: Attack) -> None:
    """Whoever finds the socket can end the session, not forge a verdict."""
    body = """
        for fd in range(3, 64):
            try:
                os.write(fd, b"\\xff" * 64)
            except OSError:
                pass"""
    main = attack(body.strip())
    assert main.own[0].ended is not None
    assert not main.own[0].right


def test_endless_printing_is_bounded(attack: Attack) -> None:
    main = attack("[sys.stdout.write('PASS' * 250000) for _ in range(100)]; sys.stdout.flush()")
    assert said(main) != ""


def test_printing_pass_means_nothing(workshop: Workshop) -> None:
    source = FORM.replace(
        "ctypes, gc, os, signal, socket, subprocess, sys, threading, time", "math"
    )
    candidate = Candidate(source.format(body="print('PASS'); return x"), "torch")
    verdict = verify("relu", candidate, seeds=2, workshop=workshop)
    assert not verdict.accepted
    assert "[oracle] failed" in verdict.error_log()


def test_the_parent_survives_all_of_it(workshop: Workshop) -> None:
    candidate = Candidate(FORM.format(body="ctypes.string_at(0)"), "torch")
    for _ in range(3):
        run = Run(load_problem("relu"), candidate, workshop, seeds=2, timeout_seconds=20)
        assert said(run.main) == "killed by SIGSEGV"
        run.close()
    good = Candidate(FORM.format(body="pass").replace(FORM.splitlines()[0], "import math"), "torch")
    assert verify("relu", good, seeds=2, workshop=workshop).accepted


LONG = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        while True:
            x = x + 0
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_verification_that_is_killed_leaves_nothing_behind(tmp_path: Path, end: int) -> None:
    candidate = tmp_path / "endless.py"
    candidate.write_text(LONG, "utf-8")
    place = tmp_path / "temporary"
    place.mkdir()
    command = [sys.executable, "-m", "torchstone", "kernel", "verify", "relu", str(candidate)]
    judge = subprocess.Popen([*command, "--impl", "torch"], env={**os.environ, "TMPDIR": str(place)},
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    assert _within(90, lambda: bool(list(place.glob("*/s2.txt"))))  # the candidate's session
    judge.send_signal(end)
    judge.wait()
    assert _within(30, lambda: not list(place.iterdir())), list(place.rglob("*"))


def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.05)
    return holds()
