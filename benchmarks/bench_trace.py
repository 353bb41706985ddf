"""Recording: how fast, and what is left after threads, processes and kills."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import torchstone
from torchstone.trace import ActionType, Trace
from torchstone.trace.journal import NAME, read_journal

RATE, FSYNCED, KILLS, LARGE = 2000, 200, 200, 100_000_000
WRITER = """
import sys
from torchstone.trace import ActionType, Trace
trace = Trace("op", "1", sys.argv[1], fsync=False)
while True:
    text = '{"code": "%s"}' % ("x" * 2000)
    print(trace.insert_designer_or_coder_record(text, "p", "r", ActionType.DO_CODER).step, flush=True)
"""


def write(folder: str, who: int, count: int, fsync: bool = False) -> None:
    trace = Trace("op", "1", folder, fsync=fsync)
    for number in range(count):
        text = json.dumps({"code": f"w{who} n{number}"})
        trace.insert_designer_or_coder_record(text, f"w{who} n{number}", "", ActionType.DO_CODER)


def kept(folder: str) -> tuple[int, int]:
    """Records that are there, and those whose files belong together."""
    read = read_journal(Path(folder, "op", NAME))
    good = 0
    for item in read.records:
        texts = [
            Path(folder, "op", item.texts[name].file).read_text() for name in ("prompt", "result")
        ]
        good += texts[1].startswith(texts[0] + "\n")
    return len({item.step for item in read.records}), good


def rate(count: int, fsync: bool) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        write(folder, 0, count, fsync)
        return count / (time.perf_counter() - start)


def bare(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with open(Path(folder, "x"), "ab", buffering=0) as file:
            for _ in range(count):
                file.write(b"x" * 900)
                os.fsync(file.fileno())
        return count / (time.perf_counter() - start)


def many(workers: list[threading.Thread] | list[multiprocessing.Process]) -> None:
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def killed() -> tuple[int, int, int]:
    """Kills, records acknowledged at most, acknowledged records that are not there."""
    chance = random.Random(7)
    lost = acknowledged = 0
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(KILLS):
            writer = subprocess.Popen(
                [sys.executable, "-c", WRITER, folder], stdout=subprocess.PIPE, text=True
            )
            assert writer.stdout is not None
            first = writer.stdout.readline()
            time.sleep(chance.random() * 0.05)
            writer.send_signal(signal.SIGKILL)
            lines = (first + writer.stdout.read()).split("\n")[:-1]
            writer.wait()
            acknowledged = max([acknowledged, *(int(line) for line in lines)])
            steps = {item.step for item in read_journal(Path(folder, "op", NAME)).records}
            lost += len(set(range(1, acknowledged + 1)) - steps)
    return KILLS, acknowledged, lost


def redaction() -> float:
    """CPU time of taking secrets out of 100 MB of source, as a multiple of recording it; median."""
    home = Path(torchstone.__file__).parent
    source = "".join(path.read_text("utf-8") for path in sorted(home.rglob("*.py"))[:400])
    text = (source * (LARGE // len(source) + 1))[:LARGE]
    found = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as folder:
            trace = Trace("op", "1", folder)
            redact, trace.redact = trace.redact, lambda given: given
            start = time.process_time()
            trace.insert_verifier_record("True", text, "")
            written = time.process_time()
            redact(text)
            found.append((time.process_time() - written) / (written - start))
    return statistics.median(found)


def run() -> str:
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        many([threading.Thread(target=write, args=(folder, n, 500)) for n in range(8)])
        threads = kept(folder)
    with tempfile.TemporaryDirectory() as folder:
        many([fork.Process(target=write, args=(folder, n, 500)) for n in range(4)])  # type: ignore[list-item]
        processes = kept(folder)
    kills, acknowledged, lost = killed()
    fast, slow, floor = rate(RATE, False), rate(FSYNCED, True), bare(FSYNCED)
    return "\n".join(
        [
            "## trace: recording",
            "",
            "A record is three or four text files and a line in the journal. Rates are wall time.",
            "",
            "| | seen | to reach |",
            "|---|--:|--:|",
            f"| 8 threads x 500 records, one task: recorded / files that belong together | {threads[0]} / {threads[1]} | 4000 / 4000 |",
            f"| 4 processes x 500 records, one task | {processes[0]} / {processes[1]} | 2000 / 2000 |",
            f"| kill -9 at random, {kills} times, {acknowledged} records acknowledged: lost | {lost} | 0 |",
            f"| records a second, without fsync | {fast:,.0f} | 2,000 |",
            f"| records a second, fsynced (each file and the journal) | {slow:,.0f} | – |",
            f"| bare write + fsync of one line, a second | {floor:,.0f} | – |",
            f"| taking secrets out of 100 MB, CPU time as a multiple of recording it | {redaction():.1f} | 3 |",
            "",
        ]
    )


if __name__ == "__main__":
    print(run())
