"""A chat server on loopback that speaks the real protocol, and misbehaves on demand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behave = Callable[[BaseHTTPRequestHandler, dict[str, Any], int], None]


class Server:
    """What was asked, and where to ask."""

    def __init__(self, behave: Behave) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.behave = behave
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.asked.append(body)
                outer.headers.append(dict(self.headers))
                self.close_connection = True
                outer.behave(self, body, len(outer.asked))

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextmanager
    def open(self) -> Iterator[Server]:
        thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()
            thread.join()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def completion(text: str, **message: Any) -> bytes:
    return json.dumps(
        {
            "id": "c1",
            "object": "chat.completion",
            "model": "small",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text, **message},
                }
            ],
            "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
        }
    ).encode()


def says(*texts: str) -> Behave:
    """Answers in turn; the last one for ever."""

    def behave(handler: BaseHTTPRequestHandler, body: dict[str, Any], number: int) -> None:
        text = texts[min(number, len(texts)) - 1]
        if body.get("stream"):
            stream(handler, [*_pieces(text), "[DONE]"])
        else:
            send(handler, 200, completion(text))

    return behave


def _pieces(text: str) -> list[str]:
    parts = [text[i : i + 3] for i in range(0, len(text), 3)] or [""]
    made = [json.dumps({"choices": [{"delta": {"content": part}}]}) for part in parts]
    made.append(json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}))
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    made.append(json.dumps({"choices": [], "usage": usage, "model": "small"}))
    return made


def stream(handler: BaseHTTPRequestHandler, events: list[str], pause: float = 0.0) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Connection", "close")
    handler.end_headers()
    for event in events:
        handler.wfile.write(f": ping\n\ndata: {event}\n\n".encode())
        handler.wfile.flush()
        time.sleep(pause)
