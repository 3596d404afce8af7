"""How settings were chosen, and which figures are blind: on the page and in the terminal."""

from collections.abc import Mapping
from typing import Any

from rerank.runs.report.measures import MEASURES, count, fixed, primary_of
from rerank.runs.report.table import TextTable


def choice_table(metrics: Mapping[str, Any]) -> TextTable:
    """One line for all settings that were tried on the lists set apart; no lines where none were."""
    found = metrics.get("choice")
    if not found:
        return TextTable("", (), ())
    measure = next((each for each in MEASURES if each.key == metrics.get("measure")), primary_of(metrics))
    rows = []
    for point in found["points"]:
        low, high = map(measure.text, point["interval"])
        behind = "" if point["name"] == found["best"] else f"{measure.signed(point['difference'])} "
        behind += f"±{measure.text(point['error'])}" if behind else "best"
        length = fixed(point["report"].get("length_ratio"), 3)
        cells = [measure.text(point["score"]), f"[{low}, {high}]", behind, measure.text(point["dev"]), length]
        rows.append([point["name"], "yes" if point["near"] else "", *cells, count(point["nonzero_weights"])])
    seeds = found["points"][0]["seeds"]
    headings = ["settings", "near the best", measure.heading, "interval", "difference", f"{measure.heading} on dev"]
    note = (
        f"Chosen: {found['chosen']}, the fewest weights of those within one standard error (±) of the best. Means of "
        f"{seeds} seed{'s' if seeds > 1 else ''}; intervals and errors are over lists and seeds."
    )
    caption = f"Settings on {found['lists']:,} training lists set apart"
    return TextTable(
        caption, [*headings, "length", "nonzero weights"], rows, texts=2, chosen=found["chosen"], note=note
    )


def blind_note(metrics: Mapping[str, Any]) -> str:
    """Which figures are blind, and what was chosen where; empty where ``metrics`` does not say."""
    found = metrics.get("blind")
    if not found:
        return ""
    chosen = "; ".join(f"on {split}: {', '.join(what)}" for split, what in found["chosen_on"].items())
    tests = ", ".join(found["splits"])
    said = f"Blind figures: those of the chosen settings on {tests}" if tests else "No figure is blind"
    return f"{said}. Chosen {chosen}. What was chosen by looking at test figures before this run, it cannot know."
