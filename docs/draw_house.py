"""Draws docs/house.svg, the folders of rerank/ and what they import, from the sources: python docs/draw_house.py

A folder stands above all that it imports from, and a line joins it to those that it does not reach by way of others.
Its sentence is the first line of its ``__init__.py``. docs/way.svg has the modules that a list passes, from its file to
metrics.json, with their imports of one another, all of which lead back.
"""

import ast
import html
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH, ROW, BOX = 1000, 92, 52  # of the picture, of a floor, of a box: in pixels
COLOURS = ("#dceefb", "#e6f4ea", "#fdf1d8", "#f6e3ef")


# The way of a list, and what each module makes of it.
WAY = {
    "readers.streams": "bytes, decompressed",
    "readers.inputs": "each file opened once, its digest taken as it streams",
    "readers.nbest": "NBestList: what the lines of a list say",
    "readers.sides": "the same with its gold tree, source, references",
    "features.collecting": "ListFeatures: what varies among its candidates",
    "extraction.content.base": "Pair: the list opened, trees or words and phrases",
    "features.rows": "ListRows: a block of lists by feature, packed",
    "extraction.blocks": "features and statistics, in blocks: tasks of the engine's workers",
    "extraction.assembly": "Corpus: columns, and shards of lists by candidate",
    "extraction.extraction": "Extracted: a split, the ids of its lists, what was left out",
    "extraction.cache": "the split on disk, under the digest of what it was made from",
    "runs.corpora": "the corpora of a recipe",
    "runs.training": "a Run: the best epoch on dev",
    "runs.results": "predictions: scores from the corpus, texts from the open file",
    "runs.list_steps": "what is done in every stage",
    "runs.pipeline": "the stages of a recipe, one after the other",
}


def folders() -> dict[str, str]:
    """The folders of the package, and what each says of itself."""
    found = {}
    for path in sorted((ROOT / "rerank").glob("*/__init__.py")):
        sentence = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        found[path.parent.name] = sentence.split("\n")[0].replace("``", "")
    return found


def imports(folder: str, known: dict[str, str]) -> set[str]:
    """The other folders that the modules of a folder import from."""
    found = set[str]()
    for path in (ROOT / "rerank" / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module == "rerank":
                names += [f"rerank.{alias.name}" for alias in node.names]
            found |= {name.split(".")[1] for name in names if name.startswith("rerank.")}
    return (found & set(known)) - {folder}


def floors(graph: dict[str, set[str]]) -> list[list[str]]:
    """The folders by floor, from the ground up."""
    level: dict[str, int] = {}
    while len(level) < len(graph):
        ready = [name for name, below in graph.items() if name not in level and below <= set(level)]
        assert ready, "folders import each other in a circle"
        level |= {name: max((level[each] + 1 for each in graph[name]), default=0) for name in ready}
    return [sorted(name for name in graph if level[name] == floor) for floor in range(max(level.values()) + 1)]


def nearest(graph: dict[str, set[str]], name: str) -> set[str]:
    """What a folder imports from and what none of those imports from, on its own or through others."""

    def below(folder: str) -> set[str]:
        return graph[folder].union(*(below(each) for each in graph[folder]))

    return graph[name].difference(*(below(each) for each in graph[name]))


def picture() -> str:
    """The SVG."""
    about = folders()
    graph = {name: imports(name, about) for name in about}
    rows = floors(graph)
    height = ROW * len(rows) + 20
    place: dict[str, tuple[float, float, float]] = {}  # left, top, width
    for floor, names in enumerate(rows):
        width = (WIDTH - 20) / len(names) - 20
        for i, name in enumerate(names):
            place[name] = (20 + i * (width + 20), height - ROW * (floor + 1), min(width, 620))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for name in sorted(graph):
        for below in sorted(nearest(graph, name)):
            (x, y, w), (u, v, s) = place[name], place[below]
            a, b, c, d = x + w / 2, y + BOX, u + s / 2, v
            bend = (b + d) / 2
            path = f"M{a:.0f} {b:.0f} C{a:.0f} {bend:.0f} {c:.0f} {bend:.0f} {c:.0f} {d:.0f}"
            lines.append(f'<path d="{path}" fill="none" stroke="#8898aa" stroke-width="2"/>')
    for floor, names in enumerate(rows):
        for name in names:
            x, y, w = place[name]
            sentence = html.escape(fitting(about[name], w))
            lines += [
                f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{BOX}" rx="6" '
                f'fill="{COLOURS[floor % len(COLOURS)]}" stroke="#667"/>',
                f'<text x="{x + 10:.0f}" y="{y + 21:.0f}" font-size="15" font-weight="bold">{name}</text>',
                f'<text x="{x + 10:.0f}" y="{y + 41:.0f}" font-size="10.5">{sentence}</text>',
            ]
    return "\n".join([*lines, "</svg>", ""])


def way() -> str:
    """The SVG of the way of a list."""
    names, step = list(WAY), 44
    height = step * len(names) + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, name in enumerate(names):
        y = 10 + number * step
        lines += [
            f'<rect x="20" y="{y}" width="620" height="32" rx="6" fill="{COLOURS[number % len(COLOURS)]}" '
            'stroke="#667"/>',
            f'<text x="30" y="{y + 21}" font-size="13" font-weight="bold">{name}</text>',
            f'<text x="230" y="{y + 21}" font-size="12">{html.escape(WAY[name])}</text>',
        ]
        for earlier in steps_back(name):
            a, b = y + 12, 10 + names.index(earlier) * step + 20
            bulge = 640 + 50 * (number - names.index(earlier)) ** 0.8
            lines.append(
                f'<path d="M640 {a} C{bulge:.0f} {a} {bulge:.0f} {b} 640 {b}" fill="none" stroke="#8898aa" '
                'stroke-width="1.5"/>'
            )
    return "\n".join([*lines, "</svg>", ""])


def steps_back(name: str) -> list[str]:
    """The modules of the way that one of them imports from."""
    path = ROOT / "rerank" / Path(*name.split(".")).with_suffix(".py")
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return [other for other in WAY if f"rerank.{other}" in found]


def fitting(sentence: str, width: float) -> str:
    """As much of a sentence as a box has room for."""
    room = int((width - 16) / 5.4)
    return sentence if len(sentence) <= room else f"{sentence[: room - 1].rsplit(' ', 1)[0]} …"


if __name__ == "__main__":
    for name, drawn in (("house", picture()), ("way", way())):
        (ROOT / "docs" / f"{name}.svg").write_text(drawn, encoding="utf-8")
