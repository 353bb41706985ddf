"""The first session of a candidate: the problem's own inputs, then the families, then repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchstone.kernels.messages.facts import PlannedCase, Told
from torchstone.kernels.messages.to_candidate import CallOptions, Mode, Reply, Reweigh
from torchstone.kernels.messages.to_referee import (
    Done,
    FindSettings,
    FindWays,
    GiveWeights,
    PlanFamilies,
    PlanLarger,
    PlanLengths,
    Planned,
    PlanOwnSmall,
    PlanSlender,
    Settings,
    Ways,
    Weights,
)
from torchstone.kernels.sessions import larger
from torchstone.kernels.sessions.calls import POISONED, REARRANGED, Call, Main
from torchstone.kernels.sessions.limits import LimitError
from torchstone.kernels.sessions.processes import Processes
from torchstone.kernels.sessions.workshop import Session, SessionError

FULL = 2
"""The level of sizes at which nothing is cut that can be held."""
WHOLE = 3
"""The level at which nothing is cut at all."""
MOST_WORK = 500
"""Above this many interpreted operations in one call the families run at smaller sizes."""
MOST_SIZED_WORK = 1500
"""Above this the families of sizes start from smaller ones, too."""
FEWER = 3
"""So many cases of each family are enough where they are costly."""
MOST_FAMILIES_WORK = 30000
"""When so many interpreted operations are spent, no further case of a family is begun."""
MOST_HEAVY = 12
"""Cases of other sizes that are tried where each is costly."""
MOST_SMALL_WORK = 1500
"""Above this for a call where everything is small, everything becomes tiny."""
TINY = -2
"""The level of sizes for what is costly even where everything is small."""
MOST_OWN_WORK = 1500
"""Above this only the first seed runs at the problem's own sizes."""
BURST = 9
"""So many calls come one right after the other."""
MOST_BURST_WORK = 400
"""Above this many interpreted operations a burst is shorter, down to two calls."""
MOST_BURSTS_WORK = 1500
"""Above this no further setting is tried."""
TIMES = 256
"""So often one question is asked again, where nothing is interpreted."""
MOST_BLOCK = 1 << 14
"""No device holds more in one program; larger constants are sizes."""
CHANGED = 1
"""The seed of the model whose weights are changed between calls."""


def run(verification: Processes) -> Main:
    """Everything that the first session shows; the families only where its own inputs went well."""
    cases = verification.facts.cases
    main = Main()
    try:
        mode = Mode(record=verification.candidate.implementation == "c")
        session, opened = verification.open(mode)
        if isinstance(opened, Told):
            main.load_error = opened
            return main
        for seed in range(verification.seeds):
            built = verification.build(session, seed)
            if isinstance(built, Told):
                main.build_error = built
                return main
            main.named &= built.known or not built.weights
            main.weights = built.weights
        _Course(verification, main, session).take(cases)
        if main.own[0].turned_away and verification.use_larger_inputs():
            session.end(late=True)
            return run(verification)
    except SessionError as error:
        main.ended = error.ended
        return main
    except LimitError as error:
        main.limit = error.what
        return main
    if session.ended is None:
        session.end(late=True)
    return main


@dataclass(slots=True)
class _Course:
    """A candidate that has been built, and what it has shown so far."""

    run: Processes
    main: Main
    session: Session
    probes: list[Call] = field(default_factory=list)
    """Calls that showed how costly a smaller size is."""

    def take(self, cases: list[PlannedCase]) -> None:
        """All of it, as far as the session lives."""
        self._own(cases)
        if all(call.right and _clean(call) for call in self.main.own):
            self._families()
            if self.session.ended is None:
                self._repetitions()

    def _own(self, cases: list[PlannedCase]) -> None:
        """The problem's own inputs; an interpreter that would take too long gets them smaller."""
        self.main.own.append(self.run.call(self.session, cases[0]))
        rest = cases[1:]
        costly = self.main.own[0].work > MOST_OWN_WORK and not self.run.own_sizes
        if costly and self.main.own[0].right:
            rest = self._smaller(PlanOwnSmall) or rest
            self.main.small_own = rest is not cases[1:]
        for case in rest:
            if self.main.own[-1].ended is not None:
                return
            self.main.own.append(self.run.call(self.session, case))

    def _smaller(
        self, question_for: Callable[[int], PlanOwnSmall | PlanFamilies]
    ) -> list[PlannedCase] | None:
        """Cases at the smallest sizes that the candidate does not refuse."""
        found: list[PlannedCase] | None = None
        work = 0
        for level in (*range(FULL), TINY):
            if found and (level != TINY or work <= MOST_SMALL_WORK):
                continue
            plan = self.run.ask_referee(question_for(level), Planned)
            tried = self.run.call(self.session, plan.cases[0])
            if tried.ended is not None:
                return None
            if tried.error is None:
                self.probes.append(tried)
                work, found = tried.work, plan.cases
                self.main.skipped |= plan.skipped
        return found

    def _families(self) -> None:
        work = max(call.work for call in self.main.own)
        size_level = 0 if work > MOST_SIZED_WORK else FULL
        cases = None
        most = 1 if self.run.facts.heavy else FEWER if work > MOST_WORK else 0
        if self.run.own_sizes:
            cases = self._of_own_sizes(most)
        elif work > MOST_WORK:
            cases = self._smaller(lambda level: PlanFamilies(level, size_level, most))
            self.main.small = cases is not None
        if cases is None and self.session.ended is None:
            cases = self._as_large_as_held(size_level, most)
        if self.run.own_layouts:
            cases = [case for case in cases or [] if case.family not in REARRANGED]
        left = MOST_FAMILIES_WORK
        for case in _in_rounds(cases or []) if most else cases or []:
            if left <= 0:
                self.main.left_out += 1
                continue
            self.main.families.append(self.run.call(self.session, case))
            left -= self.main.families[-1].work
            if self.main.families[-1].ended is not None:
                return
        if self.run.own_sizes:
            return
        if self._well():
            self._slender()
        if self._well():
            self._larger(size_level)

    def _of_own_sizes(self, most: int) -> list[PlannedCase]:
        """Families of values and layouts; none of other sizes."""
        plan = self.run.ask_referee(PlanFamilies(WHOLE, 0, most or FEWER), Planned)
        self.main.skipped |= plan.skipped
        return [case for case in plan.cases if not case.resized]

    def _as_large_as_held(self, size_level: int, most: int) -> list[PlannedCase]:
        """Cases at the problem's own sizes, or smaller where these are too large for whole families;
        one of each family at its own sizes for a candidate that takes no others."""
        plan = self.run.ask_referee(PlanFamilies(FULL, size_level, most), Planned)
        if plan.cut:
            tried = self.run.call(self.session, plan.cases[0])
            self.main.small = tried.error is None
            if not self.main.small:
                plan = self.run.ask_referee(PlanFamilies(WHOLE, 0, 1), Planned)
        self.main.skipped |= plan.skipped
        return plan.cases

    def _afforded(self, cases: list[PlannedCase]) -> list[PlannedCase]:
        """All cases of a plan, or evenly chosen ones where each costs much."""
        if not self.run.facts.heavy or len(cases) <= MOST_HEAVY:
            return cases
        self.main.left_out += len(cases) - MOST_HEAVY
        return [cases[i * len(cases) // MOST_HEAVY] for i in range(MOST_HEAVY)]

    def _well(self) -> bool:
        """The session lives, and nothing was answered wrongly so far."""
        return self.session.ended is None and all(
            call.right or call.refused for call in self.main.families
        )

    def _slender(self) -> None:
        """One side at a time, short and then long, beside the shortest others."""
        plan = self.run.ask_referee(PlanSlender(2 * largest_block(self.main.own)), Planned)
        costs = larger.Slender()
        for case in self._afforded(plan.cases):
            if costs.expected(case) > costs.left:
                self.main.left_out += 1
                continue
            call = self._made_anew(case)
            self.main.families.append(call)
            if call.ended is not None:
                return
            costs.done(case, call.work)

    def _made_anew(self, case: PlannedCase) -> Call:
        """The case, by a model that is made with other arguments where the case needs one."""
        if case.seed >= self.run.seeds:
            try:
                built = self.run.build(self.session, case.seed)
            except SessionError as error:
                return Call(case, ended=error.ended)
            if isinstance(built, Told):
                return Call(case, Reply(built))
        return self.run.call(self.session, case)

    def _larger(self, level: int) -> None:
        """Sizes beyond the problem's own, and then every length, as many as an interpreter can do."""
        # a program of Triton may take thousands of elements at once: few of them go that far;
        # a thread of a simulated device takes one
        compiled = self.run.candidate.implementation in ("c", "numba") and not self.run.interpreted
        far = compiled or self.run.candidate.implementation == "triton"
        plan = self.run.ask_referee(PlanLarger(level, larger.LONG if far else 0), Planned)
        self._walk(plan, level, larger.MOST_WORK)
        if self._well():
            longest = 0 if self.run.interpreted else larger.LONGEST
            plan = self.run.ask_referee(PlanLengths(longest), Planned)
            self._walk(plan, level, larger.MOST_LENGTHS_WORK)

    def _walk(self, plan: Planned, level: int, most_work: int) -> None:
        """Call cases of growing sizes, until so many interpreted operations are spent."""
        self.main.skipped |= plan.skipped
        tried = [*self.probes, *self.main.families]
        cut = [call for call in tried if not call.case.resized and level != FULL]
        dearest = max(cut, key=lambda call: call.work, default=self.main.own[0])
        # a side that stood alone had others beside it that these sizes do not name
        comparable = [
            call for call in self.main.families if call.right and call.family != "slender"
        ]
        seen = [dearest, *comparable]
        waiting = larger.Larger.plan(
            self._afforded(plan.cases), [(call.case.sizes, call.work) for call in seen], most_work
        )
        while case := waiting.take():
            call = self.run.call(self.session, case)
            self.main.families.append(call)
            if call.ended is not None:
                return
            waiting.done(case, call.work)
        self.main.left_out += waiting.left_out

    def _repetitions(self) -> None:
        first = self.main.steady.case
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
            again = self.run.call(self.session, call.case, CallOptions(fill="big"))
            self.main.refilled.append((call, again))
            if again.ended is not None:
                return
        self._bursts()
        if self.session.ended is None and self.main.weights and self.main.named:
            self._reweighings()

    def _bursts(self) -> None:
        """Many calls in a row, with gradients on and off, in training and in evaluation."""
        known = [
            call
            for call in self.main.calls
            if call.right and call.case.seed < self.run.seeds and call.family not in POISONED
        ]
        # all of one shape and none like another, the problem's own first
        alike = [call for call in known if call.shapes == self.main.steady.shapes]
        chosen = alike[:2]
        for call in alike[2:BURST]:
            if sum(item.work for item in (*chosen, call)) <= MOST_BURST_WORK:
                chosen.append(call)
        cases = [call.case for call in chosen]
        settings = self.run.ask_referee(FindSettings(), Settings).found
        left = MOST_BURSTS_WORK
        for turn, setting in enumerate(settings):
            times = TIMES if not turn and not self.run.interpreted else 0
            left -= sum(item.work for item in chosen)
            if turn and left < 0:
                return
            burst = self.run.burst(self.session, cases, setting, times)
            self.main.bursts.append(burst)
            if burst.ended is not None:
                return
            cases.reverse()

    def _reweighings(self) -> None:
        """A model that has been called before is given other weights and called again."""
        for item in self.run.ask_referee(FindWays(), Ways).found:
            known = next(call for call in self.main.own if call.case.seed == item.seed)
            weights, buffers = self.run.ask_for_data(GiveWeights(item.seed), Weights)
            question = Reweigh(item.way, weights)
            try:
                done, _ = self.session.ask(
                    question, Done, buffers, seconds=self.run.timeout_seconds
                )
            except SessionError:
                return
            if isinstance(done, Told):
                call = Call(known.case, Reply(done))
            else:
                call = self.run.call(self.session, known.case, CallOptions(model=CHANGED))
            self.main.reweighed.append((item.way, call))
            self.main.weights_move |= item.moves
            if call.ended is not None or call.error is not None:
                return


def largest_block(calls: Iterable[Call]) -> int:
    """The largest whole number that a launch was compiled for: one block may hold so many."""
    found = [0]
    for kernel in (kernel for call in calls for kernel in call.reply.kernels):
        for name in kernel.constants:
            told = kernel.arguments[name]
            value = told.items[0].value if told.kind == "constexpr" else told.value
            if type(value) is int and value <= MOST_BLOCK:
                found.append(value)
    return max(found)


def _in_rounds(cases: list[PlannedCase]) -> list[PlannedCase]:
    """The first case of every family, then the second of each: what is left out is more of the same.

    Other sizes are not put off: they tell what larger ones will cost.
    """
    seen: Counter[str] = Counter()
    order = []
    for case in cases:
        order.append((seen[case.family], case.number, case))
        seen[case.family] += not case.resized
    return [case for _, _, case in sorted(order, key=lambda item: item[:2])]


def _clean(call: Call) -> bool:
    """Nothing was seen that fails the candidate whatever the families say."""
    return not (call.reply.operators or call.reply.faults or call.reply.zones)
