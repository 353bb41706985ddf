"""All time is accounted for, short calls lose their hooks, and what ends a program leaves its trace."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile
from torch.utils.data import DataLoader, Dataset

from torchstone.core.errors import InputError
from torchstone.dataflow import EnhancedTracer, ExecutionDAG
from torchstone.dataflow.run import load_trace
from torchstone.dataflow.trace_answer import TracedTime, TraceSubject, trace_answer
from torchstone.dataflow.tracing.callees import Callee
from torchstone.dataflow.tracing.hooks import calls, operators
from torchstone.dataflow.tracing.journal import journal_of, read_journal
from torchstone.dataflow.tracing.recorder import Event, UnrecordedCalls
from torchstone.dataflow.tracing.sampling import Spot, ThreadSampler
from torchstone.dataflow.tracing.sites import Site
from torchstone.dataflow.tracing.time_use import MODULE, ThreadTime, TimeUse, time_uses
from torchstone.dataflow.view.pictures import graph_picture


def site(line: int, function: str = "") -> Site:
    return Site("call", "", "job.py", line, function)


def event(name: str, start: int, end: int, inner: int, parent: int = -1, *, user: bool = False):
    return Event(site(start), Callee(name, "m", user=user), parent, start, end, (), (), inner=inner)


EVENTS = [
    event("load", 100, 900, 600, user=True),
    event("cv2.resize", 200, 500, 0, 0),
    event("numpy.stack", 950, 990, 0),
]
UNRECORDED = [
    UnrecordedCalls(site(7), Callee("open", "io"), 3, 250),
    UnrecordedCalls(site(8), Callee("tokenise", "job", user=True), 3, 50),
    UnrecordedCalls(site(9), Callee("importlib.import_module", "importlib"), 1, 20),
]


def test_own_times_add_up_to_the_wall_time() -> None:
    spots = {
        Spot("job.py", 12, "tokenise"): 30,
        Spot("job.py", 31, "split_words", "", ("tokenise", "load")): 10,
        Spot("job.py", 2, "load", "import"): 5,
        Spot("job.py", 3, "load"): 15,
        Spot("", 0, "", "wait"): 1,
        Spot("job.py", 40, MODULE): 1,
    }
    uses = time_uses(ThreadTime(EVENTS, {}, UNRECORDED, spots, 2000))
    found = {(use.name, use.kind): round(use.seconds * 1e9) for use in uses}
    assert sum(found.values()) == 2000
    assert found["cv2.resize", "operator"] == 300
    assert found["open", "library"] == 250
    assert found["tokenise", "python"] + found["split_words", "python"] == 50
    assert found["import", "import"] == 20 + 50  # a quarter of what `load` took itself
    # 2000 without `load` (of which 300 are resize), stack, and the calls that left no event
    rest = found[MODULE, "python"] + found["wait", "wait"]
    assert rest == 2000 - 300 - 40 - 250 - 50 - 20 - 200


def test_the_sampler_gives_all_time_to_where_the_thread_is() -> None:
    ticks = iter([100, 140, 190])
    sampler = ThreadSampler(lambda name: name == __file__, lambda: next(ticks))
    sampler._last = sampler._clock()
    frame = sys._getframe()
    sampler.look(frame)
    sampler.look(None)  # the thread had ended
    assert list(sampler.spots.values()) == [40]
    (spot,) = sampler.spots
    assert spot.function == "test_the_sampler_gives_all_time_to_where_the_thread_is"
    assert spot.file == __file__


class Tokenizer:
    """Its work is spread over methods none of which sees an array."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def split(self, text: str) -> list[str]:
        return [piece for word in text.split(" ") for piece in self.pieces(word)]

    def pieces(self, word: str) -> list[str]:
        return [word[start : start + size] for size in (1, 2, 3) for start in range(len(word))]

    def __call__(self, text: str) -> list[int]:
        return [self.known.setdefault(piece, len(self.known)) for piece in self.split(text)]


class Captions(Dataset):
    def __init__(self) -> None:
        self.tokenise = Tokenizer()

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        image = np.full((8, 8), index) * 2
        return image, np.array(self.tokenise("several words of a text " * 400))


def sample(text: str) -> np.ndarray:
    return np.array([len(word) for word in text.split(" ")]) * 2


def test_all_time_is_accounted_for_and_its_largest_part_is_named() -> None:
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        for batch in DataLoader(Captions(), 2):
            assert len(batch) == 2
    names = {use.name for use in tracer.time_uses}
    assert "numpy.multiply" in names
    assert sum(use.seconds for use in tracer.time_uses) == pytest.approx(tracer.wall_seconds)
    dag = tracer.dag_builder.dag
    traced = TracedTime(tracer.wall_seconds, tuple(tracer.time_uses))
    answer = trace_answer(traced, [], graph_picture(dag, dag), 0, TraceSubject("job"))
    assert re.search(r"of (that|the rest): Tokenizer", answer.headline.en)
    assert re.match(r"Tokenizer.*Python code: vectorise it", answer.lines[0].en)


def shrunk(file: io.BytesIO) -> Image.Image:
    return Image.open(file).resize((8, 8))


def test_decoding_is_not_the_time_of_the_call_that_needs_it() -> None:
    file = io.BytesIO()
    Image.new("RGB", (64, 64)).save(file, "PNG")
    before = ImageFile.ImageFile.load
    tracer = EnhancedTracer(track_memory=False)
    with tracer.tracing_context():
        shrunk(file)
    assert ImageFile.ImageFile.load is before
    (resize,) = [n for n in tracer.dag_builder.dag.operators() if n.name.endswith("Image.resize")]
    (load,) = [use for use in tracer.time_uses if use.name == "PIL.ImageFile.ImageFile.load"]
    inside = resize.performance["execution_time"] - resize.performance["self_time"]
    assert inside == pytest.approx(load.seconds)
    assert load.kind == "library"


@pytest.mark.parametrize(
    ("imports", "said"),
    [(0.9, "job takes 1 s, 900 ms of it importing modules once; of the rest: f 80%"), (0.02, "job takes 1 s; of that: f 78%")],
)  # fmt: skip
def test_imports_are_paid_once_and_left_out_of_the_shares(imports: float, said: str) -> None:
    rest = 1 - imports
    uses = [("import", "import", imports), ("f", "python", 0.8 * rest), ("g", "python", 0.2 * rest)]
    traced = TracedTime(1.0, tuple(TimeUse(*use) for use in uses))
    empty = ExecutionDAG()
    answer = trace_answer(traced, [], graph_picture(empty, empty), 0, TraceSubject("job"))
    assert answer.headline.en.startswith(said)


def loop(count: int) -> tuple[float, list[int]]:
    total, found = np.zeros(2), []
    for number in range(count):
        total = total * 0.5 + number
        total[number % 2] = 1.0
        found.append(abs(number) + number % 3)
    return float(total[0]), found


def test_a_hot_loop_inside_one_call_loses_its_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (calls, operators):
        monkeypatch.setattr(module, "ROUNDS", 16)
        monkeypatch.setattr(module, "SHORT_NS", 10**12)  # whatever the machine is doing
    expected = loop(300)
    tracer = EnhancedTracer(track_memory=False)
    tracer.start_tracing()
    try:
        assert loop(300) == expected
    finally:
        tracer.stop_tracing()
    multiplied = [
        node for node in tracer.dag_builder.dag.operators() if node.name == "numpy.multiply"
    ]
    assert len(multiplied) == 16
    (note,) = [note for note in tracer.notes if "sampled after their first rounds" in note.en]
    assert "test_time.py:" in note.en
    assert loop(300) == expected


def deep(count: int) -> np.ndarray:
    return np.ones(2) * 2 if not count else deep(count - 1)


def test_calls_that_are_too_deep_are_counted() -> None:
    tracer = EnhancedTracer(max_depth=3, track_memory=False)
    with tracer.tracing_context():
        deep(6)
    (note,) = [note for note in tracer.notes if "deeper than 3" in note.en]
    assert note.remedy == "--max-depth 6"


def test_a_journal_is_read_up_to_where_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    tracer = EnhancedTracer(track_memory=False, journal=journal_of(path), about={"program": "job"})
    with tracer.tracing_context():
        sample("some words")
    expected = [node.name for node in tracer.dag_builder.dag.operators()]
    dag, about = load_trace(path)
    assert [node.name for node in dag.operators()] == expected
    assert about["program"] == "job"
    assert about["is_partial"]
    whole = journal_of(path).read_bytes()
    journal_of(path).write_bytes(whole[:-20])
    assert not load_trace(path)[0].nodes
    first, second, *_ = whole.splitlines()
    wrong = second.partition(b" ")[2].replace(b'"sites":[[', b'"sites":[[7],[')
    strange = [b"00000000 {}", first + b"\n" + b"%08x " % zlib.crc32(wrong) + wrong]
    for content in strange:
        journal_of(path).write_bytes(content + b"\n")
        with pytest.raises(InputError, match="not the journal of a trace"):
            read_journal(journal_of(path))


SCRIPT = """
import numpy as np
import time
def step(number):
    return np.ones(8) * number
for number in range(200):
    step(number)
print("ready", flush=True)
time.sleep(60)
"""


def multiplied(path: Path) -> int:
    """How many products the trace holds so far."""
    try:
        dag, _ = load_trace(path)
    except InputError:  # not there yet, or its first line is not
        return 0
    return sum(node.name == "numpy.multiply" for node in dag.operators())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_what_was_recorded(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "job.py").write_text(SCRIPT)
    # what a shell starts in the background ignores SIGINT
    start = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from torchstone.cli.main import run; sys.exit(run(['flow', 'trace', 'job.py']))"
    )
    command = [sys.executable, "-c", start]
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "ready" in line:
                break
        path = tmp_path / ".torchstone/flow/trace.json"
        while number is signal.SIGKILL and multiplied(path) < 200:  # written twice a second
            time.sleep(0.05)
        process.send_signal(number)
        out, _ = process.communicate()
    assert multiplied(path) == 200
    if number is not signal.SIGKILL:
        assert process.returncode == 3
        assert ("SIGTERM" if number is signal.SIGTERM else "KeyboardInterrupt") in out
