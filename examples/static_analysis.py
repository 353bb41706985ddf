"""What each stage of DeepSeek-OCR costs, before any GPU is rented.

    python examples/static_analysis.py [FOLDER] [--model MODEL_FOLDER] [--lang zh]

Writes static_compute.json, static_compute.md and static_compute_modules.md into FOLDER (by default
a new one in the current directory). Nothing is downloaded and no weights are needed: the published
configuration is counted on the meta device.
"""

import argparse
import tempfile
from pathlib import Path

from torchstone.cost import (
    AnalysisConfig,
    DeepSeekOCRSession,
    DeepseekOCRStaticAnalyzer,
    compute_stage_mfu,
    write_static_compute_fvcore_table,
    write_static_compute_json,
    write_static_compute_markdown,
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Static analysis of DeepSeek-OCR.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the reports go")
    parser.add_argument("--model", type=Path, help="a local model folder instead of the published configuration")
    parser.add_argument("--lang", choices=("en", "zh"), default="en", help="language of the reports")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="static_analysis-", dir="."))

    session = DeepSeekOCRSession.from_local(given.model, device="meta") if given.model else None
    analyzer = DeepseekOCRStaticAnalyzer(session, lang=given.lang)

    # a scanned A4 page at 200 dots per inch
    config = AnalysisConfig(image_w=1654, image_h=2339)
    report = analyzer.generate_report(config)
    write_static_compute_json(report, folder / "static_compute.json")
    write_static_compute_markdown(report, folder / "static_compute.md")
    full = analyzer.analyze_full_model(config)
    write_static_compute_fvcore_table(full, folder / "static_compute_modules.md", lang=given.lang)

    print(f"Total params: {report['total']['params'] / 1e6:.2f}M")
    print(f"Total FLOPs: {report['total']['flops'] / 1e9:.2f}G")
    for stage, data in report["stages"].items():
        print(f"{stage}: {data['flops'] / 1e9:.2f}G FLOPs")

    # MFU of a run that took 180 ms for the page and 2.5 s for 300 tokens on an H100
    mfu = compute_stage_mfu(
        prefill_ms=60,
        decode_ms=2500,
        vision_ms=120,
        prefill_len=report["metadata"]["prompt_tokens"],
        new_tokens=300,
        peak_tflops="h100",
        static_report=report,
    )
    print(f"MFU: vision {mfu.vision:.2%}, prefill {mfu.prefill:.2%}, decode {mfu.decode:.2%}")
    print(f"written to {folder}")


if __name__ == "__main__":
    main()
