"""One HTML page with everything in it: figures, captions, tables."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import PIL.Image

from impasto.experiments import Caption, Row

QUALITY = 88  # of the pictures in the page; the PNG files beside it are exact
STYLE = """
:root { color-scheme: light dark; --ink: #222; --paper: #fff; --line: #ddd; --quiet: #555; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #eee; --paper: #181818; --line: #444; --quiet: #bbb; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 0 auto; padding: 1rem; max-width: 72rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }
nav ul { columns: 2 20rem; padding-left: 1.2rem; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; max-width: 60rem; }
dt { font-weight: 600; } dd { margin: 0; }
.made, footer { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-size: .85rem; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .7rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } thead th { vertical-align: bottom; }
summary { cursor: pointer; margin: .5rem 0; }
"""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One experiment as it is shown."""

    name: str
    title: str
    caption: Caption
    rows: Sequence[Row]
    figure: bytes  # PNG
    made: str  # with what it was made


def page(sections: Sequence[Section], *, about: Mapping[str, str]) -> str:
    """The report."""
    contents = "".join(
        f'<li><a href="#{each.name}">{each.name}</a>: {escape(each.title)}</li>'
        for each in sections
    )
    facts = "; ".join(f"{escape(name)} {escape(value)}" for name, value in about.items())
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>The paper, reproduced</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        "<main>\n<h1>In the light of feature distributions, reproduced</h1>\n"
        "<p>The experiments of Kalischek, Wegner and Schindler (CVPR 2021) made again by "
        "<code>impasto paper</code>. What is said under a figure about our runs is computed from "
        "the data beside this page.</p>\n"
        f'<nav aria-label="experiments"><ul>{contents}</ul></nav>\n'
        f"{''.join(map(_section, sections))}</main>\n<footer><p>{facts}</p></footer>\n"
        "</body>\n</html>\n"
    )


def _section(section: Section) -> str:
    name, caption = section.name, section.caption
    terms = {"the paper": caption.paper, "here": caption.seen, "difference": caption.differs}
    told = "".join(f"<dt>{term}</dt><dd>{escape(text)}</dd>" for term, text in terms.items())
    return (
        f'<section aria-labelledby="{name}">\n'
        f'<h2 id="{name}">{name}: {escape(section.title)}</h2>\n'
        f'<figure><a href="{name}.png"><img alt="{escape(section.title)}" '
        f'src="{_inlined(section.figure)}"></a>\n'
        f"<figcaption><dl>{told}</dl></figcaption></figure>\n{_table(section.rows)}"
        f'<p class="made">{escape(section.made)} Files: <a href="{name}.json">{name}.json</a>, '
        f'<a href="{name}.csv">{name}.csv</a>, <a href="{name}.png">{name}.png</a>, '
        f'<a href="{name}.svg">{name}.svg</a></p>\n</section>\n'
    )


def _inlined(png: bytes) -> str:
    """The picture as an address: WebP, because sheets of paintings are large as PNG."""
    stream = io.BytesIO()
    PIL.Image.open(io.BytesIO(png)).convert("RGB").save(stream, "WEBP", quality=QUALITY)
    return f"data:image/webp;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _table(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(value))}</td>" for value in row.values()) + "</tr>\n"
        for row in rows
    )
    return (
        f"<details><summary>numbers ({len(rows)} rows)</summary>"
        f'<div class="wide" tabindex="0" role="region" aria-label="table"><table><thead><tr>{head}'
        f"</tr></thead>\n<tbody>{body}</tbody></table></div></details>\n"
    )


def shown(value: Any) -> str:
    """A value for people: four digits are enough."""
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
