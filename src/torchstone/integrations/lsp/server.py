"""The server: what an editor tells and asks, over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from torchstone._version import __version__
from torchstone.core.errors import TorchstoneError
from torchstone.integrations.lsp import documents
from torchstone.lint.options import CheckOptions

_PAUSE_SECONDS = 0.25
"""After a key: people type a word in about this time, and a check of each letter would be wasted."""

LoadOptions = Callable[[Path], CheckOptions]
"""The settings that hold for files of a folder."""


class CheckServer:
    """The open documents with what was last said of them."""

    def __init__(self, load_options: LoadOptions, lang: str) -> None:
        self.wire = LanguageServer("torchstone", __version__)
        self.checked: dict[str, documents.Checked] = {}
        self._load_options = load_options
        self._lang = lang
        self._listen()

    def _listen(self) -> None:
        """pygls writes on what it is given, which methods refuse: functions stand between."""
        feature = self.wire.feature

        @feature(types.TEXT_DOCUMENT_DID_OPEN)
        def _(given: types.DidOpenTextDocumentParams) -> None:
            self.check(given.text_document.uri)

        @feature(types.TEXT_DOCUMENT_DID_CHANGE)
        async def _(given: types.DidChangeTextDocumentParams) -> None:
            await self.check_when_quiet(given.text_document.uri, given.text_document.version)

        @feature(types.TEXT_DOCUMENT_DID_CLOSE)
        def _(given: types.DidCloseTextDocumentParams) -> None:
            self.checked.pop(given.text_document.uri, None)
            self._publish(given.text_document.uri, None, [])

        @feature(types.TEXT_DOCUMENT_HOVER)
        def _(given: types.HoverParams) -> types.Hover | None:
            checked = self.checked.get(given.text_document.uri)
            return documents.hover(checked, given.position, self._lang) if checked else None

        kinds = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

        @feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
        def _(given: types.CodeActionParams) -> list[types.CodeAction]:
            checked = self.checked.get(given.text_document.uri)
            return documents.quick_fixes(checked, given.range, self._lang) if checked else []

    async def check_when_quiet(self, uri: str, version: int) -> None:
        """Check once nothing was typed for a moment."""
        await asyncio.sleep(_PAUSE_SECONDS)
        document = self.wire.workspace.text_documents.get(uri)
        if document is not None and document.version == version:
            self.check(uri)

    def check(self, uri: str) -> None:
        """Check one document and publish; cells of notebooks are not files of their own."""
        if not uri.startswith(("file:", "untitled:")):
            return
        document = self.wire.workspace.get_text_document(uri)
        given = to_fs_path(uri) if uri.startswith("file:") else None
        path = Path(given) if given else None
        try:
            options = self._load_options(path.parent if path else Path.cwd())
            found = documents.check_document(uri, document.version, path, document.source, options)
        except TorchstoneError as error:  # a wrong setting is reported to the user
            shown = types.ShowMessageParams(types.MessageType.Error, error.say(self._lang))
            self.wire.window_show_message(shown)
            return
        self.checked[uri] = found
        self._publish(uri, found.version, documents.diagnostics(found, self._lang))

    def _publish(self, uri: str, version: int | None, items: list[types.Diagnostic]) -> None:
        self.wire.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=items)
        )


def serve(load_options: LoadOptions, lang: str) -> None:
    """Answer until the editor ends the connection."""
    CheckServer(load_options, lang).wire.start_io()
