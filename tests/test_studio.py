"""The studio behind its page: the API with the real network, the store through crashes."""

from __future__ import annotations

import asyncio
import io
import json
import random
import re
import signal
import socket
import struct
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import PIL.Image
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error

from impasto import download, imagefile, samples
from impasto.cli import main
from impasto.networks import checkpoints
from impasto.recipe import EVERY_METHOD, FEED_FORWARD, Recipe
from impasto.types import ImpastoError
from impasto.web import serving
from impasto.web.studio import app, front, pictures, routes, store, wishes, workshop
from tests.studio import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A studio that paints."""
    running = Server(tmp_path_factory.mktemp("studio"))
    yield running
    running.end()


class Idle:
    """A studio in which nobody works: what waits goes on waiting."""

    def __init__(self, made: FastAPI) -> None:
        self.front = made.state.front
        self.door = serving.guarded(made, larger=app.LARGER)

    def __getattr__(self, method: str) -> Callable[..., httpx.Response]:
        return lambda *words, **options: asyncio.run(self.ask(method, *words, **options))

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        transport = httpx.ASGITransport(app=self.door)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method.upper(), path, **options)


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Idle]:
    made = app.create(tmp_path)
    yield Idle(made)
    made.state.front.store.close()


def encoded(kind: str = "PNG", size: tuple[int, int] = (48, 40), seed: int = 0) -> bytes:
    """A picture of random pixels as a file."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*size[::-1], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def wanted(**settings: Any) -> dict[str, Any]:
    return {"content": "coffee", "style": "cypresses", "settings": settings}


def events(client: httpx.Client, id: str) -> list[tuple[str, dict[str, Any]]]:
    """All that a run tells until its end."""
    with client.stream("GET", f"/api/runs/{id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        text = "".join(stream.iter_text())
    pairs = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(kind, json.loads(data)) for kind, data in pairs]


def test_a_picture_is_painted_by_http_and_its_record_makes_it_again(server, tmp_path, capsys):
    photo = Path(samples.locate("coffee")).read_bytes()
    given = server.client.post("/api/pictures?name=C:\\me\\cup.png", content=photo)
    assert given.status_code == 201
    assert given.json()["name"] == "cup.png"
    wish = {**wanted(size=64, steps=4), "content": given.json()["id"]}
    run = server.client.post("/api/runs", json=wish).json()

    told = events(server.client, run["id"])
    steps = [data for kind, data in told if kind == "step"]
    assert {each["phase"] for each in steps} >= {"sketching", "painting"}
    assert max(each["images"] for each in steps) >= 2  # a sketch, then what is being painted
    kind, end = told[-1]
    assert (kind, end["state"], end["reason"]) == ("end", "done", "steps")
    assert [loss for each in steps for loss in each["history"]] == end["history"][
        : steps[-1]["step"] + 1
    ]
    assert end["history"][-1][0] < end["history"][0][0]

    answer = server.client.get(f"/api/runs/{run['id']}/result.png?download=true")
    assert 'filename="cup-cypresses.png"' in answer.headers["content-disposition"]
    result = tmp_path / "result.png"
    result.write_bytes(answer.content)
    record = imagefile.read_record(result)
    assert record["pixels"] == imagefile.pixels_sha256(imagefile.read(result).rgb)
    assert record["inputs"]["content"]["path"] == "cup.png"
    assert str(server.folder) not in answer.content.decode("latin-1")

    (tmp_path / "cup.png").write_bytes(photo)
    painting = str(samples.locate("cypresses"))
    assert main(["rerun", str(result), "--style", painting, "--quiet"]) == 0
    again = imagefile.read(tmp_path / "result-again.png")
    assert np.abs(again.rgb - imagefile.read(result).rgb).max() < 2 / 255


def test_methods_without_steps_are_painted_too(server):
    alone = server.paint(decoder="impasto", method="wct")
    ahead = server.paint(decoder="impasto", start="ost+histogram")
    ends = [events(server.client, run["id"])[-1][1] for run in (alone, ahead)]
    assert [end["state"] for end in ends] == ["done", "done"]
    assert ends[0]["history"] == []  # nothing is measured on the way
    assert len(ends[1]["history"]) == ends[1]["steps"] + 1


def test_the_history_has_small_pictures_and_leaves_the_losses_to_the_run(server):
    run = server.until(server.paint(steps=2)["id"], "done")
    assert len(run["history"]) == 3
    listed = server.client.get("/api/runs").json()["runs"][0]
    assert listed == run | {"history": []}
    thumb = f"/api/runs/{run['id']}/thumb"
    small = server.client.get(thumb)
    assert small.headers["content-type"] == "image/webp"
    (server.folder / "thumbs" / f"{run['id']}.webp").unlink()  # it can be made again
    again = server.client.get(thumb)
    assert again.status_code == 200
    both = [PIL.Image.open(io.BytesIO(each.content)) for each in (small, again)]
    assert both[0].size == both[1].size == (run["width"], run["height"])


def test_a_picture_can_be_the_start(server):
    given = server.client.post("/api/pictures?name=start.png", content=encoded(size=(60, 40)))
    run = server.until(server.paint(start=given.json()["id"], steps=1)["id"], "done")
    picture = server.client.get(f"/api/runs/{run['id']}/result.png").content
    text = PIL.Image.open(io.BytesIO(picture)).info["impasto"]
    assert json.loads(text)["inputs"]["start"]["path"] == "start.png"
    missing = server.client.post("/api/runs", json=wanted(start="0" * 32))
    assert missing.status_code == 404


def test_features_of_a_finished_picture_are_told_layer_by_layer(server):
    run = server.until(server.paint()["id"], "done")
    told = server.client.get(f"/api/runs/{run['id']}/inspection").json()
    widths = np.diff(told["bins"])
    assert list(told["layers"]) == list(Recipe().style_layers)
    for layer in told["layers"].values():
        for density in layer["histograms"].values():
            assert np.dot(density, widths) == pytest.approx(1)
    assert server.client.get(f"/api/runs/{'0' * 32}/inspection").status_code == 404


def test_a_sketch_comes_beside_a_run_and_follows_the_settings(server):
    run = server.paint(size=128, steps=40)
    server.until(run["id"], "painting")
    plain, other = (
        server.client.post("/api/sketches", json=wanted(alpha=alpha)) for alpha in (0.0, 1.0)
    )
    assert server.client.get(f"/api/runs/{run['id']}").json()["state"] == "painting"
    server.client.post(f"/api/runs/{run['id']}/stop")
    done = server.until(run["id"], "done")
    assert done["reason"] == "stopped"
    assert done["steps"] < 40
    assert [each.headers["content-type"] for each in (plain, other)] == ["image/jpeg"] * 2
    content = PIL.Image.open(samples.locate("coffee")).convert("RGB")
    far, near = (
        np.abs(np.asarray(image, float) - np.asarray(content.resize(image.size), float)).mean()
        for image in (PIL.Image.open(io.BytesIO(each.content)) for each in (plain, other))
    )
    assert near < far / 3  # α = 1 returns the content


def test_what_was_finished_survives_a_kill_and_what_was_not_is_offered_again(tmp_path):
    running = Server(tmp_path)
    try:
        first = running.paint()
        running.until(first["id"], "done")
        picture = running.client.get(f"/api/runs/{first['id']}/result.png").content
        second = running.paint(steps=400, stop="never")
        third = running.paint()
        while len(running.until(second["id"], "painting").get("history", ())) < 60:
            time.sleep(0.05)
        running.end(signal.SIGKILL)

        running.start()
        states = {
            each["id"]: each["state"] for each in running.client.get("/api/runs").json()["runs"]
        }
        expected = {first["id"]: "done", second["id"]: "interrupted", third["id"]: "interrupted"}
        assert states == expected
        assert running.client.get(f"/api/runs/{first['id']}/result.png").content == picture

        running.client.post(f"/api/runs/{second['id']}/again")
        assert first_step(running, second["id"]) < 40  # anew
        known = running.client.get(f"/api/runs/{second['id']}").json()["history"]
        with running.client.stream("GET", f"/api/runs/{second['id']}/events"):  # someone looks
            assert running.end() in (0, -signal.SIGTERM)  # in order: it goes on from the step
        assert "Error" not in "".join(running.said)
        running.start()
        running.client.post(f"/api/runs/{second['id']}/again")
        assert first_step(running, second["id"]) >= len(known) - 1
        running.client.post(f"/api/runs/{second['id']}/stop")
        done = running.until(second["id"], "done")
        assert done["history"][: len(known)] == known
        assert 0 < done["steps"] < 400
    finally:
        running.end()


def first_step(running: Server, id: str) -> int:
    """The step with which a run begins, once it has made some more."""
    with running.client.stream("GET", f"/api/runs/{id}/events") as stream:
        steps = []
        for line in stream.iter_lines():
            data = json.loads(line.removeprefix("data: ")) if line.startswith("data: ") else {}
            steps += [data["step"]] if data.get("steps") else []
            if len(steps) > 3:
                return steps[0]
    raise AssertionError("the run ended too soon")


def hostile() -> list[bytes]:
    """Two hundred files that are no pictures, or nearly: cut, flipped, lying, too large."""
    chance = random.Random(6)
    kinds = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP")
    whole = [encoded(kind, seed=number) for number, kind in enumerate(kinds)]
    found = [
        b"",
        b"\0",
        b"hello, I am a text\n" * 9,
        b"<svg onload='alert(1)'/>",
        b"%!PS-Adobe-3.0 EPSF",
    ]
    found += [b"GIF89a" + bytes(30), b"\xff\xd8\xff", b"PK\x03\x04" + bytes(99), bytes(1 << 20)]
    found += [png(width, height) for width, height in ((1 << 30, 1), (60_000, 60_000), (0, 5))]
    found += [png(8_000, 8_000, bytes(8_001 * 8_000))]  # 64 million pixels in 63 kB
    while len(found) < 200:
        data = bytearray(chance.choice(whole))
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        found.append(bytes(data[: chance.choice([len(data), chance.randrange(len(data))])]))
    return found


def png(width: int, height: int, rows: bytes = b"") -> bytes:
    """A gray PNG file that claims a size."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def test_hostile_uploads_are_refused_with_a_sentence_within_bounded_memory(server):
    before = server.peak
    files = hostile()
    assert len(files) == 200
    for data in files:
        answer = server.client.post("/api/pictures?name=../../etc/passwd", content=data)
        assert answer.status_code in (201, 413, 422), answer.text
        if answer.status_code != 201:
            assert answer.json()["detail"].startswith("passwd ")
    assert server.client.get("/api/runs").status_code == 200
    assert server.peak - before < 200e6  # none was decoded that is over the limit
    names = {path.name for path in server.folder.rglob("*") if path.is_file()}
    own = re.compile(r"[0-9a-f]{32}(\.webp|\.png)?|studio\.sqlite3(-wal|-shm)?")
    assert all(own.fullmatch(name) for name in names)


def test_more_bytes_or_pixels_than_allowed_are_refused_before_they_are_read(idle, monkeypatch):
    answer = idle.post("/api/pictures", content=b"x", headers={"content-length": "64000001"})
    assert answer.status_code == 413
    assert "64.0 MB" in answer.json()["detail"]
    answer = idle.post("/api/runs", content=b"x" * 2_000_000)  # a wish is no picture
    assert answer.status_code == 413
    monkeypatch.setattr(pictures, "MAX_PIXELS", 48 * 40 - 1)
    answer = idle.post("/api/pictures?name=large.png", content=encoded())
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("large.png has 1,920 pixels, more than the limit")


def test_pictures_that_come_at_the_same_time_wait_for_each_other(server):
    head = b"POST /api/pictures HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(front.UPLOADS):  # who promise a picture and send none
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            slow.sendall(head)
        time.sleep(0.5)
        with pytest.raises(httpx.ReadTimeout):
            server.client.post("/api/pictures", content=encoded(), timeout=1)
        assert server.client.get("/api/runs").status_code == 200
    assert server.client.post("/api/pictures", content=encoded()).status_code == 201


def test_a_picture_that_never_comes_is_not_waited_for(idle, monkeypatch):
    monkeypatch.setattr(routes, "PATIENCE", 0.1)

    async def never() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(10)

    answer = idle.post("/api/pictures", content=never())
    assert answer.status_code == 408
    assert "try again" in answer.json()["detail"]


def test_a_decoder_on_its_way_is_told(tmp_path, monkeypatch):
    def obtain(name: str, source: object) -> Iterator[download.Progress]:
        yield download.Progress(20, 80)
        seen.append(shop.glimpse)
        yield download.Progress(80, 80)
        seen.append(shop.glimpse)

    seen: list[Any] = []
    monkeypatch.setattr(download, "obtain", obtain)
    monkeypatch.setattr(checkpoints, "location", lambda name: tmp_path / "not there")
    shop = workshop.Workshop(store.Store(tmp_path))
    shop.glimpse = workshop.Glimpse(run="a")
    with pytest.raises(ImpastoError, match="not here"):  # this one never came
        shop.supplies.decoder("adain-original", "cpu")
    assert [(each.phase, each.progress) for each in seen] == [("fetching", 0.25), ("opening", 0.0)]
    shop.store.close()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode))
def test_nothing_that_the_description_allows_or_forbids_breaks_the_api(tmp_path, mode):
    made = app.create(tmp_path)
    description = schemathesis.openapi.from_asgi("/openapi.json", made)
    asked = 0

    for found in description.get_all_operations():
        operation = found.ok()

        @settings(max_examples=12, database=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.as_strategy(generation_mode=mode))
        def check(case: schemathesis.Case) -> None:
            nonlocal asked
            asked += 1
            case.call_and_validate(checks=[not_a_server_error])

        with suppress(Unsatisfiable):  # what has no input cannot be asked wrongly
            check()
    assert asked > 12 * 8
    made.state.front.store.close()


def test_every_setting_of_a_recipe_is_offered_with_its_limits(idle):
    schema = idle.get("/api/settings").json()
    offered = {each["name"]: each for each in schema["settings"]}
    assert list(offered) == [each.name for each in fields(Recipe)]
    assert list(schema["methods"]) == list(EVERY_METHOD)
    defaults = {name: each["default"] for name, each in offered.items()}
    assert Recipe.from_dict(defaults) == Recipe()
    for name, each in offered.items():
        choices = [each["default"]] if each["kind"] == "list" else each["choices"]
        assert each["default"] in choices or not each["choices"], name
    assert offered["alpha"]["high"] == 1
    assert offered["kernel"]["methods"] == ["mmd"]
    assert offered["strength"]["methods"] == list(FEED_FORWARD)
    assert offered["seed"]["methods"] == list(EVERY_METHOD)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"start": "/etc/passwd"}, "start"),
        ({"start": "../uploads/x.png"}, "start"),
        ({"weights": "~/.ssh/id_rsa"}, "weights"),
        ({"decoder": "/etc/passwd"}, "decoder"),
        ({"device": "cpu; rm"}, "device"),
        ({"device": "\ud800"}, "device"),
        ({"size": 10**9}, "size"),
        ({"alpha": "NaN"}, "alpha"),
        ({"steps": [1]}, "steps"),
        ({"layers": {"a": 1}}, "layers"),
        ({"nothing\ud800": 1}, "unknown setting"),
        ({"preset": "fast"}, "unknown setting 'preset'"),
    ],
)
def test_settings_that_are_wrong_or_name_a_file_are_refused_with_a_sentence(idle, change, word):
    for path in ("/api/runs", "/api/sketches"):
        body = json.dumps(wanted(**change))
        answer = idle.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422
        assert word in answer.json()["detail"]
    assert idle.get("/api/runs").json()["runs"] == []


def test_the_queue_is_bounded_and_a_waiting_run_can_leave_it(idle):
    runs = [idle.post("/api/runs", json=wanted()).json() for _ in range(workshop.MAX_WAITING)]
    assert [run["place"] for run in runs] == list(range(workshop.MAX_WAITING))
    refused = idle.post("/api/runs", json=wanted())
    assert refused.status_code == 409
    assert "waiting already" in refused.json()["detail"]
    assert idle.delete(f"/api/runs/{runs[0]['id']}").status_code == 409
    assert idle.post(f"/api/runs/{runs[0]['id']}/stop").json()["state"] == "interrupted"
    assert idle.get(f"/api/runs/{runs[1]['id']}").json()["place"] == 0
    assert idle.delete(f"/api/runs/{runs[0]['id']}").status_code == 204
    assert idle.get(f"/api/runs/{runs[0]['id']}").status_code == 404
    assert idle.post("/api/runs", json=wanted()).status_code == 201


def test_the_history_comes_in_pages_and_is_never_deleted_unasked(idle, monkeypatch):
    monkeypatch.setattr(store, "MAX_RUNS", 5)
    ids = [idle.post("/api/runs", json=wanted()).json()["id"] for _ in range(5)]
    first = idle.get("/api/runs?limit=3").json()
    rest = idle.get(f"/api/runs?limit=3&before={first['runs'][-1]['created']}").json()
    assert [first["more"], rest["more"]] == [True, False]
    assert [run["id"] for run in first["runs"] + rest["runs"]] == ids[::-1]
    refused = idle.post("/api/runs", json=wanted())
    assert refused.status_code == 422
    assert "history is full" in refused.json()["detail"]


def test_only_the_newest_sketch_counts(idle):
    upload = idle.front.store.upload
    older = idle.front.workshop.sketch(upload("coffee"), upload("irises"), Recipe())
    idle.front.workshop.sketch(upload("coffee"), upload("cypresses"), Recipe())
    with pytest.raises(workshop.Busy, match="newer"):
        older.result(0)


def test_sketches_are_small_enough_and_large_enough_for_any_shape():
    for content in ((4000, 3000), (33, 3300), (600, 40), (64, 64)):
        for style in ((300, 300), (40, 4000)):
            for size in (64, 512, "original"):
                recipe = wishes.sketch_of(Recipe(size=size), content, style)
                assert recipe.size <= max(wishes.SKETCH_SIDE, 34 * max(content) / min(content))
                assert min(style) * recipe.style_size / max(style) >= 32


def test_uploads_are_kept_once_and_dropped_when_nobody_needs_them(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "SPARE_UPLOADS", 3)
    kept = store.Store(tmp_path)
    given = [
        kept.add_upload(bytes([number]), name="x", size=(9, 9), thumb=b"t") for number in range(3)
    ]
    assert kept.add_upload(bytes([0]), name="y", size=(9, 9), thumb=b"t").id == given[0].id
    kept.add_run(given[1], store.sample("irises"), Recipe())
    for number in range(3, 9):
        kept.add_upload(bytes([number]), name="x", size=(9, 9), thumb=b"t")
    assert kept.upload(given[1].id).name == "x"  # a run needs it
    assert len(list((tmp_path / "uploads").iterdir())) == 3 + 1
    monkeypatch.setattr(store, "SPARE_SECONDS", -1.0)
    kept.tidy()
    assert [path.name for path in (tmp_path / "uploads").iterdir()] == [given[1].id]
    with pytest.raises(KeyError):
        kept.upload(given[0].id)
    kept.close()


def test_a_picture_on_the_disk_is_finished_even_if_nobody_noted_it(tmp_path):
    kept = store.Store(tmp_path)
    both = [kept.add_run(store.sample("coffee"), store.sample("irises"), Recipe()) for _ in "ab"]
    kept.mark(both[0], "painting")
    imagefile.write(kept.result_path(both[0]), np.zeros((5, 7, 3)), record={"steps": {}})
    (tmp_path / "uploads" / ("0" * 32)).write_bytes(b"cut off before it was noted")
    kept.close()
    kept = store.Store(tmp_path)
    found = [kept.run(each.id) for each in both]
    assert [each.state for each in found] == ["done", "interrupted"]
    assert (found[0].width, found[0].height) == (7, 5)
    assert list((tmp_path / "uploads").iterdir()) == []
    kept.close()


def test_files_of_others_and_finished_pictures_are_left_alone(tmp_path):
    """A folder that was used for something else, and one whose database was lost."""
    strangers = [tmp_path / "results" / "fig.png", tmp_path / "checkpoints" / "model.pt"]
    for path in strangers:
        path.parent.mkdir()
        path.write_bytes(b"precious")
    (tmp_path / "uploads" / ("1" * 32 + "x")).mkdir(parents=True)
    kept = store.Store(tmp_path)
    run = kept.add_run(store.sample("coffee"), store.sample("irises"), Recipe())
    imagefile.write(kept.result_path(run), np.zeros((5, 7, 3)), record={"steps": {}})
    kept.complete(run)
    kept.close()
    (tmp_path / "studio.sqlite3").unlink()
    store.Store(tmp_path).close()
    assert all(path.read_bytes() == b"precious" for path in strangers)
    assert kept.result_path(run).exists()


def test_a_run_that_could_not_be_begun_is_tried_again(tmp_path, monkeypatch):
    kept = store.Store(tmp_path)
    shop = workshop.Workshop(kept)
    run = shop.add(store.sample("coffee"), store.sample("irises"), Recipe())
    monkeypatch.setattr(workshop, "BREATH", 0.0)
    with monkeypatch.context() as full:
        full.setattr(kept, "mark", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full")))
        shop._turn()
    assert kept.run(run.id).state == "waiting"
    assert shop.place(run) == 0  # still in the queue
    assert shop._next().id == run.id
    kept.close()


def test_a_folder_has_one_studio_and_a_newer_one_is_left_alone(tmp_path):
    kept = store.Store(tmp_path)
    with pytest.raises(ImpastoError, match="another studio"):
        store.Store(tmp_path)
    kept.close()
    (tmp_path / "file").touch()
    with pytest.raises(ImpastoError, match="--data"):
        store.Store(tmp_path / "file")


def test_a_run_that_fails_says_why_in_a_sentence(server):
    narrow = server.client.post("/api/pictures?name=a.png", content=encoded(size=(400, 33)))
    wish = {**wanted(size=64), "content": narrow.json()["id"]}
    run = server.client.post("/api/runs", json=wish).json()
    failed = server.until(run["id"], "failed")
    assert "larger size" in failed["error"]
    assert server.client.get(f"/api/runs/{run['id']}/result.png").status_code == 404
    assert server.client.get(f"/api/runs/{run['id']}/live").status_code == 404


def test_the_door_is_shut_for_other_hosts_and_other_pages(server):
    ask = server.client.get
    assert ask("/", headers={"host": "evil.example"}).status_code == 421
    assert ask("/api/runs", headers={"origin": "http://evil.example"}).status_code == 403
    policy = ask("/").headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self'" in policy
    assert ask("/%2e%2e/app.py").status_code == 404


def test_others_than_this_machine_need_the_token(tmp_path):
    running = Server(tmp_path, "--host", "0.0.0.0")
    try:
        assert running.client.get("/api/runs").status_code == 401
        token = re.search(r"token=(\S+)", running.link)[1]
        headers = {"authorization": f"Bearer {token}"}
        assert running.client.get("/api/runs", headers=headers).status_code == 200
    finally:
        running.end()
    running = Server(tmp_path, "--host", "0.0.0.0")
    try:  # the link of before is still good
        assert running.client.get("/api/runs", headers=headers).status_code == 200
    finally:
        running.end()
