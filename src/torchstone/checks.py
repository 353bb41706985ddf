"""For checks that `torchstone review --checks` runs: programs of the project as subjects of an experiment."""

from torchstone.conductor.experiments.checks.helpers import (
    CannotTellError,
    RecordedCall,
    RunRecord,
    compare,
    join_ranks,
    record,
    run,
    run_ranks,
)

__all__ = [
    "CannotTellError",
    "RecordedCall",
    "RunRecord",
    "compare",
    "join_ranks",
    "record",
    "run",
    "run_ranks",
]
