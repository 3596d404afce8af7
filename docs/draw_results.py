"""Draws the figures of docs/results.md, and the README's, from the tables there: python docs/draw_results.py"""

import re
from pathlib import Path

from rerank.runs.report.page import FigureLine, Scale, draw, linear

DOCS = Path(__file__).parent


def table(heading: str, number: int = 0) -> dict[str, list[str]]:
    """The cells of a table below a heading, by the text of the first column; its header is under ""."""
    text = (DOCS / "results.md").read_text(encoding="utf-8").split(f"# {heading}\n")[1].split("\n#")[0]
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)[number].replace("**", "").splitlines()
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in found]
    return {"": rows[0][1:]} | {row[0]: row[1:] for row in rows[2:]}


def numbers(cell: str) -> list[float]:
    """The numbers in a cell: a mean and its deviation, or those of several splits."""
    return [float(number) for number in re.findall(r"\d*\.\d+", cell)]


def figure(caption: str, y_label: str, places: list[str], lines: list[FigureLine]) -> str:
    """An SVG of points over ``places``, with a line at 0."""
    x = Scale(0.4, len(places) + 0.6, tuple((float(k), place) for k, place in enumerate(places, start=1)))
    y = linear([0.0, *(value for line in lines for end in line.band for value in end)], margin=0.04)
    return draw(caption, lines, "", y_label, x=x, y=y).standalone()


def parses() -> str:
    """How much F rerankers gain on GUM's test."""
    plain, decoded = table("Reranking GUM"), table("Decoding GUM", 1)
    base = float(plain["base"][1])
    five, seven = decoded["means of five seeds"], decoded["all 394,328 weights of seven seeds"]
    other = plain["a C++ reranker with Charniak & Johnson's features, maximum entropy"][1]
    found = {"C++": numbers(other)[0], "average": numbers(plain["average"][1])[0]}
    found |= dict(zip(["mbr", "fusion", "learned"], (numbers(cell)[1] for cell in five[1:]), strict=True))
    found["7 seeds"] = numbers(seven[3])[1]
    over = [value - base for value in found.values()]
    lines = [FigureLine(range(1, len(over) + 1), over, joined=False)]
    return figure("F over the base, parses of GUM", f"F over the base ({base})", list(found), lines)


def translations() -> str:
    """How much BLEU rerankers gain on the tests of Multi30k."""
    found = table("Translations")
    rows = {
        "kbmira": "kbmira, dense, trained on train",
        "its pairs": "kbmira, dense and phrase pairs",
        "dptm": "`translation-dptm.yaml`: dense and phrase pairs, Bayes risk",
        "all": "`translation.yaml`: all templates, adaptive RDA, Bayes risk",
    }
    lines = []
    for test in (1, 2):
        base = float(found["base"][test])
        means = [numbers(found[row][test]) for row in rows.values()]
        spread = [mean[1] if len(mean) > 1 else 0.0 for mean in means]
        over = [mean[0] - base for mean in means]
        places = [k + 0.1 * test - 0.15 for k in range(1, len(rows) + 1)]
        lines.append(FigureLine(places, over, found[""][test], spread, joined=False))
    return figure("BLEU over the base, Multi30k", "BLEU over the base", list(rows), lines)


def glance(*, dark: bool) -> str:
    """For every task a line from the base to the best possible choice, with this program and the best other on it."""
    ink, muted, rule, ours = (
        ("#e6edf3", "#9198a1", "#3d444d", "#58a6ff") if dark else ("#1f2328", "#59636e", "#d1d9e0", "#0072b2")
    )
    left, right, first, step = 44, 396, 66, 52
    found = table("At a glance")
    height = first + step * (len(found) - 1) - 36
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 440 {height}" width="560" role="img" '
        f'font-family="sans-serif" font-size="13" fill="{ink}">',
        "<title>From the base to the best possible choice, in five tasks</title>",
        f'<g fill="{muted}"><text x="{left}" y="20">base</text>'
        f'<text x="{right}" y="20" text-anchor="end">best possible</text>'
        f'<circle cx="136" cy="16" r="6" fill="{ours}"/><text x="148" y="20">rerank</text>'
        f'<circle cx="214" cy="16" r="5" fill="none" stroke="{ink}" stroke-width="1.5"/>'
        '<text x="226" y="20">best other</text></g>',
    ]
    for k, (task, cells) in enumerate([row for row in found.items() if row[0]]):
        base, other, own, best = (float(cell) for cell in cells[:4])
        at = {value: left + (right - left) * (value - base) / (best - base) for value in (other, own)}
        y = first + step * k
        lines += [
            f'<text x="0" y="{y - 14}">{task}</text>',
            f'<text x="440" y="{y - 14}" text-anchor="end" fill="{ours}">{cells[2]}'
            f'<tspan fill="{muted}"> · {cells[4]} {cells[1]}</tspan></text>',
            f'<path d="M{left} {y}H{right}m0-5v10M{left} {y - 5}v10" stroke="{rule}" stroke-width="2" fill="none"/>',
            f'<text x="{left - 9}" y="{y + 4}" text-anchor="end" fill="{muted}">{cells[0]}</text>',
            f'<text x="{right + 9}" y="{y + 4}" fill="{muted}">{cells[3]}</text>',
            f'<circle cx="{at[own]:.1f}" cy="{y}" r="6" fill="{ours}"/>',
            f'<circle cx="{at[other]:.1f}" cy="{y}" r="5" fill="none" stroke="{ink}" stroke-width="1.5"/>',
        ]
    return "\n".join([*lines, "</svg>\n"])


def figures() -> dict[str, str]:
    """All figures by file."""
    modes = {f"glance-{name}.svg": glance(dark=name == "dark") for name in ("light", "dark")}
    return modes | {"results-parses.svg": parses(), "results-translations.svg": translations()}


def main() -> None:
    """Write the figures."""
    for name, drawn in figures().items():
        (DOCS / name).write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
