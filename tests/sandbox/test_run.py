"""A command behind walls: it changes one folder, sees no secrets, reaches nobody, leaves nothing."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from torchstone.sandbox.cell import is_system_root
from torchstone.sandbox.namespaces import process_namespaces
from torchstone.sandbox.run import Finished, give_to_nobody, is_confined, run_confined

pytestmark = pytest.mark.skipif(not is_confined(), reason="this system offers no walls")
needs_namespaces = pytest.mark.skipif(not process_namespaces(), reason="no namespaces here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "scratch"
    place.mkdir()
    for above in (tmp_path, *tmp_path.parents):  # what root starts runs as nobody
        if above.stat().st_uid == os.getuid() and len(above.parts) > 2:
            above.chmod(above.stat().st_mode | 0o011)
    give_to_nobody(place)
    return place


def run(code: str, folder: Path, seconds: float = 60.0) -> Finished:
    return run_confined([sys.executable, "-c", code], folder, seconds=seconds)


def test_writes_stay_in_the_folder(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("kept")
    outside.chmod(0o666)
    # below /tmp it may write to an empty folder of its own that has the same name
    run(f"open('a','w').write('x'); open({str(outside)!r},'w').write('changed')", folder)
    assert (folder / "a").read_text() == "x"
    assert outside.read_text() == "kept"


def test_files_of_the_user_are_not_read(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden words")
    secret.chmod(0o644)
    done = run(f"print(open({str(secret)!r}).read())", folder)
    assert done.exit_code == 1
    assert "hidden words" not in done.output


def test_what_is_named_readable_is_read_and_not_written(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("words")
    code = f"p={str(data / 'a.txt')!r}; print(open(p).read()); open(p, 'w')"
    done = run_confined([sys.executable, "-c", code], folder, seconds=60, readable=(data,))
    assert "words" in done.output
    assert done.exit_code == 1
    assert (data / "a.txt").read_text() == "words"


def test_keys_do_not_reach_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key")
    done = run(
        "import os; print(os.environ); print(open('/proc/self/environ').read());"
        "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n"
        "    try: print(open(p).read())\n    except OSError: pass",
        folder,
    )
    assert done.well
    assert "very-secret" not in done.output


def test_a_server_of_this_machine_is_not_reached(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        reached = threading.Event()

        def accept() -> None:
            server.accept()
            reached.set()

        threading.Thread(target=accept, daemon=True).start()
        port = server.getsockname()[1]
        done = run(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)", folder)
        assert done.exit_code == 1
        assert not reached.is_set()


@needs_namespaces
def test_no_datagram_and_no_abstract_socket_reaches_this_machine(folder: Path) -> None:
    name = f"\0torchstone-{folder.parent.name}"
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract,
    ):
        udp.bind(("127.0.0.1", 0))
        abstract.bind(name)
        code = (
            f"import socket as s\nfor kind, to in ((s.AF_INET, {udp.getsockname()!r}), (s.AF_UNIX, {name!r})):\n"
            "    try: s.socket(kind, s.SOCK_DGRAM).sendto(b'secret', to)\n    except OSError: pass\n"
        )
        assert run(code, folder).well
        assert not select.select([udp, abstract], [], [], 0)[0]


@needs_namespaces
def test_processes_of_the_command_talk_to_each_other(folder: Path) -> None:
    code = (
        "import socket\ns=socket.create_server(('127.0.0.1',0))\n"
        "c=socket.create_connection(s.getsockname()); c.sendall(b'x')\nprint(s.accept()[0].recv(1))"
    )
    assert "b'x'" in run(code, folder).output


@needs_namespaces
def test_nothing_is_left_running(folder: Path) -> None:
    name = "torchstone_left_behind"
    code = f"import os,time\nif os.fork(): os._exit(0)\nos.setsid(); time.sleep(600)  # {name}"
    assert run(code, folder).well
    commands = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(entry.read_bytes())
        except OSError:
            continue
    assert not any(name.encode() in command for command in commands)


def test_a_command_that_does_not_end_is_ended(folder: Path) -> None:
    done = run("while True: pass", folder, seconds=1.0)
    assert done.late
    assert not done.well


def test_a_crash_is_told_as_shells_do(folder: Path) -> None:
    assert run("import os; os.abort()", folder).exit_code == 134


@needs_namespaces
def test_other_programs_sockets_are_hidden(folder: Path, tmp_path: Path) -> None:
    if not str(tmp_path).startswith("/tmp/"):
        pytest.skip("the temporary folder is elsewhere")
    path = tmp_path / "agent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        path.chmod(0o777)
        code = f"import socket; s=socket.socket(socket.AF_UNIX); s.connect({str(path)!r})"
        done = run(code, folder)
        assert done.exit_code == 1
        assert "FileNotFoundError" in done.output


@needs_namespaces
def test_modes_and_times_of_other_files_stay(folder: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("x")
    mine.chmod(0o640)
    data = tmp_path / "data"
    data.mkdir()
    (data / "a.txt").write_text("x")
    for path in (mine, data / "a.txt"):
        os.utime(path, (1, 1))
        if is_system_root():
            os.chown(path, 65534, 65534)  # the command runs as this user: only the walls are left
    code = (
        "import os\nfor p in ({!r}, {!r}):\n"
        "    for act in (lambda: os.chmod(p, 0o777), lambda: os.utime(p, (5, 5))):\n"
        "        try: act(); print('DONE', p)\n        except OSError as e: print(e.errno)\n"
        "open('own', 'w'); os.chmod('own', 0o600); os.utime('own', (5, 5)); print('OWN')"
    ).format(str(mine), str(data / "a.txt"))
    done = run_confined([sys.executable, "-c", code], folder, seconds=60, readable=(data,))
    assert "DONE" not in done.output
    assert "OWN" in done.output, done.output
    assert mine.stat().st_mode & 0o777 == 0o640
    assert mine.stat().st_mtime == 1


@needs_namespaces
def test_a_socket_anywhere_else_is_hidden(folder: Path) -> None:
    import tempfile

    root = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(dir=root) as place, socket.socket(socket.AF_UNIX) as server:
        Path(place).chmod(0o755)
        path = os.path.relpath(Path(place) / "agent.sock")
        server.bind(path)
        server.listen()
        Path(path).chmod(0o777)
        full = str(Path(place) / "agent.sock")
        done = run(
            f"import socket; s=socket.socket(socket.AF_UNIX); s.connect({full!r}); print('IN')",
            folder,
        )
        assert "IN" not in done.output
        assert done.exit_code == 1


def test_a_namespace_by_clone_is_refused(folder: Path) -> None:
    code = (
        "import ctypes, os, platform\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "number = {'x86_64': 56, 'aarch64': 220}[platform.machine()]\n"
        "done = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)\n"
        "os._exit(0) if done == 0 else print('refused', done, ctypes.get_errno())"
    )
    assert "refused -1 1" in run(code, folder).output


@needs_namespaces
def test_a_socket_to_the_host_is_refused(folder: Path) -> None:
    code = (
        "import socket\n"
        "try: socket.socket(40, socket.SOCK_STREAM); print('open')\n"
        "except OSError as error: print('refused', error.errno)\n"
        "socket.socket(socket.AF_INET); print('own network')"
    )
    done = run(code, folder)
    assert "refused 1" in done.output
    assert "own network" in done.output


def test_the_number_of_processes_has_a_limit(folder: Path) -> None:
    done = run("import resource; print(resource.getrlimit(resource.RLIMIT_NPROC))", folder)
    assert "(4096, 4096)" in done.output or int(done.output.split(",")[1].strip(" )\n")) < 4096


def test_a_command_that_fills_the_disk_is_ended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torchstone.sandbox.run._DISK_BYTES", 4 << 20)
    monkeypatch.setattr("torchstone.sandbox.run._LOOK_SECONDS", 0.2)
    code = "import os, time\nopen('large', 'wb').write(os.urandom(8 << 20))\ntime.sleep(60)"
    done = run(code, folder)
    assert not done.late
    assert "wrote more than it may" in done.output


def test_a_command_ends_with_its_caller(folder: Path) -> None:
    """The caller is killed: nobody is left to end what it started."""
    command = [sys.executable, "-c", "import time\nwhile True: open('tick', 'a').write('x'); time.sleep(0.1)"]  # fmt: skip
    code = (
        "from pathlib import Path; from torchstone.sandbox.run import run_confined; "
        f"run_confined({command!r}, Path({str(folder)!r}), seconds=600)"
    )
    caller = subprocess.Popen([sys.executable, "-c", code])
    tick = folder / "tick"
    while not tick.exists():
        assert caller.poll() is None
        time.sleep(0.05)
    caller.kill()
    caller.wait()
    sizes = [-1, tick.stat().st_size]
    while sizes[-1] != sizes[-2]:  # it stops to grow, or this never ends
        time.sleep(0.5)
        sizes.append(tick.stat().st_size)
