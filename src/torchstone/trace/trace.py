"""`Trace`: the steps of one task on one operator, as files and in the journal."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from torchstone._version import __version__
from torchstone.core.errors import InputError, system_said
from torchstone.core.text import Text
from torchstone.trace.actions import CHECKS, START, WRITING, ActionType
from torchstone.trace.answer import UNREAD, read_answer
from torchstone.trace.exchange import Exchange, write_exchanges
from torchstone.trace.journal import Journal, renew_after_fork
from torchstone.trace.names import safe_name
from torchstone.trace.record import NO_CALL, Call, Kept, Record
from torchstone.trace.redact import redactor

_WRITE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_TRUNC
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)
_WITHOUT_FILE = frozenset({"answer", "exchanges", "settings"})
_ALWAYS = frozenset({"reasoning", "error_log"})
"""Files that a step has even when there is nothing to write: who looks for one finds it."""
_INLINE = 8 << 10
"""Bytes up to which a text without a file of its own stands in the journal."""


def verify_names(op_name: str, framework: str, impl_type: str) -> tuple[str, str, str]:
    """File names of a verification: the reference, the kernel, the script. A kernel that is
    written in the framework of its reference has a name of its own."""
    op, theirs, ours = safe_name(op_name), safe_name(framework), safe_name(impl_type)
    kernel = f"{op}_{ours}.py" if ours != theirs else f"{op}_{ours}_kernel.py"
    return f"{op}_{theirs}.py", kernel, f"verify_{op}.py"


class _Content(NamedTuple):
    """A text as it will stand on the disk."""

    text: str
    data: bytes
    digest: str

    @classmethod
    def of(cls, text: str) -> _Content:
        data = text.encode("utf-8", "backslashreplace")
        return cls(text, data, hashlib.sha256(data).hexdigest())


class Trace:
    """Records the steps of a task. One step has one number, from 01; a look at a step by the
    conductor has the number of the step it looks at."""

    def __init__(
        self,
        op_name: str,
        task_id: str,
        log_dir: str | Path,
        *,
        fsync: bool = True,
        clock: Callable[[], float] = time.time,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.op_name, self.task_id = op_name, str(task_id)
        self.log_dir = Path(os.path.expanduser(log_dir))
        self.folder = self.log_dir / safe_name(op_name)
        self.trace_list: list[Record] = []
        """What this object recorded, in order."""
        self._fsync, self._clock, self._environment = fsync, clock, environment
        self.redact = redactor(environment)
        """Takes secrets out of a text, as for all that is written here."""
        self._journal = Journal(self.folder, fsync)
        self._looks: dict[Path, int] = {}
        """The last number that a file of the conductor got: with many looks at a step, trying all takes long."""
        self._lock = threading.Lock()
        renew_after_fork(self)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def after_fork(self) -> None:
        """In a forked child: a lock that no thread of the parent holds."""
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, object]:
        """What a spawned process needs to record into the same folder; locks and files stay here."""
        return {"op_name": self.op_name, "task_id": self.task_id, "log_dir": self.log_dir,
                "fsync": self._fsync, "clock": self._clock, "environment": self._environment}  # fmt: skip

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def insert_designer_or_coder_record(
        self,
        res: str,
        prompt: str,
        reasoning: str,
        action_type: ActionType,
        *,
        call: Call = NO_CALL,
        exchanges: Sequence[Exchange] = (),
    ) -> Record:
        """A model wrote: its answer, the whole prompt, its reasoning."""
        if action_type not in WRITING:
            raise ValueError(f"{action_type} is no step in which a designer or coder writes")
        _check_answer(res)
        answer = read_answer(res)
        texts = {
            "result": answer.text() if answer else UNREAD + res,
            "prompt": prompt,
            "reasoning": reasoning,
            "answer": res,
            "exchanges": write_exchanges(exchanges),
        }
        return self._insert("agent", action_type.name, texts, True, parsed=bool(answer), call=call)

    def insert_verifier_record(
        self,
        verify_res: object,
        verify_log: object,
        profile: object,
        action_type: ActionType = ActionType.VERIFY,
        *,
        seconds: float | None = None,
    ) -> Record:
        """A verification: its result, the whole log, the profile, and how long it took."""
        if action_type is not ActionType.VERIFY:
            raise ValueError(f"{action_type} is no verification")
        texts = {"result": str(verify_res), "error_log": verify_log, "profile": profile}
        return self._insert(
            "verifier", action_type.name, texts, True, verdict=self.redact(str(verify_res))[:200],
            call=Call(seconds=seconds),
        )  # fmt: skip

    def insert_conductor_record(
        self,
        res: str,
        prompt: str,
        reasoning: str,
        action_type: ActionType,
        *,
        call: Call = NO_CALL,
        exchanges: Sequence[Exchange] = (),
    ) -> Record:
        """The conductor looked at the step that was recorded last."""
        if action_type not in CHECKS:
            raise ValueError(f"the conductor does not look at {action_type}")
        _check_answer(res)
        texts = {
            "result": res,
            "prompt": prompt,
            "reasoning": reasoning,
            "exchanges": write_exchanges(exchanges),
        }
        return self._insert("conductor", CHECKS[action_type], texts, False, call=call)

    def insert_decision_record(
        self,
        phase: str,
        decision: str,
        prompt: str,
        reasoning: str,
        *,
        call: Call = NO_CALL,
        exchanges: Sequence[Exchange] = (),
    ) -> Record:
        """A review decided something: what (JSON), on which question, and why."""
        texts = {
            "result": decision,
            "prompt": prompt,
            "reasoning": reasoning,
            "exchanges": write_exchanges(exchanges),
        }
        return self._insert("agent", safe_name(phase.upper()), texts, True, call=call)

    def insert_start_record(self, settings: str) -> Record:
        """A task begins: what it was told to do (JSON), which a replay needs. It has no files and
        is step 0, so that the first step of the work is still 01."""
        return self._insert("start", START, {"settings": settings}, False)

    def insert_exit_record(self, verdict: str, *, exchanges: Sequence[Exchange] = ()) -> Record:
        """The task is over; `exchanges` are those that no step has, because they failed."""
        texts = {"exchanges": write_exchanges(exchanges)}
        return self._insert(
            "exit", ActionType.EXIT.name, texts, True, verdict=self.redact(verdict)[:200]
        )

    def insert_verify_files(
        self, step: int, framework: str, impl_type: str, reference: str, kernel: str, script: str
    ) -> Path:
        """What a verification ran, as files of its own: the reference, the kernel, the script."""
        folder = self.folder / f"I{safe_name(self.task_id)}_S{step:02d}_verify"
        names = verify_names(self.op_name, framework, impl_type)
        for name, text in zip(names, (reference, kernel, script), strict=True):
            self._write(folder / name, self.redact(text).encode("utf-8", "backslashreplace"))
        return folder

    def _insert(
        self,
        role: str,
        action: str,
        texts: Mapping[str, object],
        new_step: bool,
        *,
        parsed: bool = True,
        verdict: str = "",
        call: Call = NO_CALL,
    ) -> Record:
        # hashed here: others wait for the journal while `make` runs
        clean = {
            name: _Content.of(self.redact(_as_text(name, value)))
            for name, value in texts.items()
            if name in _ALWAYS or (value is not None and value != "")
        }

        def make(step: int, parent: str) -> Record:
            kept = {
                name: self._keep(role, step, action, name, text) for name, text in clean.items()
            }
            return Record(
                id=uuid.uuid4().hex,
                task=self.task_id,
                op=self.op_name,
                step=0 if role == "start" else step,
                action=action,
                role=role,
                time=self._clock(),
                parent=parent,
                parsed=parsed,
                verdict=verdict,
                texts=kept,
                call=call,
                versions={"torchstone": __version__, "python": platform.python_version()},
            )

        try:
            record = self._journal.append(self.task_id, new_step, make)
        except OSError as error:
            raise _unwritable(self.folder, error) from None
        with self._lock:
            self.trace_list.append(record)
        return record

    def _keep(self, role: str, step: int, action: str, name: str, content: _Content) -> Kept:
        """Write a text and say where; what has no file of its own is kept by its content."""
        data, digest = content.data, content.digest
        if name in _WITHOUT_FILE:
            if len(data) <= _INLINE:
                return Kept("", digest, len(data), content.text)
            path = Path("blobs", digest[:2], f"{digest}.txt")
            self._write_blob(self.folder / path, data)
        else:
            ending = "json" if name == "profile" else "txt"
            stem = f"I{safe_name(self.task_id)}_S{step:02d}_{safe_name(self.op_name)}"
            path = Path(f"{stem}_{action}_{name}.{ending}")
            if role == "conductor":
                path = "conductor" / path
                path = self._free(path)
            self._write(self.folder / path, data)
        return Kept(path.as_posix(), digest, len(data))

    def _write_blob(self, path: Path, data: bytes) -> None:
        """A blob that is there is never written again, so it takes its name only when whole."""
        if path.exists():
            return
        beside = path.with_name(f".{os.getpid()}.{threading.get_ident()}.{os.urandom(4).hex()}")
        self._write(beside, data)
        os.replace(beside, path)

    def _free(self, path: Path) -> Path:
        """The conductor may look at a step twice; the second look has files of its own."""
        number = self._looks.get(path, 1)
        found = path if number == 1 else path.with_name(f"{path.stem}_{number}{path.suffix}")
        while (self.folder / found).exists():
            number += 1
            found = path.with_name(f"{path.stem}_{number}{path.suffix}")
        self._looks[path] = number
        return found

    def _write(self, path: Path, data: bytes) -> None:
        """The file is whole before the journal names it: a crash leaves at most a file that no
        record knows, and the next step of that number takes its place. Writing beside it and
        renaming would cost a second directory entry for each file, half of all the time."""
        try:
            handle = os.open(path, _WRITE, 0o666)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, _WRITE, 0o666)
        try:
            done = 0
            while done < len(data):
                done += os.write(handle, data[done:])
            if self._fsync:
                os.fsync(handle)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)


def _check_answer(res: object) -> None:
    """An InputError for an answer that is no text."""
    if not isinstance(res, str):
        raise InputError(
            "trace: res",
            type(res).__name__,
            Text("the text that the model answered", "模型回答的文本"),
            Text("pass an empty text where there was no answer", "没有回答时请传入空文本"),
        )


def _as_text(name: str, value: object) -> str:
    """A text as it is; what else JSON can write, as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(
            f"trace: {name}",
            type(value).__name__,
            Text("a text, or values that JSON can write", "文本，或 JSON 能够写出的值"),
            Text("pass str(…) of it, or a dict of texts and numbers",
                 "请传入其 str(…)，或由文本与数字组成的 dict"),
        ) from None  # fmt: skip


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        str(path),
        system_said(error),
        Text("a folder that can be written", "可写的文件夹"),
        Text("choose another log_dir, or make room", "请换一个 log_dir，或腾出空间"),
    )
