"""Screenshots of every view of the voting page and of the report, for docs/study.md.

    python scripts/study_screenshots.py [FOLDER]

Paints two sample photos by six methods, makes a study of them, walks through it in Chromium at
1280 and 360 pixels, and writes `docs/study-*.jpg`. The report is that of the paper's own totals.
Pictures that are already in the folder are not painted again.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from impasto import process

process.tune()

from playwright.sync_api import Browser, Page, sync_playwright

import impasto
from impasto import cli
from impasto.samples import PAINTINGS, PHOTOS, locate

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests import study as kit

DOCS = ROOT / "docs"
METHODS = ("cmd", "gram", "mm", "gaussian-ot", "swd", "cmd-joint")
PAIRS = (("chelsea", "irises"), ("coffee", "cypresses"))
SIDE, STEPS = 320, 20
WINDOWS = {1280: 800, 360: 740}
PAPER = "method,votes\nAdaIN,155\nGatys,533\nMM,443\nOST,523\nWCT,463\nCMD,587\n"  # its table 1


def paint(folder: Path) -> None:
    for photo, painting in PAIRS:
        for method in METHODS:
            path = folder / f"{photo}-{painting}-{method}.png"
            if not path.exists():
                print(
                    f"{PHOTOS[photo].title} × {PAINTINGS[painting].title}, {method} …", flush=True
                )
                result = impasto.stylize(
                    locate(photo), locate(painting), method=method, size=SIDE, steps=STEPS
                )
                result.save(path)


def keep(page: Page, name: str, width: int) -> None:
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)
    path = DOCS / f"study-{name}-{width}.jpg"
    page.screenshot(path=path, type="jpeg", quality=80)
    print(f"{path.name}  {path.stat().st_size // 1000} kB", flush=True)


def walk(browser: Browser, url: str, width: int, *, two: bool = False) -> None:
    scheme = "dark" if two else "light"
    window = {"width": width, "height": WINDOWS[width]}
    page = browser.new_context(viewport=window, color_scheme=scheme).new_page()
    page.goto(url)
    page.get_by_role("button", name="Begin").wait_for()
    if not two:
        keep(page, "welcome", width)
    page.get_by_role("button", name="Begin").click()
    page.wait_for_selector("#board:not(.loading) .option")
    keep(page, "two" if two else "ballot", width)
    if two:
        return
    page.keyboard.press("z")
    keep(page, "glass", width)
    page.keyboard.press("Escape")
    for _ in PAIRS:
        page.wait_for_selector("#board:not(.loading) .option")
        page.keyboard.press("1")
        page.wait_for_timeout(1000)
    page.wait_for_selector("#thanks", state="visible")
    keep(page, "thanks", width)


def main(folder: Path) -> None:
    paint(folder)
    chromium = shutil.which("chromium")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as place:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for protocol in ("all", "two"):
            study = Path(place) / protocol
            kit.study(study, folder, protocol=protocol, title="A study of style transfer")
            with kit.serving(study) as server:
                for width in WINDOWS:
                    walk(browser, server.url, width, two=protocol == "two")
        totals = Path(place) / "paper.csv"
        totals.write_text(PAPER)
        cli.main(["study", "report", str(totals), "-o", f"{place}/report"])
        for width in WINDOWS:
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(f"file://{place}/report/report.html")
            keep(page, "report", width)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(exist_ok=True)
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
