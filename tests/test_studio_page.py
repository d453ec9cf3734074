"""The studio's page in a real browser."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from impasto import imagefile, samples
from impasto.recipe import Recipe
from tests.studio import Server

PATIENCE = 60_000  # milliseconds
RESTART = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("studio"))
    yield running
    running.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
    if path is None:
        pytest.skip("there is no Chromium here: the page is not tested")
    words = ["--no-sandbox"] if os.geteuid() == 0 else []  # root may not have one
    with sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=path, args=words)
        except Error as error:
            pytest.skip(f"Chromium does not start here, the page is not tested: {error}")
        yield opened
        opened.close()


@pytest.fixture
def opened(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens a view; at the end nothing may have been said in the console."""
    said: list[str] = []
    contexts = []

    def show(view: str = "#/", *, allowed: str = "", width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/{view}")
        expect(page.locator("#method option").first).to_be_attached()
        show.allowed = allowed
        return page

    show.allowed = ""
    yield show
    for context in contexts:
        context.close()
    said = [line for line in said if not (show.allowed and re.search(show.allowed, line))]
    assert said == []


def quick(page: Page, *, size: int = 64, steps: int = 4) -> None:
    """A small size and few steps, by the panel of all settings."""
    page.locator("#all > summary").click()
    for name, number in {"size": size, "steps": steps}.items():
        page.locator(f"#all-{name}").fill(str(number))
        page.locator(f"#all-{name}").press("Tab")
    page.locator("#all > summary").click()


def check_access(page: Page) -> None:
    """No violation of the rules for people who see, hear or point differently."""
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def narrow_enough(page: Page) -> bool:
    """Whether nothing sticks out to the right."""
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def file_of(name: str, folder: Path, side: int = 90) -> Path:
    path = folder / f"{name}.png"
    image = PIL.Image.open(samples.locate(name)).convert("RGB")
    image.thumbnail((side, side))
    image.save(path)
    return path


def test_two_pictures_become_one_before_ones_eyes(opened, tmp_path):
    page = opened()
    photo = file_of("rocket", tmp_path)
    page.locator('[data-well="content"] input').set_input_files(photo)
    expect(page.locator('[data-well="content"] .name')).to_contain_text("rocket.png, 90 × ")
    page.get_by_role("radio", name="Van Gogh, Irises").click()
    quick(page, size=96, steps=12)
    seen: set[str] = set()
    page.expose_function("seen", lambda source: seen.add(source))
    page.evaluate(
        "new MutationObserver(() => window.seen(document.getElementById('after').src))"
        ".observe(document.getElementById('after'), {attributeFilter: ['src']})"
    )
    page.get_by_role("button", name="Paint", exact=True).click()
    expect(page.locator("#status")).to_have_text(re.compile(r"Step \d+ of 12"))
    expect(page.locator("#numbers")).to_have_text(re.compile(r"96 × \d+"))
    expect(page.locator("#status")).to_have_text("Finished.")
    live = {source for source in seen if "/live?n=" in source}
    assert len(live) >= 2  # a sketch first, then it sharpens

    expect(page.locator("#curve svg")).to_have_attribute(
        "aria-label",
        re.compile(r"Style loss: from [\d.]+ to [\d.]+ in 4 steps, after 8 of shallow"),
    )
    expect(page.locator("#curve polyline")).to_have_count(2)  # the deep layers joined
    result = page.locator("#after")
    expect(result).to_have_attribute("alt", "rocket.png in the style of Van Gogh, Irises")
    assert result.evaluate("image => image.decode().then(() => image.naturalWidth)") == 96
    check_slider(page)
    check_zoom(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    assert path.name == "rocket-irises.png"
    assert imagefile.read_record(path)["steps"]["done"] == 12
    check_access(page)


def check_slider(page: Page) -> None:
    """Left of the divider is the photo, right of it the painting, and the divider moves."""
    box = page.locator("#canvas").bounding_box()
    page.locator("#before").evaluate("image => image.decode()")

    def column(share: float) -> np.ndarray:
        image = PIL.Image.open(io.BytesIO(page.screenshot(clip=box))).convert("RGB")
        return np.asarray(image, float)[:, int(share * (image.width - 1))]

    page.locator("#split").fill("75")
    before = column(0.25), column(0.5)
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
    assert float(page.locator("#split").input_value()) == pytest.approx(100 / 3, abs=2)
    after = column(0.25), column(0.5)
    assert np.abs(before[0] - after[0]).mean() < 1  # the photo in both
    assert np.abs(before[1] - after[1]).mean() > 10  # the photo, then the painting


def check_zoom(page: Page) -> None:
    for name, factor in {"100 %": 1, "400 %": 4}.items():
        page.get_by_role("button", name=name).click()
        assert page.locator("#canvas").bounding_box()["width"] == 96 * factor
    page.get_by_role("button", name="Fit").click()
    assert page.locator("#canvas").bounding_box()["width"] > 400


def test_stop_keeps_the_best_picture_and_a_reload_loses_nothing(opened, server):
    page = opened()
    quick(page, size=128, steps=400)
    page.get_by_role("button", name="Paint", exact=True).click()
    expect(page.locator("#status")).to_have_text(re.compile(r"Step \d+ of 400"))
    page.reload()
    expect(page.locator("#status")).to_have_text(re.compile(r"Step \d+ of 400"))
    expect(page.locator("#curve svg")).to_be_visible()
    page.get_by_role("button", name="Stop and keep").click()
    expect(page.locator("#status")).to_have_text("Stopped; the best picture so far is kept.")
    width = page.locator("#after").evaluate(
        "image => image.decode().then(() => image.naturalWidth)"
    )
    assert width == 128
    page.goto(page.url.split("#")[0] + "#/history")
    expect(page.locator(".card").first).to_contain_text("cmd")


def test_everything_can_be_done_with_the_keyboard_alone(opened):
    page = opened()

    def go_to(selector: str) -> None:
        for _ in range(120):
            if page.evaluate(f"document.activeElement.matches({selector!r})"):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{selector} cannot be reached")

    go_to('[data-well="content"] [role="radio"]')
    page.keyboard.press("ArrowLeft")
    expect(page.locator('[data-well="content"] .name')).to_have_text("A cup of coffee")
    go_to('[data-well="style"] [role="radio"]')
    page.keyboard.press("ArrowRight")
    go_to("#strength")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#strength-out")).not_to_have_text("α = 0.002")
    go_to("#all > summary")
    page.keyboard.press("Enter")
    for name, number in {"size": "64", "steps": "3"}.items():
        go_to(f"#all-{name}")
        page.keyboard.press("Control+a")
        page.keyboard.type(number)
    go_to("#start")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_have_text("Finished.")
    go_to("#split")
    page.keyboard.press("Home")
    assert page.locator("#split").input_value() == "0"
    go_to('[data-zoom="2"]')
    page.keyboard.press("Space")
    assert page.locator("#canvas").bounding_box()["width"] == 128
    go_to("#download")
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    assert download.value.suggested_filename == "coffee-irises.png"


def test_a_text_file_is_refused_with_a_sentence(opened, tmp_path):
    page = opened(allowed="status of 422")  # Chromium's own note of the answer
    (tmp_path / "letter.txt").write_text("Dear Theo,")
    page.locator('[data-well="style"] input').set_input_files(tmp_path / "letter.txt")
    problem = page.locator("#problem")
    expect(problem).to_contain_text("letter.txt is no image of a known kind")
    expect(page.locator('[data-well="style"] .name')).to_contain_text("Van Gogh")  # as before
    page.get_by_role("radio", name="Van Gogh, Irises").click()
    expect(problem).to_be_hidden()
    quick(page, size=20)
    page.get_by_role("button", name="Paint", exact=True).click()
    expect(problem).to_contain_text("Size is 20; it must be between 32 and")
    check_access(page)


DROP = """
(target, [name, base64]) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name, {type: "image/png"}));
  const event = new DragEvent("drop", {dataTransfer, bubbles: true, cancelable: true});
  return target.dispatchEvent(event);  // whether the browser would open the file
}
"""


def test_a_picture_can_be_dropped_and_one_dropped_beside_does_no_harm(opened, tmp_path):
    page = opened()
    # Of a size of its own: the same bytes would keep the name under which they came first.
    data = base64.b64encode(file_of("rocket", tmp_path, side=70).read_bytes()).decode()
    assert not page.locator("body").evaluate(DROP, ["beside.png", data])
    assert not page.locator('[data-well="style"] .drop').evaluate(DROP, ["mine.png", data])
    expect(page.locator('[data-well="style"] .name')).to_contain_text("mine.png, 70 × ")
    expect(page.locator('[data-well="content"] .name')).not_to_contain_text(".png")


def test_every_view_fits_a_phone_and_is_accessible_in_light_and_dark(opened, server):
    run = server.paint()
    cut = server.paint()["id"]
    server.client.post(f"/api/runs/{cut}/stop")  # before it began: a card with more to press
    server.until(run["id"], "done")
    assert server.until(cut, "interrupted", "done")["state"] == "interrupted"
    for view in ("#/", f"#/run/{run['id']}", "#/history"):
        # Without motion, as colors on their way from light to dark have contrasts of their own.
        still = {"has_touch": True, "reduced_motion": "reduce"}
        page = opened(view, width=360, color_scheme="light", **still)
        if "run" in view:
            expect(page.locator("#status")).to_have_text("Finished.")
        elif "history" in view:
            expect(page.locator(".card").first).to_contain_text("interrupted")
        else:
            page.locator("#equalizer > summary").click()
            page.locator("#all > summary").click()
            expect(page.locator("#sketch")).to_be_visible()
        assert narrow_enough(page), view
        check_access(page)
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
        check_access(page)


def test_the_description_of_the_api_is_a_page_of_its_own(browser, server):
    page = browser.new_page(viewport={"width": 360, "height": 700})
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    outside: list[str] = []
    page.on("request", lambda asked: outside.append(asked.url))
    page.goto(f"http://127.0.0.1:{server.port}/api")
    paths = server.client.get("/openapi.json").json()["paths"]
    expect(page.locator(".operation")).to_have_count(sum(len(each) for each in paths.values()))
    assert narrow_enough(page)
    check_access(page)
    assert all(url.startswith(f"http://127.0.0.1:{server.port}/") for url in outside)
    assert said == []
    page.close()


def test_the_equalizer_is_followed_by_a_sketch_and_meets_the_settings(opened, tmp_path):
    page = opened()
    page.locator("#equalizer > summary").click()
    sketch = page.locator("#sketch")
    expect(sketch).to_be_visible()
    first = sketch.get_attribute("src")
    fader = page.get_by_role("slider", name="skewness")
    fader.focus()
    fader.press("Home")
    page.get_by_role("slider", name="layer conv5_1").fill("2")
    expect(sketch).not_to_have_attribute("src", first)
    page.locator("#all > summary").click()
    expect(page.locator("#all-moment_weights")).to_have_value("1, 1, 0, 1, 1")
    weights = [float(each) for each in page.locator("#all-layer_weights").input_value().split(",")]
    usual = list(Recipe().style_layers.values())
    assert weights == pytest.approx([*usual[:4], 2 * usual[4]])
    names = page.locator("#settings .field :is(input:not([type=file]), select)").evaluate_all(
        "all => all.map(each => each.id.slice('all-'.length))"
    )
    assert names == [each.name for each in fields(Recipe)]
    page.locator("#all-moment_weights").fill("1, 1, 5, 1, 1.25")  # more than a fader can show
    page.locator("#all-moment_weights").press("Tab")
    page.get_by_role("slider", name="mean").fill("0.5")
    expect(page.locator("#all-moment_weights")).to_have_value("0.5, 1, 5, 1, 1.25")
    page.get_by_role("button", name="Level everything").click()
    expect(page.locator("#changed")).to_be_hidden()
    with page.expect_file_chooser() as chooser:
        page.locator("#all-start").select_option("a picture of yours …")
    chooser.value.set_files(file_of("camera", tmp_path))
    expect(page.locator("#all-start option:checked")).to_have_text("camera.png")
    page.locator("#method").select_option("gram")
    expect(page.get_by_role("slider", name="skewness")).to_be_disabled()
    expect(page.get_by_role("slider", name="layer relu5_1")).to_be_enabled()
    page.locator("#method").select_option("adain")  # nothing is weighed, it has its own strength
    expect(page.get_by_role("slider", name="layer relu4_1")).to_be_disabled()
    page.locator("#strength").fill("40")
    expect(page.locator("#all-strength")).to_have_value("0.4")


def test_the_features_before_and_after_are_drawn(opened, server):
    run = server.until(server.paint()["id"], "done")
    page = opened(f"#/run/{run['id']}", width=360)
    page.get_by_role("button", name="Inspect").click()
    expect(page.locator("#histograms svg")).to_have_count(len(Recipe().style_layers))
    page.locator("#inspection-of").select_option("one")
    expect(page.locator("#histograms figcaption").first).to_contain_text("conv1_1, channel")
    assert narrow_enough(page)
    check_access(page)
    page.get_by_role("button", name="Inspect").click()
    expect(page.locator("#inspection")).to_be_hidden()


def test_again_with_takes_everything_over_and_delete_asks_twice(opened, server):
    run = server.until(server.paint(method="mm", alpha=0.01)["id"], "done")
    page = opened("#/history", allowed="status of 409")
    card = page.locator(".card").first
    card.get_by_role("button", name="Again with").click()
    expect(page.locator("#method")).to_have_value("mm")
    expect(page.locator("#strength-out")).to_have_text("α = 0.01")
    expect(page.locator('[data-well="content"] .name')).to_have_text("A cup of coffee")
    expect(page.locator("#changed")).to_have_text("4 changed")
    page.get_by_role("link", name="History").click()
    card.get_by_role("button", name="Delete").click()
    assert server.client.get(f"/api/runs/{run['id']}").status_code == 200

    def refuse(route):
        if route.request.method == "DELETE":
            route.fulfill(status=409, json={"detail": "not now"})
        else:
            route.continue_()

    page.route("**/api/runs/*", refuse)
    card.get_by_role("button", name="Really?").click()
    expect(page.locator("#history .problem")).to_have_text("Not now.")
    page.unroute("**/api/runs/*")
    card.get_by_role("button", name="Really?").click()
    expect(page.locator("#history .problem")).to_be_hidden()
    expect(page.locator(f'.card a[href="#/run/{run["id"]}"]')).to_have_count(0)
    assert server.client.get(f"/api/runs/{run['id']}").status_code == 404


def test_the_page_waits_for_a_server_that_was_killed_and_goes_on(opened, server):
    page = opened(allowed=f"{RESTART}|Failed to load resource")
    quick(page, size=128, steps=60)
    page.get_by_role("button", name="Paint", exact=True).click()
    expect(page.locator("#status")).to_have_text(re.compile(r"Step \d+ of 60"))
    server.end(signal.SIGKILL)
    expect(page.locator("#gone")).to_contain_text("does not answer")
    server.start()
    expect(page.locator("#gone")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("This picture was interrupted. It can go on.")
    page.goto(f"http://127.0.0.1:{server.port}/")  # and whoever comes anew is offered it
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#status")).to_have_text(re.compile(r"Step \d+ of 60"))
    page.get_by_role("button", name="Stop and keep").click()
    expect(page.locator("#download")).to_be_visible()
