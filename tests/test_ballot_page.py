"""The voting page in a real Chromium: votes, keys, undo, a phone, a server that goes away."""

import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

from impasto import cli
from impasto.study import store
from impasto.study.design import sequence
from tests import study as kit

PATIENCE = 60_000  # milliseconds
METHODS = ("cmd", "gram", "mm", "gaussian-ot", "swd", "cmd-joint")
AWAY = "ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|ERR_SOCKET_NOT_CONNECTED"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
    if path is None:
        pytest.skip("there is no Chromium here: the voting page is not tested")
    words = ["--no-sandbox"] if os.geteuid() == 0 else []  # root may not have one
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        try:
            opened = playwright.chromium.launch(executable_path=path, args=words)
        except Error as error:
            pytest.skip(f"Chromium does not start here, the voting page is not tested: {error}")
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kit.results(tmp_path_factory.mktemp("results"), methods=METHODS, pairs=(2, 2))


@pytest.fixture
def page_of(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens the page for a new person; at the end nothing may have been said in the console."""
    said: list[str] = []
    contexts = []

    def show(url: str, *, allowed: str = "$^", width: int = 1280, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda line: re.search(allowed, line.text) or said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: request.url.startswith(url) or said.append(request.url))
        page.goto(url)
        return page

    yield show
    for context in contexts:
        context.close()
    assert said == []


def count(page: Page, number: int, total: int) -> None:
    """Wait until a ballot is there to be voted on."""
    expect(page.locator("#ballot")).to_be_visible()  # and not the thanks, which count as far
    expect(page.locator("#count")).to_have_text(f"{number} of {total}")
    expect(page.locator("#board[aria-busy=false]:not(.loading)")).to_be_attached()


def assert_accessible(page: Page) -> None:
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_two_people_vote_at_once_and_the_report_counts_them(
    tmp_path: Path, made: Path, page_of: Callable[..., Page], capsys: Any
) -> None:
    study = kit.study(tmp_path, made, title="Spring")
    with kit.serving(tmp_path) as server:
        first, second = page_of(server.url), page_of(server.url)
        assert_accessible(first)
        for page in (first, second):
            page.get_by_role("button", name="Begin").click()
            count(page, 1, 4)
        assert_accessible(first)
        chosen: list[list[int]] = [[], []]
        for ballot in range(4):  # in turns: neither waits for the other
            first.get_by_role("button", name=f"Choose picture {ballot + 1}", exact=True).click()
            chosen[0].append(ballot)
            second.keyboard.press(str(6 - ballot))
            chosen[1].append(5 - ballot)
            for page in (first, second) if ballot < 3 else ():
                count(page, ballot + 2, 4)
        for page in (first, second):
            expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
        assert_accessible(second)
    votes = kit.votes_in(store.local(tmp_path), study.identity)
    # What was clicked is what is kept: the method behind that place in that person's sequence.
    assert [vote.method for vote in votes] == [
        sequence(study.design, seat)[position].methods[chosen[seat][position]]
        for seat in (0, 1)
        for position in range(4)
    ]
    assert cli.main(["study", "report", str(tmp_path)]) == 0
    assert "8 votes by 2 participants" in capsys.readouterr().out
    report = first.context.new_page()
    for width in (1280, 360):
        report.set_viewport_size({"width": width, "height": 800})
        report.goto((tmp_path / "report/report.html").as_uri())
        assert report.get_by_role("heading", level=1).inner_text() == "Spring"
        assert report.evaluate("document.documentElement.scrollWidth") <= width
        assert_accessible(report)


def test_a_held_key_and_a_second_click_vote_once(
    tmp_path: Path, made: Path, page_of: Callable[..., Page]
) -> None:
    study = kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url)
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
        for _ in range(20):  # further downs without an up are repeats
            page.keyboard.down("1")
            page.wait_for_timeout(50)
        page.keyboard.up("1")
        count(page, 2, 4)
        page.get_by_role("button", name="Choose picture 2", exact=True).dblclick()
        count(page, 3, 4)
        page.wait_for_timeout(600)
        count(page, 3, 4)
    assert len(kit.votes_in(store.local(tmp_path), study.identity)) == 2


def test_undo_reload_and_another_person(
    tmp_path: Path, made: Path, page_of: Callable[..., Page]
) -> None:
    study = kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url)
        page.keyboard.press("1")  # nothing to vote on yet
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
        expect(page.get_by_role("button", name="Undo")).to_be_hidden()
        page.keyboard.press("9")  # there are six
        page.keyboard.press("3")
        count(page, 2, 4)
        page.keyboard.press("Backspace")
        count(page, 1, 4)
        page.keyboard.press("5")
        count(page, 2, 4)
        page.reload()
        count(page, 2, 4)  # goes on where one stopped
        for number in (3, 4):
            page.keyboard.press("1")
            count(page, number, 4)
        page.keyboard.press("1")
        expect(page.locator("#thanks")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        count(page, 4, 4)
        page.keyboard.press("2")
        page.get_by_role("button", name="Somebody else").click()
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
    votes = kit.votes_in(store.local(tmp_path), study.identity)
    ballots = sequence(study.design, 0)
    places = [ballots[vote.position].methods.index(vote.method) for vote in votes]
    assert places == [4, 0, 0, 1]
    assert {vote.seat for vote in votes} == {0}


def test_keyboard_alone_is_enough(tmp_path: Path, made: Path, page_of: Callable[..., Page]) -> None:
    kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url)
        expect(page.get_by_role("button", name="Begin")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        count(page, 1, 4)
        page.keyboard.press("z")
        glass = page.get_by_role("dialog")
        expect(glass).to_be_visible()
        expect(page.locator("#caption")).to_have_text("picture 1")
        assert_accessible(page)
        page.keyboard.press("ArrowLeft")
        expect(page.locator("#caption")).to_have_text("style")
        page.keyboard.press("Escape")
        expect(glass).to_be_hidden()
        for _ in range(3):  # from the heading: content, style, the first picture
            page.keyboard.press("Tab")
        focused = "document.activeElement.getAttribute('aria-label')"
        assert page.evaluate(focused) == "Choose picture 1"
        page.keyboard.press("Enter")
        count(page, 2, 4)


@pytest.mark.parametrize("protocol", ["all", "two"])
def test_a_phone_is_wide_enough(
    tmp_path: Path, made: Path, page_of: Callable[..., Page], protocol: str
) -> None:
    kit.study(tmp_path, made, protocol=protocol, title="A long title of a study " * 3)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url, width=360, color_scheme="dark", has_touch=True)
        width = "document.documentElement.scrollWidth"
        assert page.evaluate(width) <= 360
        page.get_by_role("button", name="Begin").tap()
        count(page, 1, 4)
        assert page.evaluate(width) <= 360
        assert_accessible(page)
        page.get_by_role("button", name="Enlarge picture 2").tap()
        assert page.evaluate(width) <= 360
        for name in ("Previous picture", "Next picture", "Choose this", "Close"):
            box = page.get_by_role("button", name=name).bounding_box()
            assert box is not None
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 360
        page.get_by_role("button", name="Choose this").tap()
        count(page, 2, 4)
        smallest = min(
            each.bounding_box()["width"]  # type: ignore[index]
            for each in page.locator(".option img").all()
        )
        assert smallest > (130 if protocol == "all" else 290)


def test_a_choice_survives_a_server_that_is_killed(
    tmp_path: Path, made: Path, page_of: Callable[..., Page]
) -> None:
    study = kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url, allowed=AWAY)
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
        page.keyboard.press("1")
        count(page, 2, 4)
        server.kill(signal.SIGKILL)
        page.keyboard.press("2")
        expect(page.locator("#notice")).to_contain_text("does not answer")
        server.start()
        count(page, 3, 4)
        expect(page.locator("#notice")).to_be_empty()
    assert len(kit.votes_in(store.local(tmp_path), study.identity)) == 2


def test_nobody_chooses_before_every_picture_is_there(
    tmp_path: Path, made: Path, page_of: Callable[..., Page]
) -> None:
    study = kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url, allowed="ERR_FAILED")
        page.route("**/pictures/*", lambda route: route.abort())
        page.get_by_role("button", name="Begin").click()
        expect(page.locator("#notice")).to_contain_text("does not come")
        page.keyboard.press("1")
        page.unroute("**/pictures/*")
        count(page, 1, 4)  # still the first
        expect(page.locator("#notice")).to_be_empty()
        assert page.evaluate(
            "[...document.querySelectorAll('#board img')].every((image) => image.naturalWidth > 0)"
        )
    assert kit.votes_in(store.local(tmp_path), study.identity) == []


def test_two_windows_of_one_person_do_not_vote_twice(
    tmp_path: Path, made: Path, page_of: Callable[..., Page]
) -> None:
    study = kit.study(tmp_path, made)
    with kit.serving(tmp_path) as server:
        page = page_of(server.url, allowed="409")
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
        other = page.context.new_page()
        other.goto(server.url)
        count(other, 1, 4)
        page.keyboard.press("1")
        count(page, 2, 4)
        other.keyboard.press("2")  # about a ballot that is voted on already
        count(other, 2, 4)  # shows the present one instead
    assert len(kit.votes_in(store.local(tmp_path), study.identity)) == 1


def test_from_elsewhere_the_link_with_the_token_opens_the_page(
    tmp_path: Path, made: Path, browser: Browser
) -> None:
    kit.study(tmp_path, made)
    server = kit.Server(tmp_path, "--host", "0.0.0.0")
    link = server.start()
    try:
        token = link.partition("?token=")[2]
        assert len(token) >= 22
        page = browser.new_page()
        answer = page.goto(server.url)
        assert answer is not None
        assert answer.status == 401
        assert "token" in page.inner_text("body")
        page.goto(f"{server.url}/?token={token}")
        assert page.url == f"{server.url}/"
        page.get_by_role("button", name="Begin").click()
        count(page, 1, 4)
        page.close()
        server.kill(signal.SIGTERM)
        assert server.start() == link  # links that were sent stay good
    finally:
        server.kill(signal.SIGTERM)
