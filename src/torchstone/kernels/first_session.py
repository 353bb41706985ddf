"""The first session of a candidate: the problem's own inputs, then the families, then repetitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchstone.kernels import larger
from torchstone.kernels.calls import Call, Main
from torchstone.kernels.workshop import Session, SessionError

if TYPE_CHECKING:
    from torchstone.kernels.run import Run

FULL = 2
"""The level of sizes at which nothing is cut."""
MOST_WORK = 500
"""Above this many interpreted operations in one call the families run at smaller sizes."""
MOST_SIZED_WORK = 1500
"""Above this the families of sizes start from smaller ones, too."""
FEWER = 3
"""So many cases of each family are enough where they are dear."""
MOST_OWN_WORK = 1500
"""Above this only the first seed runs at the problem's own sizes."""
CHANGED = 1
"""The seed of the model whose weights are changed between calls."""


def run(verification: Run) -> Main:
    """Everything that the first session shows; the families only where its own inputs went well."""
    cases: list[dict[str, Any]] = verification.facts["cases"]
    main = Main()
    try:
        session, answer = verification.open(
            {"record": verification.candidate.implementation == "c"}
        )
        if "error" in answer:
            main.load_error = answer["error"]
            return main
        for seed in range(verification.seeds):
            built = verification.build(session, seed)
            if "error" in built:
                main.build_error = built["error"]
                return main
            main.named &= built["known"] or not built["weights"]
            main.weights = built["weights"]
    except SessionError as error:
        main.ended = error.ended
        return main
    _Course(verification, main, session).take(cases)
    if session.ended is None:
        session.end(late=True)
    return main


@dataclass(slots=True)
class _Course:
    """A candidate that has been built, and what it has shown so far."""

    run: Run
    main: Main
    session: Session

    def take(self, cases: list[dict[str, Any]]) -> None:
        """All of it, as far as the session lives."""
        self._own(cases)
        if all(call.right and _clean(call) for call in self.main.own):
            self._families()
            if self.session.ended is None:
                self._repetitions()

    def _own(self, cases: list[dict[str, Any]]) -> None:
        """The problem's own inputs; an interpreter that would take too long gets them smaller."""
        self.main.own.append(self.run.call(self.session, cases[0]))
        rest = cases[1:]
        if self.main.own[0].work > MOST_OWN_WORK and self.main.own[0].right:
            rest = self._smaller("own_small") or rest
            self.main.small_own = rest is not cases[1:]
        for case in rest:
            if self.main.own[-1].ended is not None:
                return
            self.main.own.append(self.run.call(self.session, case))

    def _smaller(self, do: str, **more: int) -> list[dict[str, Any]] | None:
        """Cases at the smallest sizes that the candidate does not refuse."""
        for level in range(FULL):
            plan, _ = self.run.ask_referee(do, None, level=level, **more)
            probe = self.run.call(self.session, plan["cases"][0])
            if probe.error is None and probe.ended is None:
                found: list[dict[str, Any]] = plan["cases"]
                self.main.skipped |= plan.get("skipped", {})
                return found
            if probe.ended is not None:
                return None
        return None

    def _families(self) -> None:
        work = max(call.work for call in self.main.own)
        size_level = 0 if work > MOST_SIZED_WORK else FULL
        cases = None
        most = FEWER if work > MOST_WORK else 0
        if work > MOST_WORK:
            cases = self._smaller("plan", size_level=size_level, most=most)
            self.main.small = cases is not None
        if cases is None and self.session.ended is None:
            plan, _ = self.run.ask_referee("plan", level=FULL, size_level=size_level, most=most)
            cases = plan["cases"]
            self.main.skipped |= plan["skipped"]
        for case in cases or []:
            self.main.families.append(self.run.call(self.session, case))
            if self.main.families[-1].ended is not None:
                return
        if all(call.right or call.refused for call in self.main.families):
            self._larger(size_level)

    def _larger(self, level: int) -> None:
        """Sizes beyond the problem's own, and then every length, as many as an interpreter can do."""
        compiled = self.run.candidate.implementation in ("c", "numba") and not self.run.interpreted
        plan, _ = self.run.ask_referee("larger", level=level, long=larger.LONG if compiled else 0)
        self._walk(plan, level, larger.MOST_WORK)
        if self.session.ended is None and all(
            call.right or call.refused for call in self.main.families
        ):
            longest = 0 if self.run.interpreted else larger.LONGEST
            plan, _ = self.run.ask_referee("lengths", longest=longest)
            self._walk(plan, level, larger.MOST_LENGTHS_WORK)

    def _walk(self, plan: dict[str, Any], level: int, most_work: int) -> None:
        """Call cases of growing sizes, until so many interpreted operations are spent."""
        self.main.skipped |= plan["skipped"]
        cut = [call for call in self.main.families if not call.resized and level != FULL]
        dearest = max(cut, key=lambda call: call.work, default=self.main.own[0])
        seen = [dearest, *(call for call in self.main.families if call.right)]
        waiting = larger.Larger.plan(
            plan["cases"], [(call.sizes, call.work) for call in seen], most_work
        )
        while case := waiting.take():
            call = self.run.call(self.session, case)
            self.main.families.append(call)
            if call.ended is not None:
                return
            waiting.done(case, call.work)
        self.main.left_out += waiting.left_out

    def _repetitions(self) -> None:
        first = self.run.as_case(self.main.steady)
        for _ in range(2):
            self.main.repeated.append(self.run.call(self.session, first))
            if self.main.repeated[-1].ended is not None:
                return
        self.main.swapped, self.main.swapped_differs = self.run.call_exchanged(self.session, first)
        if self.main.swapped.ended is not None:
            return
        chosen = {call.family: call for call in self.main.calls if call.right}
        for call in (chosen.get(name) for name in ("own", "prime", "strided")):
            if call is None:
                continue
            again = self.run.call(self.session, self.run.as_case(call), fill="big")
            self.main.refilled.append((call, again))
            if again.ended is not None:
                return
        if self.main.weights and self.main.named:
            self._reweighings()

    def _reweighings(self) -> None:
        """A model that has been called before is given other weights and called again."""
        plan, _ = self.run.ask_referee("ways")
        for item in plan["ways"]:
            known = next(call for call in self.main.own if call.seed == item["seed"])
            tree, buffers = self.run.ask_referee("weights", seed=item["seed"])
            try:
                done, _ = self.session.ask({"do": "reweigh", "way": item["way"], "tree": tree}, buffers,
                                      seconds=self.run.timeout_seconds)  # fmt: skip
            except SessionError:
                return
            if "error" in done:
                call = Call(known.number, known.family, known.seed, known.shapes, reply=done)
            else:
                call = self.run.call(self.session, self.run.as_case(known), model=CHANGED)
            self.main.reweighed.append((item["way"], call))
            if call.ended is not None or call.error is not None:
                return


def _clean(call: Call) -> bool:
    """Nothing was seen that fails the candidate whatever the families say."""
    return not any(call.reply[name] for name in ("operators", "faults", "zones"))
