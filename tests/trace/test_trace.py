"""The recorder: file names of the seed, a journal that survives, names and secrets."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from torchstone.core.codec import from_data, to_data
from torchstone.core.errors import InputError
from torchstone.core.pictures import Document
from torchstone.trace import ActionType, Call, Trace, view
from torchstone.trace.answer import UNREAD, read_answer
from torchstone.trace.journal import NAME, Journal, decode, encode, read_journal
from torchstone.trace.names import safe_name
from torchstone.trace.record import Kept, Record, plain_record
from torchstone.trace.redact import MARK, redactor
from torchstone.trace.run import load

GOOD = json.dumps({"code": "def f():\n    pass", "description": "does nothing"})


def files(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "blobs" not in path.parts
    )


def test_the_files_of_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    trace = Trace(op_name="swish", task_id="123", log_dir="~/logs")
    trace.insert_designer_or_coder_record(
        res=GOOD, prompt="design it", reasoning="because", action_type=ActionType.DO_DESIGNER
    )
    trace.insert_conductor_record("fine", "check it", "", ActionType.DO_DESIGNER)
    trace.insert_designer_or_coder_record(GOOD, "code it", "", ActionType.DO_CODER)
    step = trace.insert_verifier_record("False", "boom", '{"us": 3}', ActionType.VERIFY).step
    trace.insert_conductor_record("coder", "why", "", ActionType.VERIFY)
    trace.insert_verify_files(step, "torch", "triton", "ref", "kernel", "script")
    trace.insert_exit_record("gave up")
    assert files(tmp_path / "logs" / "swish") == [
        "I123_S01_swish_DO_DESIGNER_prompt.txt",
        "I123_S01_swish_DO_DESIGNER_reasoning.txt",
        "I123_S01_swish_DO_DESIGNER_result.txt",
        "I123_S02_swish_DO_CODER_prompt.txt",
        "I123_S02_swish_DO_CODER_reasoning.txt",
        "I123_S02_swish_DO_CODER_result.txt",
        "I123_S03_swish_VERIFY_error_log.txt",
        "I123_S03_swish_VERIFY_profile.json",
        "I123_S03_swish_VERIFY_result.txt",
        "I123_S03_verify/swish_torch.py",
        "I123_S03_verify/swish_triton.py",
        "I123_S03_verify/verify_swish.py",
        "conductor/I123_S01_swish_CheckDesigner_prompt.txt",
        "conductor/I123_S01_swish_CheckDesigner_reasoning.txt",
        "conductor/I123_S01_swish_CheckDesigner_result.txt",
        "conductor/I123_S03_swish_AnalyzeError_prompt.txt",
        "conductor/I123_S03_swish_AnalyzeError_reasoning.txt",
        "conductor/I123_S03_swish_AnalyzeError_result.txt",
        "trace.jsonl",
    ]
    result = tmp_path / "logs/swish/I123_S01_swish_DO_DESIGNER_result.txt"
    assert result.read_text() == "def f():\n    pass\n\n\n'''\ndoes nothing\n'''"
    records = read_journal(tmp_path / "logs/swish" / NAME).records
    assert [(item.step, item.action) for item in records] == [
        (1, "DO_DESIGNER"), (1, "CheckDesigner"), (2, "DO_CODER"), (3, "VERIFY"),
        (3, "AnalyzeError"), (4, "EXIT"),
    ]  # fmt: skip
    assert [item.parent for item in records[1:]] == [item.id for item in records[:-1]]


def test_an_unreadable_answer_is_kept_and_marked(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    record = trace.insert_designer_or_coder_record("no code", "p", "", ActionType.FIX_CODER)
    assert not record.parsed
    folder = tmp_path / "op"
    assert (folder / record.texts["result"].file).read_text() == UNREAD + "no code"
    assert load(folder).text(record, "answer") == "no code"
    long = "no code " * 2000
    record = trace.insert_designer_or_coder_record(long, "p", "", ActionType.FIX_CODER)
    assert (folder / record.texts["answer"].file).read_text() == long
    assert load(folder).text(record, "answer") == long
    run = load(folder)
    assert not run.missing(run.records)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"Here it is:\n```json\n{GOOD}\n```\nenjoy",
        f"thinking {{}} … {GOOD}" if False else f"words before {GOOD} and after",
        '{"code": "def f():\n    pass", "description": "does nothing"}',
        "```python\ndef f():\n    pass\n```\ndoes nothing",
    ],
)
def test_answers_that_can_be_read(text: str) -> None:
    answer = read_answer(text)
    assert answer is not None
    assert answer.code == "def f():\n    pass"


@pytest.mark.parametrize("text", ["", "{}", '{"code": 3}', "a { b } c", "```\n```", "[" * 100_000])
def test_answers_that_cannot(text: str) -> None:
    assert read_answer(text) is None


def test_wrong_actions_are_refused(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    with pytest.raises(ValueError, match="VERIFY"):
        trace.insert_designer_or_coder_record("", "", "", ActionType.VERIFY)
    with pytest.raises(ValueError, match="DO_CODER"):
        trace.insert_verifier_record("", "", "", ActionType.DO_CODER)
    with pytest.raises(ValueError, match="EXIT"):
        trace.insert_conductor_record("", "", "", ActionType.EXIT)
    assert ActionType.read("DoCoder") is ActionType.read("DO_CODER") is ActionType.DO_CODER


@pytest.mark.parametrize(
    "name",
    ["../../escape", "a/b", "..", ".", "", "x" * 250, "名" * 200, "a\x00b", "a\nb", "CON", "a:b", "/etc"],
)  # fmt: skip
def test_names_never_leave_the_folder(tmp_path: Path, name: str) -> None:
    log = tmp_path / "logs"
    trace = Trace(name, "../7", log)
    trace.insert_designer_or_coder_record(GOOD, "p", "", ActionType.DO_CODER)
    trace.insert_verify_files(1, "../f", "g/h", "a", "b", "c")
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) == 7
    assert all(log in path.parents for path in written)
    assert read_journal(trace.folder / NAME).records[0].op == name


def test_safe_names_stay_and_others_stay_apart() -> None:
    assert safe_name("exp_add_op") == "exp_add_op"
    assert safe_name("算子-1.2+x") == "算子-1.2+x"
    assert len({safe_name(name) for name in ("a/b", "a_b", "a:b", "a b", "A_b")}) == 5


def test_secrets_are_gone_before_anything_is_written(tmp_path: Path) -> None:
    secret = "sk-" + "a1B2" * 8
    trace = Trace("op", "1", tmp_path, environment={"MY_API_KEY": "hunter2hunter2"})
    text = f"use {secret} and hunter2hunter2, Authorization: Bearer abcdef0123456789"
    trace.insert_designer_or_coder_record(text, text, text, ActionType.DO_CODER)
    trace.insert_verifier_record(text, text, "{}")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            found = path.read_text()
            assert secret not in found
            assert "hunter2" not in found
            assert "abcdef0123456789" not in found


def test_redaction_leaves_code_alone() -> None:
    redact = redactor({"TOKEN": "abc", "PATH": "/usr/bin/long/enough"})
    code = "key = torch.empty(3)\ntoken_ids = [1, 2]\npassword_length = 8\n/usr/bin/long/enough abc"
    assert redact(code) == code
    assert redact('api_key="0123456789abcdef"') == f'api_key="{MARK}"'
    assert redact("https://me:s3cr3tpw@host/x") == f"https://me:{MARK}@host/x"


@pytest.mark.parametrize(
    "word", ["a", "a.", "-eyJaaaaaaaaa", "://a", "authorization: ", "secret", "x-", "bearer ", "sk-", "-----BEGIN "]
)  # fmt: skip
def test_redaction_takes_time_in_proportion_to_the_text(word: str) -> None:
    """CPU time of this process, which no neighbour changes: quadratic, it would be minutes."""
    text = word * (400_000 // len(word))
    start = time.process_time()
    redactor({})(text)
    assert time.process_time() - start < 20


def work(folder: Path, who: int, count: int) -> None:
    trace = Trace("op", "1", folder, fsync=False)
    for number in range(count):
        text = json.dumps({"code": f"w{who} n{number}", "description": "d" * (number % 50)})
        trace.insert_designer_or_coder_record(
            text, f"prompt w{who} n{number}", "", ActionType.DO_CODER, call=Call(model=f"w{who}")
        )


def check_all(folder: Path, workers: int, count: int) -> None:
    read = read_journal(folder / "op" / NAME)
    assert not read.damaged
    assert not read.torn
    assert [item.step for item in read.records] == list(range(1, workers * count + 1))
    for item in read.records:
        result = (folder / "op" / item.texts["result"].file).read_text()
        prompt = (folder / "op" / item.texts["prompt"].file).read_text()
        assert result.split("\n")[0] == prompt.removeprefix("prompt ")
        assert result.startswith(item.call.model)


def test_threads_lose_and_mix_nothing(tmp_path: Path) -> None:
    threads = [threading.Thread(target=work, args=(tmp_path, n, 100)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_all(tmp_path, 8, 100)


def test_processes_lose_and_mix_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(tmp_path, n, 100)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    check_all(tmp_path, 4, 100)


def work_with(trace: Trace, who: int, count: int) -> None:
    for number in range(count):
        text = json.dumps({"code": f"w{who} n{number}", "description": "d"})
        trace.insert_designer_or_coder_record(
            text, f"prompt w{who} n{number}", "", ActionType.DO_CODER, call=Call(model=f"w{who}")
        )


def work_and_fork(trace: Trace, who: int, count: int) -> None:
    """A child that forks a child of its own while one of its threads records."""
    thread = threading.Thread(target=work_with, args=(trace, who, count))
    thread.start()
    child = os.fork()
    if not child:
        work_with(trace, who + 1, count)
        os._exit(0)
    thread.join()
    os.waitpid(child, 0)


def fork_in_thread(trace: Trace, who: int, count: int) -> None:
    child = os.fork()
    if not child:
        work_with(trace, who, count)
        os._exit(0)
    os.waitpid(child, 0)


def test_one_trace_used_after_forks_beside_threads_and_new_processes(tmp_path: Path) -> None:
    """Forked children, their children and spawned ones use the object that the parent and its
    threads go on using."""
    trace = Trace("op", "1", tmp_path, fsync=False)
    work_with(trace, 0, 1)  # the journal is open before anything is forked
    threads = [threading.Thread(target=work_with, args=(trace, n, 40)) for n in (1, 2)]
    threads.append(threading.Thread(target=fork_in_thread, args=(trace, 8, 40)))
    for thread in threads:
        thread.start()
    forked = multiprocessing.get_context("fork")
    spawned = multiprocessing.get_context("spawn")
    workers: list[BaseProcess] = [
        forked.Process(target=work_with, args=(trace, n, 40)) for n in (3, 4)
    ]
    workers.append(spawned.Process(target=work_with, args=(trace, 5, 40)))
    workers.append(forked.Process(target=work_and_fork, args=(trace, 6, 40)))
    for worker in workers:
        worker.start()
    for thread in threads:
        thread.join(120)
    for worker in workers:
        worker.join(120)
    stuck = [worker for worker in workers if worker.is_alive()]
    for worker in stuck:
        worker.kill()
    assert not stuck, "a child waits for a lock that a thread of its parent held"
    read = read_journal(tmp_path / "op" / NAME)
    assert [item.step for item in read.records] == list(range(1, 8 * 40 + 2))
    texts = [(tmp_path / "op" / item.texts["prompt"].file).read_text() for item in read.records]
    assert len(set(texts)) == 8 * 40 + 1
    assert {item.call.model for item in read.records} == {f"w{n}" for n in range(9)}


def test_a_folder_that_is_removed_is_begun_anew(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path, fsync=False)
    work_with(trace, 0, 2)
    shutil.rmtree(tmp_path / "op")
    work_with(trace, 0, 2)
    read = read_journal(tmp_path / "op" / NAME)
    assert [item.step for item in read.records] == [1, 2]


WRITER = """
import sys
from torchstone.trace import ActionType, Trace
trace = Trace("op", "1", sys.argv[1], fsync=False)
number = 0
while True:
    record = trace.insert_designer_or_coder_record(
        '{"code": "%s"}' % ("x" * 3000), "p", "r", ActionType.DO_CODER)
    print(record.step, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    acknowledged = 0
    for delay in (0.02, 0.05, 0.11, 0.17, 0.3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(delay)
        writer.send_signal(signal.SIGKILL)
        lines = (first + writer.stdout.read()).split("\n")[:-1]
        writer.wait()
        read = read_journal(tmp_path / "op" / NAME)
        assert not read.damaged
        acknowledged = max([acknowledged, *(int(line) for line in lines)])
        steps = [item.step for item in read.records]
        assert steps == list(range(1, len(steps) + 1))
        assert len(steps) >= acknowledged > 0
        for item in read.records[-3:]:
            assert (tmp_path / "op" / item.texts["result"].file).stat().st_size > 3000


def test_a_torn_tail_is_dropped_and_a_damaged_line_is_told(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    for _ in range(3):
        trace.insert_verifier_record("True", "", "")
    path = tmp_path / "op" / NAME
    data = path.read_bytes()
    path.write_bytes(data + data[:50])
    read = read_journal(path)
    assert (len(read.records), read.torn, read.damaged) == (3, 50, ())
    Trace("op", "1", tmp_path).insert_verifier_record("True", "", "")
    assert [item.step for item in read_journal(path).records] == [1, 2, 3, 4]
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b"VERIFY", b"VERIFI")
    path.write_bytes(b"".join(lines) + b"[1, 2]\n" + b"\xff\xfe\n")
    read = read_journal(path)
    assert ([item.step for item in read.records], read.damaged) == ([1, 3, 4], (2, 5, 6))


@pytest.mark.parametrize(
    ("damage", "step"),
    [
        ((b"VERIFY", b"VERIFI"), 4),
        ((b'"task": "1"', b'"t?sk": "1"'), 4),
        ((b'"step": 3', b'"step" 3'), 4),
    ],
)
def test_a_damaged_line_keeps_its_number_and_its_files(
    tmp_path: Path, damage: tuple[bytes, bytes], step: int
) -> None:
    trace = Trace("op", "1", tmp_path)
    for number in range(3):
        trace.insert_verifier_record("True", f"log {number + 1}", "")
    path = tmp_path / "op" / NAME
    lines = path.read_bytes().splitlines(keepends=True)
    assert damage[0] in lines[-1]
    path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(*damage))
    assert Trace("op", "1", tmp_path).insert_verifier_record("True", "new", "").step == step
    assert (tmp_path / "op" / "I1_S03_op_VERIFY_error_log.txt").read_text() == "log 3"


def test_an_answer_that_is_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="NoneType"):
        Trace("op", "1", tmp_path).insert_designer_or_coder_record(
            None, "p", "", ActionType.DO_CODER  # type: ignore[arg-type]
        )  # fmt: skip


def test_another_version_is_an_error(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    record = trace.insert_verifier_record("True", "", "")
    line = encode(record)
    assert decode(line) == record
    newer = line.split(b', "sum"')[0].replace(b'"version": 1', b'"version": 9')
    import zlib

    (tmp_path / "op" / NAME).write_bytes(newer + b', "sum": "%08x"}\n' % zlib.crc32(newer))
    with pytest.raises(InputError, match="version 9"):
        read_journal(tmp_path / "op" / NAME)


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))\n"
        "from torchstone.trace import ActionType, Trace\n"
        "trace = Trace('op', '1', sys.argv[1])\n"
        "for n in range(99):\n"
        "    trace.insert_verifier_record('True', 'log', '')\n"
        "    print(n + 1, flush=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert "File too large" in done.stderr
    assert "InputError" in done.stderr
    read = read_journal(tmp_path / "op" / NAME)
    assert len(read.records) == int(done.stdout.split()[-1])
    assert not read.torn
    assert not [path for path in (tmp_path / "op").iterdir() if path.name.startswith(".")]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="log_dir"):
        Trace("op", "1", tmp_path / "file")
    folder = tmp_path / "logs" / "op"
    folder.mkdir(parents=True)
    os.symlink("/etc/hostname", folder / NAME)
    with pytest.raises(InputError):
        Trace("op", "1", tmp_path / "logs").insert_verifier_record("True", "", "")


def test_a_second_look_has_files_of_its_own(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    trace.insert_designer_or_coder_record(GOOD, "p", "", ActionType.DO_CODER)
    first, second = (
        trace.insert_conductor_record(text, "p", "", ActionType.DO_CODER) for text in ("a", "b")
    )
    assert first.texts["result"].file != second.texts["result"].file
    assert (tmp_path / "op" / second.texts["result"].file).read_text() == "b"
    journal = Journal(tmp_path / "op")
    journal.close()


def test_what_a_crash_left_behind_is_taken_over(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    (tmp_path / "op" / "I1_S01_op_DO_CODER_result.txt").write_text("half a file, much longer" * 9)
    record = trace.insert_designer_or_coder_record(GOOD, "p", "", ActionType.DO_CODER)
    assert record.step == 1
    run = load(tmp_path / "op")
    assert run.missing(run.records) == ()


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path / "logs")
    (tmp_path / "precious").write_text("mine")
    os.symlink(tmp_path / "precious", tmp_path / "logs/op/I1_S01_op_DO_CODER_result.txt")
    with pytest.raises(InputError):
        trace.insert_designer_or_coder_record(GOOD, "p", "", ActionType.DO_CODER)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_long_answer_is_kept_once(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    long = "no code " * 2000
    for _ in range(2):
        trace.insert_designer_or_coder_record(long, "p", "", ActionType.FIX_CODER)
    blobs = [path for path in (tmp_path / "op" / "blobs").rglob("*") if path.is_file()]
    assert [path.read_text() for path in blobs] == [long]


def test_a_start_is_no_step(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    trace.insert_start_record('{"tool": "test"}')
    trace.insert_designer_or_coder_record(GOOD, "p", "", ActionType.DO_DESIGNER)
    assert [(item.action, item.step) for item in trace.trace_list] == [
        ("START", 0), ("DO_DESIGNER", 1),
    ]  # fmt: skip
    assert [path.name for path in (tmp_path / "op").glob("*START*")] == []
    other = Trace("op", "1", tmp_path)  # another writer sees the same steps
    assert other.insert_verifier_record("True", "", "").step == 2


def test_values_that_are_no_text_are_kept_as_json(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    record = trace.insert_verifier_record(True, ["a", 1], {"speedup": 1.5})
    assert record.verdict == "True"
    run = load(tmp_path / "op")
    assert run.text(record, "profile") == '{"speedup": 1.5}'
    assert run.text(record, "error_log") == '["a", 1]'
    with pytest.raises(
        InputError, match=r"profile: got dict, expected a text, or values that JSON"
    ):
        trace.insert_verifier_record("True", "", {"x": object()})


def test_of_a_long_run_the_last_steps_are_shown_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "MOST_SHOWN", 3)
    trace = Trace("op", "1", tmp_path, fsync=False)
    for number in range(5):
        trace.insert_designer_or_coder_record(
            '{"code": "x"}', f"p{number}", "", ActionType.DO_CODER
        )
    (tmp_path / "op" / trace.trace_list[0].texts["prompt"].file).unlink()
    report = view.report_of(load(tmp_path / "op"))
    assert next(item for item in report.measures if item.name == "steps").value == 5
    assert [item.name for item in report.measures if item.name.startswith("step_")] == [
        f"step_1_{number}_DO_CODER" for number in (3, 4, 5)
    ]
    assert len(report.gaps) == 1
    assert "2 earlier records are counted" in report.to("text")


def test_records_are_read_quickly_and_carefully_alike() -> None:
    record = Record("1", "t", "op", 2, "VERIFY", "verifier", 3.5, verdict="True",
                    texts={"result": Kept("f", "0" * 64, 4)}, call=Call(seconds=2.0), versions={"a": "b"})  # fmt: skip
    data = to_data(record)
    assert isinstance(data, dict)
    assert plain_record(data) == record == from_data(Record, data)
    for wrong in ({"step": "2"}, {"call": {"seconds": "x"}}, {"more": 1}):
        assert plain_record({**data, **wrong}) is None
    strange = plain_record({**data, "texts": {"result": {"file": 3}}})
    assert strange is not None
    with pytest.raises(InputError):
        strange.texts["result"]


def test_an_attempt_is_compared_with_the_attempt_before(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path, fsync=False)
    for turn, action in enumerate((ActionType.DO_CODER, ActionType.FIX_CODER)):
        answer = json.dumps({"code": f"turn = {turn}\n", "description": "d"})
        trace.insert_designer_or_coder_record(answer, "p", "r", action)
        trace.insert_verifier_record(bool(turn), "log", "{}", seconds=2.0)
    report = view.report_of(load(tmp_path / "op"))
    diffs = [item.text for measure in report.measures for item in measure.evidence
             if isinstance(item, Document) and item.language == "diff"]  # fmt: skip
    assert len(diffs) == 1
    assert "-turn = 0\n+turn = 1" in diffs[0]


def test_the_time_line_says_what_a_verification_found(tmp_path: Path) -> None:
    trace = Trace("op", "1", tmp_path)
    trace.insert_verifier_record("False", "wrong at [0, 3]\nand more", "", seconds=2.0)
    trace.insert_verifier_record("True", "", "", seconds=1.0)
    said = view.report_of(load(tmp_path / "op")).to("text")
    assert "wrong at [0, 3], 2 s" in said
    assert "and more" not in said
