"""Per-stage static analysis of DeepSeek-OCR, counted on the meta device.

Every stage has up to three figures: counted alone (isolated), its part of the whole model's pass
(extracted), and its closed form (analytical). All three stay visible; where they differ, a note
says why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from torchstone.core.errors import InputError
from torchstone.core.text import LANGS, Message, Text
from torchstone.cost.arguments import choice
from torchstone.cost.counting.engine import run
from torchstone.cost.ocr.analysis.folding import (
    full_analysis,
    largest_first,
    once,
    operators_of,
    remarks,
)
from torchstone.cost.ocr.analysis.notes import note
from torchstone.cost.ocr.analysis.report import build_report
from torchstone.cost.ocr.analysis.stages import (
    STAGE_MODULES,
    STAGES,
    Work,
    analytic_flops,
    calls,
    locate,
    parameters,
)
from torchstone.cost.ocr.config import AnalysisConfig, StageAnalysisResult
from torchstone.cost.ocr.model.config_file import shape_from_config
from torchstone.cost.ocr.model.session import DeepSeekOCRSession, Session
from torchstone.cost.ocr.model.shapes import OcrShape, QueryShape
from torchstone.cost.ocr.page.case import Case, inputs_of, make_case, stamp
from torchstone.cost.records.ledger import Cost, total

Count = Callable[[nn.Module, Any], Cost]
"""Counts one pass of a module with some inputs."""
TOLERANCE = 1e-6
"""Relative difference above which two figures disagree."""


class DeepseekOCRStaticAnalyzer:
    """What each stage of DeepSeek-OCR costs: parameters, FLOPs, activations, operators.

    Without a session the published configuration is built on the meta device. The session and its
    model are never changed.
    """

    def __init__(
        self, session: Session | None = None, *, lang: str = "en", count: Count = run
    ) -> None:
        self.m_session = DeepSeekOCRSession.from_config() if session is None else session
        self.m_logger = logging.getLogger(__name__)
        self.m_lang = choice("lang", lang, LANGS)
        self.m_stage_module_map = {stage: list(names) for stage, names in STAGE_MODULES.items()}
        self._count = count
        self._shape = _shape(self.m_session)
        self._model = _countable(self.m_session)
        floating = (item.dtype for item in self._model.parameters() if item.is_floating_point())
        self._dtype = next(floating, torch.bfloat16)
        self._cases: dict[Any, Case] = {}

    def prepare_inputs(self, config: AnalysisConfig) -> tuple[Tensor, dict[str, Any]]:
        """`input_ids`, and a dict with `images`, `images_seq_mask` and `images_spatial_crop`.

        They stand on the session's device, but for `images_spatial_crop`, which is on the CPU.
        """
        return inputs_of(self._case(config), torch.device(self.m_session.m_device), self._dtype)

    def analyze_full_model(self, config: AnalysisConfig) -> dict[str, Any]:
        """One pass of the whole model over the page, and one decode step after it.

        `by_module` and `by_module_and_operator` are cumulative: a module with all that is in it,
        "" being the model. Under `decode` stands the same for the decode step.
        """
        case = self._case(config)
        input_ids, kwargs = inputs_of(case, torch.device("meta"), self._dtype)
        self.m_logger.info("counting the whole model over %d tokens", case.prompt_tokens)
        result = full_analysis(self._count(self._model, {"input_ids": input_ids, **kwargs}))
        result["prompt_tokens"] = case.prompt_tokens
        work = Work(case.plan, case.prompt_tokens + 1, self._dtype)
        step = calls("decode", self._model, self._shape, work)[0]
        result["decode"] = full_analysis(self._count(step.module, step.inputs))
        if result["failure"] is not None and not config.use_analytic_fallback:
            raise RuntimeError("; ".join(once(result["notes"], self.m_lang)))
        return result

    def analyze_stage_isolated(
        self, stage_name: str, config: AnalysisConfig
    ) -> StageAnalysisResult:
        """One stage counted alone, with its closed form beside it."""
        analyses: Mapping[str, Callable[[AnalysisConfig], StageAnalysisResult]] = {
            "sam": self._analyze_sam_isolated,
            "clip": self._analyze_clip_isolated,
            "projector": self._analyze_projector_isolated,
            "prefill": self._analyze_prefill_analytic,
            "decode": self._analyze_decode_analytic,
        }
        analysis = analyses.get(stage_name.lower())
        if analysis is None:
            raise ValueError(f"unknown stage {stage_name!r}: expected one of {', '.join(STAGES)}")
        return analysis(config)

    def analyze_all_stages(
        self, config: AnalysisConfig, full: dict[str, Any] | None = None
    ) -> dict[str, StageAnalysisResult]:
        """All stages, the three figures of each merged: isolated, else extracted, else analytical.

        `full` is an analysis of the whole model that was already made.
        """
        whole = self.analyze_full_model(config) if full is None else full
        return {
            stage: self._merge(
                self._extract_stage_from_full_analysis(stage, whole),
                self.analyze_stage_isolated(stage, config),
                self._case(config),
            )
            for stage in STAGES
        }

    def generate_report(self, config: AnalysisConfig) -> dict[str, Any]:
        """The whole analysis as plain data: metadata, total, stages, notes."""
        full = self.analyze_full_model(config)
        return build_report(
            self._case(config),
            self._shape,
            self.m_session,
            full,
            self.analyze_all_stages(config, full),
            self.m_lang,
        )

    def _analyze_sam_isolated(self, config: AnalysisConfig) -> StageAnalysisResult:
        """SAM over the global view and the crops."""
        return self._isolated("sam", config)

    def _analyze_clip_isolated(self, config: AnalysisConfig) -> StageAnalysisResult:
        """The second encoder over the features of the global view and of the crops."""
        second = isinstance(self._shape.encoder, QueryShape)
        return self._isolated("clip", config, note("query-encoder" if second else "idle-patches"))

    def _analyze_projector_isolated(self, config: AnalysisConfig) -> StageAnalysisResult:
        """The projector over the image tokens of all views."""
        return self._isolated("projector", config)

    def _analyze_prefill_analytic(self, config: AnalysisConfig) -> StageAnalysisResult:
        """The language model over the tokens of the prefill: closed form, and counted."""
        return self._isolated("prefill", config, note("head"))

    def _analyze_decode_analytic(self, config: AnalysisConfig) -> StageAnalysisResult:
        """One generated token: closed form, and counted."""
        length = self._case(config).decode_length
        return self._isolated("decode", config, note("decode", tokens=length))

    def _isolated(self, stage: str, config: AnalysisConfig, *more: Message) -> StageAnalysisResult:
        case = self._case(config)
        work = Work(case.plan, case.length(stage), self._dtype)
        found = calls(stage, self._model, self._shape, work)
        costs = [self._count(call.module, call.inputs) for call in found]
        done = bool(costs) and all(cost.failure is None for cost in costs)
        tally = total(cost.total() for cost in costs)
        labels = ", ".join(call.label.get(self.m_lang) for call in found)
        notes = [note("isolated", calls=labels)] if done else []
        if not found:
            notes.append(note("missing", path=STAGE_MODULES[stage][0]))
        notes += [item for cost in costs for item in remarks(cost, "isolated")]
        analytic = analytic_flops(stage, self._shape, work)
        self.m_logger.info("%s: %.7g FLOPs counted, %.7g closed form", stage, tally.flops, analytic)
        return StageAnalysisResult(
            stage,
            params=self._parameters(stage),
            flops=float(tally.flops) if done else 0.0,
            activations=float(tally.elements) if done else 0.0,
            operators=operators_of(costs) if done else {},
            flops_isolated=float(tally.flops) if done else None,
            flops_analytic=analytic if config.use_analytic_fallback else None,
            notes=once([*notes, *more], self.m_lang),
        )

    def _extract_stage_from_full_analysis(
        self, stage_name: str, full: dict[str, Any]
    ) -> StageAnalysisResult:
        """A stage's part of the whole pass; modules are taken at their top only.

        The figures of `by_module` hold what is inside a module already. A prefill includes the
        head over all tokens; a decode step is a pass of its own.
        """
        size = full["prompt_tokens"]
        if stage_name == "decode":
            source, paths = full["decode"], [""]
            remark = note("extracted-decode", tokens=size)
        else:
            names = list(self.m_stage_module_map[stage_name])
            names += self.m_stage_module_map["decode"] if stage_name == "prefill" else []
            source = full
            paths = [path for name in names if (path := locate(self._model, name)) is not None]
            remark = note("extracted", modules=", ".join(paths), tokens=size)
        operators: dict[str, float] = {}
        for path in paths:
            for operator, value in source["by_module_and_operator"].get(path, {}).items():
                operators[operator] = operators.get(operator, 0.0) + value
        done = source["failure"] is None and bool(paths)
        flops = float(sum(source["by_module"].get(path, 0.0) for path in paths))
        acts = float(sum(source["acts_by_module"].get(path, 0.0) for path in paths))
        return StageAnalysisResult(
            stage_name,
            params=self._parameters(stage_name),
            flops=flops if done else 0.0,
            activations=acts if done else 0.0,
            operators=largest_first(operators) if done else {},
            flops_extracted=flops if done else None,
            notes=once([remark], self.m_lang) if done else [],
        )

    def _merge(
        self, extracted: StageAnalysisResult, isolated: StageAnalysisResult, case: Case
    ) -> StageAnalysisResult:
        best = isolated if isolated.flops_isolated is not None else extracted
        merged = replace(
            best,
            flops_isolated=isolated.flops_isolated,
            flops_extracted=extracted.flops_extracted,
            flops_analytic=isolated.flops_analytic,
            notes=[*extracted.notes, *isolated.notes],
        )
        more = differences(merged, case)
        if merged.flops_isolated is None and merged.flops_extracted is None:
            more.append(note("nothing" if merged.flops_analytic is None else "fallback"))
            merged.flops = merged.flops_analytic or 0.0
        merged.notes += once(more, self.m_lang)
        return merged

    def _case(self, config: AnalysisConfig) -> Case:
        key = stamp(config)
        if key not in self._cases:
            self._cases[key] = make_case(config, self._shape, self.m_session.m_tokenizer)
        return self._cases[key]

    def _parameters(self, stage: str) -> int:
        found = (locate(self._model, name) for name in self.m_stage_module_map[stage])
        return parameters(self._model.get_submodule(path) for path in found if path is not None)


def differences(stage: StageAnalysisResult, case: Case) -> list[Message]:
    """Notes where the figures of a stage differ, with the reason."""
    length = case.length(stage.stage_name)
    own = {"prefill": case.prompt_tokens, "decode": case.prompt_tokens + 1}
    figures = [
        ("isolated", stage.flops_isolated, length),
        ("extracted", stage.flops_extracted, own.get(stage.stage_name, length)),
        ("analytical", stage.flops_analytic, length),
    ]
    known = [(name, value, size) for name, value, size in figures if value is not None]
    found: list[Message] = []
    if not known:
        return found
    first, a, one = known[0]
    for second, b, two in known[1:]:
        if abs(a - b) <= TOLERANCE * max(abs(a), abs(b)):
            continue
        names = {"first": first, "second": second, "a": f"{a:.7g}", "b": f"{b:.7g}"}
        if one == two:
            found.append(note("disagree", **names))
        else:
            found.append(note("lengths", **names, one=one, two=two))
    return found


def _shape(session: Session) -> OcrShape:
    """The dimensions of a session's model: its own, or those of its model's configuration."""
    known = getattr(session, "m_shape", None)
    if isinstance(known, OcrShape):
        return known
    config: Any = getattr(session.m_model, "config", None)
    where = f"{type(session).__name__}.m_model.config"
    if not hasattr(config, "to_dict"):
        raise InputError(
            where,
            type(config).__name__,
            Text("a transformers configuration", "transformers 配置"),
            Text(
                "pass a DeepSeekOCRSession, or a session whose m_model has a config",
                "请传入 DeepSeekOCRSession，或其 m_model 带有 config 的会话",
            ),
        )
    return shape_from_config(config.to_dict(), where)


def _countable(session: Session) -> nn.Module:
    """What is counted: a twin on the meta device where the session can make one."""
    return session.twin() if isinstance(session, DeepSeekOCRSession) else session.m_model
