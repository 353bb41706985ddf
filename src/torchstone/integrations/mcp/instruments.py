"""Single experiments on a project, each one call, without a review."""

from __future__ import annotations

from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field

from torchstone.conductor import trials
from torchstone.conductor.choices import TextEdit
from torchstone.core.files import read_regular
from torchstone.integrations.mcp import answers as a
from torchstone.integrations.mcp.runs import Runs
from torchstone.integrations.mcp.tools import CHECK_FORM, READS, RUNS, add_tool
from torchstone.render import render

_MOST_FILE_BYTES = 4 << 20


def add_instruments(server: MCPServer, runs: Runs) -> None:
    """Single calls that need no review."""

    @add_tool(server, READS)
    def read_file(
        path: Annotated[str, Field(description="file of a project, below the server's root")],
        cursor: Annotated[int, Field(ge=0)] = 0,
    ) -> a.FileAnswer:
        """A page of a source file, as data."""
        text = read_regular(runs.file(path), _MOST_FILE_BYTES).decode("utf-8", "replace")
        end = cursor + a.MOST_TEXT
        return a.FileAnswer(
            text=a.Untrusted(text=text[cursor:end]), next_cursor=end if end < len(text) else None
        )

    @add_tool(server, RUNS)
    def observe_run(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        script: Annotated[str, Field(description="script of the project to start")],
        arguments: list[str] | None = None,
    ) -> a.ObservedAnswer:
        """Run a script in the sandbox for 20 s of CPU at most: its losses and learning rates, and every
        function of the project that ran with the shapes and types it was given."""
        root = runs.project(path)
        report = trials.observe_run(root, trials.Variant(script, tuple(arguments or ())))
        return a.ObservedAnswer(text=a.untrusted(render(report, "agent", lang="en")))

    @add_tool(server, RUNS)
    def run_experiments(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        script: Annotated[str, Field(description="script of the project to start")],
        arguments: list[str] | None = None,
        ranks: Annotated[
            bool, Field(description="two ranks against one process with the same data, instead")
        ] = False,
    ) -> a.ExperimentsAnswer:
        """Every built-in relation on a script with arguments of your choice: which are broken and where, which
        were decided and hold. What is in neither list could not be asked of this program."""
        root = runs.project(path)
        done = trials.run_relations(root, trials.Variant(script, tuple(arguments or ())), ranks)
        return a.ExperimentsAnswer(
            broken=[
                a.BrokenRow(
                    rule=item.rule,
                    severity=item.severity.value,
                    place=f"{item.path}:{item.line}",
                    said=a.untrusted(item.what.say("en")),
                )
                for item in done.broken
            ],
            held=list(done.held),
            said=a.untrusted(done.said),
        )

    @add_tool(server, READS)
    def call_graph(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        file: Annotated[str, Field(description="file of the project, relative to it")],
        line: Annotated[int, Field(ge=1)],
    ) -> a.GraphAnswer:
        """The function around a line: who calls it, what it calls, and whether it runs in every training step."""
        found = trials.look_around(runs.project(path), file, line)
        return a.GraphAnswer(
            function=found.function,
            every_step=found.every_step,
            callers=list(found.callers),
            calls=list(found.calls),
        )

    @add_tool(server, RUNS)
    def compare_variants(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        script: Annotated[str, Field(description="script of the project to start")],
        arguments: list[str] | None = None,
        other_arguments: Annotated[
            list[str] | None, Field(description="of the second run; the same by default")
        ] = None,
        other_edits: Annotated[
            list[TextEdit] | None, Field(description="made in the copy of the second run")
        ] = None,
        tolerance: Annotated[float, Field(ge=0)] = 1e-4,
    ) -> a.ComparedAnswer:
        """Run a script twice with one known difference and say at which step the losses part."""
        root = runs.project(path)
        first = tuple(arguments or ())
        second = first if other_arguments is None else tuple(other_arguments)
        done = trials.compare_variants(
            root,
            trials.Variant(script, first),
            trials.Variant(script, second, tuple(other_edits or ())),
            tolerance,
        )
        return a.ComparedAnswer(
            parts_at=done.parts_at if done.parts_at >= 0 else None,
            losses=list(done.one[:50]),
            other_losses=list(done.other[:50]),
            said=a.untrusted(done.said),
        )

    @add_tool(server, RUNS)
    def run_check(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        check: Annotated[str, Field(description=CHECK_FORM)],
        file: Annotated[str, Field(description="file of the project that it is about")] = "",
    ) -> a.CheckAnswer:
        """Run a check on a project in the sandbox: holds, broken or not decided."""
        root = runs.project(path)
        done = trials.try_check(root, trials.check_for(root, check, file))
        return a.CheckAnswer(state=done.state, said=a.untrusted(done.said))

    @add_tool(server, RUNS)
    def try_patch(
        path: Annotated[str, Field(description="folder of the project, below the server's root")],
        check: Annotated[str, Field(description=CHECK_FORM)],
        edits: list[TextEdit],
        file: Annotated[str, Field(description="file of the project that it is about")] = "",
    ) -> a.PatchAnswer:
        """Run a check before and after a change, and say whether the change is proven by it."""
        root = runs.project(path)
        done = trials.try_patch(root, trials.check_for(root, check, file), edits)
        return a.PatchAnswer(
            proven=done.proven,
            before=done.before.state,
            after=done.after.state,
            said=a.untrusted("; ".join(filter(None, (done.before.said, done.after.said)))),
            refused=done.refused,
            diff=a.untrusted(done.diff),
        )
