"""Nothing leaves a dry run: each way to send is tried against a listener that must stay silent."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dryrun.conftest import Run
from torchstone.core.report import Report
from torchstone.sandbox.network import can_close_network

pytestmark = pytest.mark.skipif(not can_close_network(), reason="no namespaces here")

START = (
    "import ctypes, os, socket, struct, subprocess, sys, tempfile, torch\nADDRESS = {address!r}\n"
)
TRY = "try:\n    {send}\nexcept OSError as error:\n    print(error)\n"
LIBC = "libc = ctypes.CDLL(None, use_errno=True)\n"
UDP_BYTES = (
    "struct.pack('<H', 2) + struct.pack('>H', ADDRESS[1]) + bytes([127, 0, 0, 1]) + bytes(8)"
)
UNIX_BYTES = "struct.pack('<H', 1) + ADDRESS.encode() + b'\\0'"


def one_line(*statements: str) -> str:
    return "; ".join(statements)


UDP = {
    "sendto": TRY.format(
        send="socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'secret', ADDRESS)"
    ),
    "connect and send": TRY.format(
        send=one_line(
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
            "s.connect(ADDRESS)",
            "s.send(b'secret')",
        )
    ),
    "sendmsg": TRY.format(
        send="socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b'secret'], [], 0, ADDRESS)"
    ),
    "libc sendto": LIBC
    + f"to = {UDP_BYTES}\n"
    + "libc.sendto(libc.socket(2, 2, 0), b'secret', 6, 0, to, len(to))\n",
    "another process": "subprocess.run([sys.executable, '-c', 'import socket; "
    'socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"secret", %r)\' % (ADDRESS,)])\n',
}
UNIX_STREAM = {
    "connect": TRY.format(
        send=one_line(
            "s = socket.socket(socket.AF_UNIX)", "s.connect(ADDRESS)", "s.sendall(b'secret')"
        )
    ),
    "libc connect": LIBC
    + f"to = {UNIX_BYTES}\ns = libc.socket(1, 1, 0)\n"
    + "libc.connect(s, to, len(to))\nlibc.send(s, b'secret', 6, 0x4000)\n",
    "another process": "subprocess.run([sys.executable, '-c', 'import socket; "
    's = socket.socket(socket.AF_UNIX); s.connect(%r); s.sendall(b"secret")\' % ADDRESS])\n',
    "a link in the scratch folder": TRY.format(
        send=one_line(
            "libc = ctypes.CDLL(None)",
            "link = tempfile.gettempdir() + '/link'",
            "libc.symlink(ADDRESS.encode(), link.encode())",
            "s = socket.socket(socket.AF_UNIX)",
            "s.connect(link)",
            "s.sendall(b'secret')",
        )
    ),
}
UNIX_DGRAM = {
    "sendto": TRY.format(
        send="socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'secret', ADDRESS)"
    ),
    "half of a pair": TRY.format(
        send="socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0].sendto(b'secret', ADDRESS)"
    ),
    "libc sendto": LIBC
    + f"to = {UNIX_BYTES}\n"
    + "libc.sendto(libc.socket(1, 2, 0), b'secret', 6, 0, to, len(to))\n",
}


@contextlib.contextmanager
def listening(family: int, kind: int, address: object) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as listener:
        listener.bind(address)  # type: ignore[arg-type]
        if kind == socket.SOCK_STREAM:
            listener.listen()
        yield listener


def heard(listener: socket.socket) -> bool:
    """Whether a message or a connection has come: local delivery is done when the sender returns."""
    return bool(select.select([listener], [], [], 0)[0])


def tried(report: Report) -> list[str]:
    measures = [item for item in report.measures if item.name == "refused_addresses"]
    return [str(row[0]) for item in measures for row in item.evidence[0].rows]  # type: ignore[union-attr]


@pytest.mark.parametrize("way", UDP)
def test_no_datagram_leaves(way: str, run: Run) -> None:
    with listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        report = run(START.format(address=address) + UDP[way])
        assert not report.findings
        assert not heard(listener)
    assert f"127.0.0.1:{address[1]}" in tried(report)


@pytest.mark.parametrize("way", UNIX_STREAM)
def test_no_unix_socket_outside_the_scratch_folder_is_reached(
    way: str, run: Run, tmp_path: Path
) -> None:
    path = str(tmp_path / "listener")
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path) as listener:
        report = run(START.format(address=path) + UNIX_STREAM[way])
        assert not report.findings
        assert not heard(listener)
    assert any("listener" in item or "link" in item for item in tried(report))


@pytest.mark.parametrize("way", UNIX_DGRAM)
def test_no_unix_datagram_leaves(way: str, run: Run, tmp_path: Path) -> None:
    path = str(tmp_path / "listener")
    with listening(socket.AF_UNIX, socket.SOCK_DGRAM, path) as listener:
        report = run(START.format(address=path) + UNIX_DGRAM[way])
        assert not report.findings
        assert not heard(listener)
    assert tried(report)


def test_an_abstract_socket_is_not_reached(run: Run, tmp_path: Path) -> None:
    name = f"\0torchstone-{tmp_path.name}"
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, name) as listener:
        report = run(START.format(address=name) + UNIX_STREAM["connect"])
        assert not heard(listener)
    assert any(item.startswith("unix:@torchstone-") for item in tried(report))


@pytest.mark.parametrize(
    "call",
    ["socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", "socket.socket(40, socket.SOCK_STREAM)"],
    ids=["raw", "to the host of a virtual machine"],
)
def test_sockets_around_the_namespace_are_refused(call: str, run: Run) -> None:
    text = START.format(address="") + TRY.format(send=call).replace("error)", "error.errno)")
    report = run(
        text + f"try:\n    {call}\nexcept OSError:\n    pass\nelse:\n    raise SystemExit(5)\n"
    )
    assert not report.gaps, report.gaps


def test_the_first_namespace_cannot_be_entered_again(run: Run) -> None:
    text = LIBC.replace("libc =", "import ctypes, os, torch\nlibc =", 1) + (
        "handle = os.open('/proc/1/ns/net', os.O_RDONLY) if os.access('/proc/1/ns/net', os.R_OK) else 0\n"
        "if libc.setns(handle, 0x40000000) == 0 or libc.unshare(0x10000000) == 0:\n"
        "    raise SystemExit(5)\n"
    )
    assert not run(text).gaps


def test_what_a_program_says_to_itself_arrives(run: Run) -> None:
    text = START.format(address="") + (
        "a, b = socket.socketpair()\na.sendall(b'x')\nassert b.recv(1) == b'x'\n"
        "server = socket.create_server(('127.0.0.1', 0))\n"
        "client = socket.create_connection(server.getsockname())\n"
        "client.sendall(b'y')\nassert server.accept()[0].recv(1) == b'y'\n"
        "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nu.bind(('localhost', 0))\n"
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'z', u.getsockname())\n"
        "assert u.recv(1) == b'z'\n"
        "place = tempfile.mkdtemp() + '/own'\n"
        "own = socket.socket(socket.AF_UNIX)\nown.bind(place)\nown.listen()\n"
        "other = socket.socket(socket.AF_UNIX)\nother.connect(place)\nother.sendall(b'w')\n"
        "assert own.accept()[0].recv(1) == b'w'\n"
    )
    report = run(text)
    assert not report.findings
    assert not report.gaps
    assert not tried(report)


def test_names_of_this_machine_are_known(run: Run) -> None:
    text = (
        "import socket, torch\n"
        "assert socket.gethostbyname('localhost').startswith('127.')\n"
        "assert socket.gethostbyname(socket.gethostname())\n"
        "assert socket.getaddrinfo(socket.gethostname(), 80)\n"
        "socket.gethostbyname('example.com')\n"
    )
    report = run(text)
    (gap,) = report.gaps
    assert "needs the network" in gap.reason.say("en")
    assert gap.location is not None
    assert gap.location.line == 5
    assert tried(report) == ["example.com"]


def test_gloo_meets_on_loopback(run: Run) -> None:
    text = (
        "import torch, torch.distributed as dist\n"
        "store = dist.TCPStore('127.0.0.1', 0, is_master=True)\n"
        "other = dist.TCPStore('127.0.0.1', store.port, is_master=False)\n"
        "other.set('key', 'value')\nassert store.get('key') == b'value'\n"
        "group = dist.ProcessGroupGloo(store, 0, 1)\n"
        "group.barrier().wait()\n"
    )
    report = run(text)
    assert not report.findings
    assert not report.gaps


def test_a_service_of_this_machine_that_is_not_there_is_no_fault(run: Run) -> None:
    report = run("import socket, torch\nsocket.create_connection(('localhost', 8097))\n")
    (gap,) = report.gaps
    assert "needs the network" in gap.reason.say("en")
    assert "127.0.0.1:8097" in tried(report)
