"""Screenshots of every view of the studio at 1280 and at 360 pixels, for docs/studio.md.

Pictures are the samples that come along. Needs Chromium and the extras ``web`` and ``demo``.
Pictures that are already in the studio folder given by the first argument are not painted again;
further arguments name the views to be made.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import PIL.Image
from playwright.sync_api import Browser, Page, sync_playwright

FOLDER = Path(__file__).parents[1] / "docs" / "studio"
PORT = 7439
HOME = f"http://127.0.0.1:{PORT}/"
PAIRS = [
    ("galaxies", "primavesi"),
    ("rocket", "jatte"),
    ("chelsea", "irises"),
    ("coffee", "apples"),
]
HERO = ("astronaut", "cypresses")
SETTINGS = {"size": 320, "steps": 40}
PATIENCE = 900  # seconds
WIDTHS = {1280: 820, 360: 740}


@contextmanager
def studio(folder: str) -> Iterator[httpx.Client]:
    command = [sys.executable, "-m", "impasto", "studio", "--no-browser", "--port", str(PORT)]
    process = subprocess.Popen([*command, "--data", folder], stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=HOME, timeout=PATIENCE) as client:
            while True:
                try:
                    client.get("/api/runs")
                    break
                except httpx.ConnectError:
                    time.sleep(0.2)
            yield client
    finally:
        process.terminate()
        process.wait()


def paint(client: httpx.Client, pair: tuple[str, str], **settings: object) -> str:
    wish = {"content": pair[0], "style": pair[1], "settings": {**SETTINGS, **settings}}
    return client.post("/api/runs", json=wish).json()["id"]


def until(client: httpx.Client, id: str, done: Callable[[dict], bool]) -> None:
    while not done(client.get(f"/api/runs/{id}").json()):
        time.sleep(0.5)


def begin(page: Page, *, dark: bool = False) -> None:
    page.emulate_media(color_scheme="dark" if dark else "light")
    page.goto("about:blank")
    page.goto(f"{HOME}#/")
    page.get_by_role("radio", name="Eileen Collins").click()
    page.wait_for_load_state("networkidle")


def result(page: Page, hero: str, *, dark: bool = False) -> None:
    begin(page, dark=dark)
    page.goto(f"{HOME}#/run/{hero}")
    page.wait_for_selector("#download:visible")
    page.locator("#split").fill("42")
    page.wait_for_load_state("networkidle")


def equalizer(page: Page) -> None:
    begin(page)
    page.locator("#equalizer > summary").click()
    for name, weight in {"skewness": "1.6", "variance": "0.6", "layer conv5_1": "2.2"}.items():
        page.get_by_role("slider", name=name).fill(weight)
    page.wait_for_timeout(1000)
    page.locator("#sketch-note", has_text="made in").wait_for()
    page.locator("#equalizer > summary").evaluate("each => each.scrollIntoView()")


def settings(page: Page) -> None:
    begin(page)
    page.locator("#all > summary").click()
    page.locator("#all-alpha").fill("0.01")
    page.locator("#all-alpha").press("Tab")
    page.locator("#all > summary").evaluate("each => each.scrollIntoView()")


def inspection(page: Page, hero: str) -> None:
    result(page, hero)
    page.locator("#inspect").click()
    page.wait_for_selector("#histograms svg")
    page.locator("#inspection").evaluate("each => each.scrollIntoView({block: 'end'})")


def refusal(page: Page) -> None:
    begin(page)
    letter = {"name": "letter.txt", "mimeType": "text/plain", "buffer": b"Dear Theo,"}
    page.locator('[data-well="style"] input').set_input_files(letter)
    page.locator("#problem").wait_for()


def opened(page: Page, place: str, ready: str) -> None:
    begin(page)
    page.goto(HOME + place)
    page.wait_for_selector(ready)
    page.wait_for_load_state("networkidle")


def save(page: Page, name: str) -> None:
    page.wait_for_timeout(600)
    width = page.viewport_size["width"]
    image = PIL.Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    image.save(FOLDER / f"{name}-{width}.jpg", quality=70, optimize=True, progressive=True)


def shoot(browser: Browser, client: httpx.Client, hero: str) -> None:
    views: dict[str, Callable[[Page], None]] = {
        "start": begin,
        "result": lambda page: result(page, hero),
        "dark": lambda page: result(page, hero, dark=True),
        "equalizer": equalizer,
        "settings": settings,
        "inspection": lambda page: inspection(page, hero),
        "refusal": refusal,
        "history": lambda page: opened(page, "#/history", ".card img"),
        "api": lambda page: opened(page, "api", ".operation"),
    }
    for width, height in WIDTHS.items():
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE * 1000)
        for name in sys.argv[2:] or [*views, "painting"]:
            if name == "painting":
                painting(page, client)
            else:
                views[name](page)
                save(page, name)
        page.close()


def painting(page: Page, client: httpx.Client) -> None:
    """A run at work, which then goes again."""
    begin(page)
    live = paint(client, HERO, size=512, steps=60)
    page.goto(f"{HOME}#/run/{live}")
    until(client, live, lambda run: len(run["history"]) > 12)
    save(page, "painting")
    client.post(f"/api/runs/{live}/stop")
    until(client, live, lambda run: run["state"] == "done")
    client.delete(f"/api/runs/{live}")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    words = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory() as folder,
        studio(sys.argv[1] if len(sys.argv) > 1 else folder) as client,
        sync_playwright() as playwright,
    ):
        known = {
            (run["content"]["id"], run["style"]["id"]): run["id"]
            for run in client.get("/api/runs?limit=100").json()["runs"]
            if run["state"] == "done" and SETTINGS.items() <= run["recipe"].items()
        }
        runs = [known.get(pair) or paint(client, pair) for pair in (*PAIRS, HERO)]
        for id in runs:
            until(client, id, lambda run: run["state"] == "done")
        path = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=path, args=words)
        shoot(browser, client, runs[-1])
        browser.close()
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(list(FOLDER.iterdir()))} screenshots, {total / 1e6:.2f} MB in {FOLDER}")


if __name__ == "__main__":
    main()
