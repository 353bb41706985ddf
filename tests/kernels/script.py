"""Answers for a server that plays the agents of the loop, and a verifier that reads one line."""

from __future__ import annotations

import json

from torchstone.core.text import Text
from torchstone.kernels.candidate import Candidate
from torchstone.kernels.gate_result import GateResult
from torchstone.kernels.generation.loop import Settings
from torchstone.kernels.problem import Problem, load_problem
from torchstone.kernels.verdicts.verdict import Verdict

WRONG = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x.clone()\n"
RIGHT = WRONG.replace("x.clone()", "x.clamp(min=0)")


def written(code: str, description: str = "as designed") -> str:
    return json.dumps({"code": code, "description": description})


def look(result: str, suggestions: str = "") -> str:
    return json.dumps({"result": result, "reason": "because", "suggestions": suggestions})


DESIGN, GO_ON, FIX = written("for each x: max(x, 0)"), look("go_on"), look("fix", "mend it")
CODER, DESIGNER = look("coder", "clamp it"), look("designer", "think again")


def settings(**changed: object) -> Settings:
    problem = load_problem("relu")
    given = {"model": "small", "implementation": "torch", **changed}
    return Settings(problem.name, problem.source, **given)  # type: ignore[arg-type]


def reads_one_line(problem: Problem, candidate: Candidate) -> Verdict:
    """A stand-in where only the order of steps is in question: a clamp is right."""
    good = "clamp" in candidate.source
    result = GateResult("oracle", "passed" if good else "failed", Text("wrong values", "数值错误"))
    return Verdict(problem, candidate, (result,), "accepted" if good else "rejected")
