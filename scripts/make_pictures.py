"""`make pictures`: the pictures of the README, taken of real pages in a real browser."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from agent_session import lead
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
BIN = Path(sys.executable).parent
MOST_BYTES = 300_000
SIZE = {"width": 1400, "height": 900}
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> int:
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        print("pictures: no chromium found; run `make setup` as root, or install it")
        return 2
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = pages(Path(folder))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            for name, page in made.items():
                take(browser, page, FOLDER / f"{name}.png")
            browser.close()
    return 0


def pages(folder: Path) -> dict[str, Path]:
    """The pages of the demo, made anew."""
    watched = folder / "watched"
    run("python", "examples/watched_training.py", str(watched))
    wanted = {
        "check": ("check", "examples/train_project"),
        "cost": ("cost", "hf:llama", "--dtype", "bf16", "--train", "--device", "h100,a100"),
        "watch": ("watch", str(watched)),
    }
    led = folder / "led"
    led.mkdir()
    made = {"review": asyncio.run(lead(led))}
    for name, words in wanted.items():
        made[name] = folder / f"{name}.html"
        run("torchstone", *words, "--output", str(made[name]), "--quiet")
    return made


def run(program: str, *words: str, folder: Path = ROOT) -> None:
    done = subprocess.run([BIN / program, *words], cwd=folder, capture_output=True, text=True, check=False)  # fmt: skip
    if done.returncode > 1:  # 1 means findings
        raise SystemExit(f"pictures: {program} {' '.join(words)} failed:\n{done.stderr}")


def take(browser: Browser, page: Path, target: Path) -> None:
    opened = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
    opened.goto(page.as_uri())
    # the folder of the run is another one each time
    opened.evaluate("for (const n of document.querySelectorAll('.subject, .made')) n.remove()")
    opened.wait_for_timeout(500)
    opened.screenshot(path=target)
    opened.close()
    size = target.stat().st_size
    print(f"{target.relative_to(ROOT)}: {size / 1000:.0f} kB")
    if size > MOST_BYTES:
        raise SystemExit(
            f"pictures: {target.name} has {size} bytes, at most {MOST_BYTES} are allowed"
        )


if __name__ == "__main__":
    sys.exit(main())
