"""`Trace`: the steps of one task on one operator, as files and in the journal."""

from __future__ import annotations

import hashlib
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from torchstone._version import __version__
from torchstone.core.errors import InputError
from torchstone.core.text import Text
from torchstone.trace.actions import CHECKS, WRITING, ActionType
from torchstone.trace.answer import UNREAD, read_answer
from torchstone.trace.journal import Journal
from torchstone.trace.names import safe_name
from torchstone.trace.record import NO_CALL, Call, Kept, Record
from torchstone.trace.redact import redactor

_INLINE = 8 << 10
"""Bytes up to which a text without a file of its own stands in the journal."""


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
        self._fsync, self._clock = fsync, clock
        self._redact = redactor(environment)
        self._journal = Journal(self.folder, fsync)
        self._lock = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unwritable(self.folder, error) from None

    def insert_designer_or_coder_record(
        self,
        res: str,
        prompt: str,
        reasoning: str,
        action_type: ActionType,
        *,
        call: Call = NO_CALL,
    ) -> Record:
        """A model wrote: its answer, the whole prompt, its reasoning."""
        if action_type not in WRITING:
            raise ValueError(f"{action_type} is no step in which a designer or coder writes")
        answer = read_answer(res)
        texts = {
            "result": answer.text() if answer else UNREAD + res,
            "prompt": prompt,
            "reasoning": reasoning,
            "answer": res,
        }
        return self._insert("agent", action_type.name, texts, True, parsed=bool(answer), call=call)

    def insert_verifier_record(
        self,
        verify_res: str,
        verify_log: str,
        profile: str,
        action_type: ActionType = ActionType.VERIFY,
    ) -> Record:
        """A verification: its result, the whole log, the profile (JSON)."""
        if action_type is not ActionType.VERIFY:
            raise ValueError(f"{action_type} is no verification")
        texts = {"result": str(verify_res), "error_log": verify_log, "profile": profile}
        return self._insert(
            "verifier", action_type.name, texts, True, verdict=self._redact(str(verify_res))[:200]
        )

    def insert_conductor_record(
        self,
        res: str,
        prompt: str,
        reasoning: str,
        action_type: ActionType,
        *,
        call: Call = NO_CALL,
    ) -> Record:
        """The conductor looked at the step that was recorded last."""
        if action_type not in CHECKS:
            raise ValueError(f"the conductor does not look at {action_type}")
        texts = {"result": res, "prompt": prompt, "reasoning": reasoning}
        return self._insert("conductor", CHECKS[action_type], texts, False, call=call)

    def insert_exit_record(self, verdict: str) -> Record:
        """The task is over."""
        return self._insert(
            "exit", ActionType.EXIT.name, {}, True, verdict=self._redact(verdict)[:200]
        )

    def insert_verify_files(
        self, step: int, framework: str, impl_type: str, reference: str, kernel: str, script: str
    ) -> Path:
        """What a verification ran, as files of its own: the reference, the kernel, the script."""
        folder = self.folder / f"I{safe_name(self.task_id)}_S{step:02d}_verify"
        op = safe_name(self.op_name)
        for name, text in (
            (f"{op}_{safe_name(framework)}.py", reference),
            (f"{op}_{safe_name(impl_type)}.py", kernel),
            (f"verify_{op}.py", script),
        ):
            self._write(folder / name, self._redact(text).encode("utf-8", "backslashreplace"))
        return folder

    def _insert(
        self,
        role: str,
        action: str,
        texts: Mapping[str, str],
        new_step: bool,
        *,
        parsed: bool = True,
        verdict: str = "",
        call: Call = NO_CALL,
    ) -> Record:
        clean = {name: self._redact(text) for name, text in texts.items() if text}

        def make(step: int, parent: str) -> Record:
            kept = {
                name: self._keep(role, step, action, name, text) for name, text in clean.items()
            }
            return Record(
                id=uuid.uuid4().hex,
                task=self.task_id,
                op=self.op_name,
                step=step,
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

    def _keep(self, role: str, step: int, action: str, name: str, text: str) -> Kept:
        """Write a text and say where; what has no file of its own is kept by its content."""
        data = text.encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(data).hexdigest()
        if name == "answer":
            if len(data) <= _INLINE:
                return Kept("", digest, len(data), text)
            path = Path("blobs", digest[:2], f"{digest}.txt")
            if not (self.folder / path).exists():
                self._write(self.folder / path, data)
        else:
            ending = "json" if name == "profile" else "txt"
            stem = f"I{safe_name(self.task_id)}_S{step:02d}_{safe_name(self.op_name)}"
            path = Path(f"{stem}_{action}_{name}.{ending}")
            if role == "conductor":
                path = "conductor" / path
                path = self._free(path)
            self._write(self.folder / path, data)
        return Kept(path.as_posix(), digest, len(data))

    def _free(self, path: Path) -> Path:
        """The conductor may look at a step twice; the second look has files of its own."""
        found, number = path, 1
        while (self.folder / found).exists():
            number += 1
            found = path.with_name(f"{path.stem}_{number}{path.suffix}")
        return found

    def _write(self, path: Path, data: bytes) -> None:
        """Whole or not at all: beside its place first, then under its name."""
        beside = path.parent / f".{os.getpid()}.{threading.get_ident()}.{os.urandom(4).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(beside, flags, 0o666)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(beside, flags, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                if self._fsync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(beside, path)
        except OSError:
            beside.unlink(missing_ok=True)
            raise


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        str(path),
        error.strerror or type(error).__name__,
        Text("a folder that can be written", "可写的文件夹"),
        Text("choose another log_dir, or make room", "请换一个 log_dir，或腾出空间"),
    )
