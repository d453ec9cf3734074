"""The report of a study: a page that needs nothing else, tables, figures."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

from impasto import __version__, files
from impasto.maths.votes import Interval
from impasto.study import figures
from impasto.study.findings import Comparison, Findings, Group
from impasto.types import ImpastoError

SIGNIFICANT = 0.05
Row: TypeAlias = "Mapping[str, str | int | float]"
CSS = """
:root { color-scheme: light dark; --paper: #faf8f4; --ink: #201d19; --soft: #645d53;
  --line: #dfdad0; --accent: #274690; --wall: #fffefc; }
@media (prefers-color-scheme: dark) { :root { --paper: #171613; --ink: #f1ece3; --soft: #aca496;
  --line: #3a372f; --accent: #a4bcf6; --wall: #1f1e1b; } }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 56rem; background: var(--paper);
  color: var(--ink); font: 16px/1.6 -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
  "Noto Sans", "Liberation Sans", Arial, sans-serif; }
h1, h2 { font-family: "Iowan Old Style", "Palatino Linotype", Palatino, "Liberation Serif",
  Georgia, serif; font-weight: 500; line-height: 1.25; }
h1 { font-size: 2rem; margin: 0 0 .5rem; } h2 { margin: 2.75rem 0 .5rem; }
.lead { font-size: 1.1rem; } .note, footer { color: var(--soft); font-size: .92rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 500; color: var(--soft); } .word { text-align: left; }
tr.best td { font-weight: 600; } td.sure { color: var(--accent); font-weight: 600; }
img { max-width: 100%; height: auto; background: #fff; border-radius: 8px; padding: .5rem;
  box-sizing: border-box; }
"""


def write(found: Findings, folder: Path) -> None:
    """Write report.html, the tables and the figures into a folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ImpastoError(f"{folder} cannot be made: {problem.strerror}") from None
    drawn = figures.draw(found)
    for name, rows in _tables(found).items():
        files.write_atomically(folder / f"{name}.csv", _csv(rows))
    pictures = {}
    for name, figure in drawn.items():
        for kind in ("png", "svg"):
            data = figures.encode(figure, kind)
            files.write_atomically(folder / f"{name}.{kind}", data)
        pictures[name] = data
    files.write_atomically(folder / "report.html", page(found, pictures).encode())


def text(found: Findings) -> str:
    """The table of votes for a terminal."""
    width = max(len("method"), *map(len, found.methods))
    lines = [f"{'method':{width}}  votes  per cent  {_level(found)} interval"]
    for each in found.order:
        share = found.shares[each]
        lines.append(
            f"{found.methods[each]:{width}}  {share.votes:5}  {100 * share.share:8.1f}  "
            f"{_range(share.alone)}"
        )
    return "\n".join([*lines, "", *summary(found)])


def summary(found: Findings) -> list[str]:
    """The main results in sentences."""
    if not found.total:
        return ["Nobody has voted yet."]
    by = f" by {_many(found.participants, 'participant')}" if found.participants else ""
    best, next_best = found.order[:2]
    sentences = [f"{_many(found.total, 'vote')}{by}."]
    if found.shares[best].share == found.shares[next_best].share:
        return [*sentences, f"{found.methods[best]} and {found.methods[next_best]} are level."]
    comparison = _between(found, best, next_best)
    difference = comparison.difference
    lead = difference.lead if difference.first == best else -difference.lead
    # Votes of one person are not independent: where it is known whose they are, people count.
    p, adjusted, unit = difference.p, difference.adjusted, ""
    if comparison.by_voter is not None and comparison.by_voter_adjusted is not None:
        p, adjusted = comparison.by_voter, comparison.by_voter_adjusted
        unit = " with participants as the unit"
    verdict = "is hardly chance" if adjusted < SIGNIFICANT else "may be chance"
    met = " where the two met" if found.two else ""
    points = f"{100 * lead:.1f}".replace("-", "−")
    sentences.append(
        f"{found.methods[best]} leads; its lead over {found.methods[next_best]}{met}, "
        f"{points} points ({_range(_toward(comparison, best))}), "
        f"{verdict} ({_equals(p)}{unit}, with all {len(found.comparisons)} "
        f"comparisons in view {_p(adjusted)})."
    )
    return sentences


def page(found: Findings, pictures: Mapping[str, bytes]) -> str:
    """The report as one file of HTML."""
    parts = [
        f"<h1>{escape(found.title)}</h1>",
        f'<p class="lead">{escape(" ".join(summary(found)))}</p>',
        *_votes_part(found, pictures),
        *_comparisons_part(found),
        *_strengths_part(found, pictures),
        *_agreement_part(found),
        *_groups_part("Per style", "style", found, found.styles, pictures.get("styles")),
        *_groups_part("Per content", "content", found, found.contents, None),
        *_groups_part("Per pair", "pair", found, found.pairs, None),
        f"<footer><p>Made by impasto {__version__}.</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(found.title)}: report</title><style>{CSS}</style></head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + "\n</main>\n</body></html>\n"
    )


def _votes_part(found: Findings, pictures: Mapping[str, bytes]) -> list[str]:
    head = ["method", "votes", "shown", "per cent", f"{_level(found)} interval", "all at once"]
    rows = []
    for each in found.order:
        share = found.shares[each]
        row = [found.methods[each], str(share.votes), str(found.shown[each])]
        rows.append([*row, f"{100 * share.share:.1f}", _range(share.alone), _range(share.together)])
    if not found.two:  # all were shown always
        head, rows = [*head[:2], *head[3:]], [[*row[:2], *row[3:]] for row in rows]
    if found.by_voter:
        head.append("by participants")
        for each, row in zip(found.order, rows, strict=True):
            row.append(_range(found.by_voter[each]))
    return [
        "<h2>Votes</h2>",
        _table("votes", head, rows, best=0),
        _figure(pictures.get("shares"), "Share of each method with its interval; dashed: chance"),
        _note(" ".join(_words_on_votes(found))),
    ]


def _words_on_votes(found: Findings) -> Iterable[str]:
    shown = "the ballots on which the method was shown" if found.two else "all votes"
    yield f"Per cent of {shown}."
    yield "Intervals are Wilson's; “all at once” holds for all methods together (Goodman)."
    if found.by_voter:
        yield (
            "“By participants” draws participants instead of votes, since the votes of one person "
            "are alike; it is the thick band in the figure."
        )
    yield (
        f"If all methods were equally liked, votes as uneven as these had {_equals(found.equal)}."
    )


def _comparisons_part(found: Findings) -> list[str]:
    head = ["leads", "over", "votes", "lead in points", f"{_level(found)} interval", "p", "Holm"]
    head += ["by participants", "Holm"] if found.by_voter else []
    ordered = sorted(found.comparisons, key=lambda each: -abs(each.difference.lead))
    rows = [_comparison_row(found, each) for each in ordered]
    sure = {
        (y, x)
        for y, each in enumerate(ordered)
        for x, p in ((6, each.difference.adjusted), (8, each.by_voter_adjusted))
        if p is not None and p < SIGNIFICANT
    }
    note = (
        "p is the exact probability of a lead as large as this, in either direction, if both were "
        "equally liked; Holm's correction makes all of them readable together. Colored: below "
        f"{SIGNIFICANT}."
    )
    if found.by_voter:
        note += (
            " “By participants” takes each person's lead as one observation and flips its sign: "
            "the safer test where people differ."
        )
    return ["<h2>Differences</h2>", _table("differences", head, rows, sure=sure), _note(note)]


def _comparison_row(found: Findings, comparison: Comparison) -> list[str]:
    """A difference as seen from the one that leads."""
    difference = comparison.difference
    first, second = _leader(comparison)
    votes = comparison.votes if first == difference.first else comparison.votes[::-1]
    row = [found.methods[first], found.methods[second], f"{votes[0]} : {votes[1]}"]
    row += [f"{100 * abs(difference.lead):.1f}", _range(_toward(comparison, first))]
    row += [_p(difference.p), _p(difference.adjusted)]
    if found.by_voter:
        row += [_p(comparison.by_voter), _p(comparison.by_voter_adjusted)]
    return row


def _strengths_part(found: Findings, pictures: Mapping[str, bytes]) -> list[str]:
    order = sorted(range(len(found.methods)), key=lambda each: -found.strengths.logs[each])
    rows = [
        [
            str(place),
            found.methods[each],
            f"{found.strengths.logs[each]:+.2f}".replace("-", "−"),
            _range(found.strengths.intervals[each], scale=1, digits=2),
            f"{100 * found.strengths.beats(order[0], each):.0f}" if each != order[0] else "",
        ]
        for place, each in enumerate(order, start=1)
    ]
    head = ["rank", "method", "log-strength", f"{_level(found)} interval", "first wins, %"]
    note = (
        "A method is chosen in proportion to its strength among those shown: Bradley and Terry for "
        "two at a time, Luce for more. Logarithms with mean 0."
    )
    if found.strengths.prior:
        note += (
            " Some methods never lost to others, so the votes alone give no finite strength: half "
            "a win was added to both sides of each pair."
        )
    return [
        "<h2>Ranking</h2>",
        _table("ranking", head, rows, best=0),
        _figure(pictures.get("strengths"), "Log-strength of each method with its interval"),
        _note(note),
    ]


def _agreement_part(found: Findings) -> list[str]:
    sentences = []
    if agreement := found.agreement:
        sentences.append(
            f"Fleiss’ κ = {agreement.kappa:.2f} ({_level(found)}: "
            f"{agreement.interval.low:.2f} to {agreement.interval.high:.2f}) on "
            f"{_many(agreement.ballots, 'ballot')} that at least two have voted on: two of them "
            f"agree in {100 * agreement.observed:.0f} per cent of cases, by chance it were "
            f"{100 * agreement.expected:.0f}. 1 is always, 0 is chance."
        )
    elif found.participants:
        sentences.append("No ballot has been voted on by two participants yet.")
    if consistency := found.consistency:
        sentences.append(
            f"Of {consistency.repeats} repeated ballots {consistency.same} got the same answer "
            f"again ({_range(consistency.interval)} per cent)."
        )
    if not sentences:
        return []
    return ["<h2>Agreement</h2>", f"<p>{escape(' '.join(sentences))}</p>"]


def _groups_part(
    title: str, kind: str, found: Findings, groups: Sequence[Group], picture: bytes | None
) -> list[str]:
    if len(groups) < 2:
        return []
    head = [kind, "votes", *(found.methods[each] for each in found.order), "p", "Holm"]
    rows: list[list[str]] = []
    sure = set()
    for group in groups:
        if group.adjusted < SIGNIFICANT:
            sure.add((len(rows), len(head) - 1))
        cells = [
            f"{100 * group.counts[each] / group.shown[each]:.0f}" if group.shown[each] else "–"
            for each in found.order
        ]
        total = str(sum(group.counts))
        rows.append([group.name, total, *cells, _p(group.p), _p(group.adjusted)])
    note = (
        f"Per cent of the votes on each {kind}. p is that of votes as uneven if all methods were "
        "equally liked there."
    )
    return [
        f"<h2>{title}</h2>",
        *([_figure(picture, f"Per cent of votes by {kind} and method")] if picture else []),
        _table(title.lower(), head, rows, sure=sure),
        _note(note),
    ]


def _tables(found: Findings) -> dict[str, list[Row]]:
    """The same as tables for programs."""
    tables: dict[str, list[Row]] = {
        "table": [_share_row(found, each) for each in range(len(found.methods))],
        "differences": [_difference_row(found, each) for each in found.comparisons],
        "ranking": [
            {
                "method": found.methods[each],
                "log_strength": found.strengths.logs[each],
                **_ends("log_strength", found.strengths.intervals[each]),
            }
            for each in sorted(
                range(len(found.methods)), key=lambda each: -found.strengths.logs[each]
            )
        ],
    }
    groups = {"per_style": found.styles, "per_content": found.contents, "per_pair": found.pairs}
    for name, parts in groups.items():
        if parts:
            tables[name] = [row for group in parts for row in _group_rows(found, group)]
    if found.rows:
        tables["votes"] = list(found.rows)
    return tables


def _share_row(found: Findings, each: int) -> Row:
    share = found.shares[each]
    row: dict[str, str | int | float] = {
        "method": found.methods[each],
        "votes": share.votes,
        "shown": found.shown[each],
        "percent": round(100 * share.share, 1),
        "share": share.share,
        **_ends("share", share.alone),
        **_ends("share_together", share.together),
    }
    return {**row, **(_ends("share_by_voter", found.by_voter[each]) if found.by_voter else {})}


def _difference_row(found: Findings, comparison: Comparison) -> Row:
    difference = comparison.difference
    row: dict[str, str | int | float] = {
        "first": found.methods[difference.first],
        "second": found.methods[difference.second],
        "votes_first": comparison.votes[0],
        "votes_second": comparison.votes[1],
        "lead": difference.lead,
        **_ends("lead", difference.interval),
        "p": difference.p,
        "p_holm": difference.adjusted,
    }
    if comparison.by_voter is not None and comparison.by_voter_adjusted is not None:
        row |= {
            "p_by_voter": comparison.by_voter,
            "p_by_voter_holm": comparison.by_voter_adjusted,
        }
    return row


def _group_rows(found: Findings, group: Group) -> Iterable[Row]:
    for each, method in enumerate(found.methods):
        yield {
            "group": group.name,
            "method": method,
            "votes": group.counts[each],
            "shown": group.shown[each],
            "p_equal": group.p,
            "p_equal_holm": group.adjusted,
        }


def _ends(name: str, interval: Interval) -> dict[str, str | int | float]:
    return {f"{name}_low": interval.low, f"{name}_high": interval.high}


def _csv(rows: Sequence[Row]) -> bytes:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def _between(found: Findings, first: int, second: int) -> Comparison:
    wanted = {first, second}
    return next(
        each
        for each in found.comparisons
        if {each.difference.first, each.difference.second} == wanted
    )


def _leader(comparison: Comparison) -> tuple[int, int]:
    first, second = comparison.difference.first, comparison.difference.second
    return (first, second) if comparison.difference.lead >= 0 else (second, first)


def _toward(comparison: Comparison, leader: int) -> Interval:
    """The interval of a lead as seen from one side."""
    low, high = comparison.difference.interval
    return Interval(low, high) if leader == comparison.difference.first else Interval(-high, -low)


def _level(found: Findings) -> str:
    return f"{100 * found.confidence:g}%"


def _range(interval: Interval, *, scale: float = 100, digits: int = 1) -> str:
    return f"{scale * interval.low:.{digits}f} to {scale * interval.high:.{digits}f}".replace(
        "-", "−"
    )


def _p(p: float | None) -> str:
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def _equals(p: float) -> str:
    return f"p {_p(p)}" if p < 0.001 else f"p = {_p(p)}"


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _note(words: str) -> str:
    return f'<p class="note">{escape(words)}</p>'


def _figure(svg: bytes | None, words: str) -> str:
    if not svg:
        return ""
    data = base64.b64encode(svg).decode()
    return f'<p><img src="data:image/svg+xml;base64,{data}" alt="{escape(words)}"></p>'


def _table(
    name: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    best: int = -1,
    sure: Any = frozenset(),
) -> str:
    """A table that can be moved sideways by the keyboard where it is too wide."""
    lines = [f'<div class="wide" tabindex="0" role="region" aria-label="{name}">']
    lines.append("<table><thead><tr>")
    words = {x for x, cell in enumerate(head) if x == 0 or cell in ("method", "over")}
    kinds = dict.fromkeys(words, " class=word")
    lines += [
        f'<th scope="col"{kinds.get(x, "")}>{escape(cell)}</th>' for x, cell in enumerate(head)
    ]
    lines.append("</tr></thead><tbody>")
    for y, row in enumerate(rows):
        marks = [" class=sure" if (y, x) in sure else kinds.get(x, "") for x in range(len(row))]
        cells = "".join(
            f"<td{mark}>{escape(cell)}</td>" for mark, cell in zip(marks, row, strict=True)
        )
        lines.append(f"<tr{' class=best' if y == best else ''}>{cells}</tr>")
    return "".join([*lines, "</tbody></table></div>"])
