"""The kinds of candidates: trees or texts, with how they are read, scored and described."""

import logging
from typing import Any

from rerank.base.errors import RerankError
from rerank.base.registry import build
from rerank.extraction.content import Content
from rerank.metrics.metric import Metric, measures_orders, metrics
from rerank.readers.reader import ScoreColumns
from rerank.recipes.recipe import AUTO, DERIVED, UNDERIVED, ListRecipe, Recipe, TaskRecipe, TextRecipe

log = logging.getLogger("rerank")


def content_of(
    recipe: ListRecipe, *, centred: bool | None = None, columns: ScoreColumns | None = None, keeps_texts: bool = True
) -> Content:
    """The kind of candidates in a recipe's lists.

    centred: store values relative to a list's most frequent one; as the recipe says where None. columns: the score
    columns that lists are held to, where they are known. keeps_texts: see ``Content``.
    """
    how: dict[str, Any] = {"centred": centred, "columns": columns, "keeps_texts": keeps_texts}
    if isinstance(recipe, TextRecipe):
        from rerank.extraction.texts import TextContent  # the templates of one kind or the other

        return TextContent(recipe, **how)
    from rerank.extraction.trees import TreeContent

    assert isinstance(recipe, Recipe)
    return TreeContent(recipe, **how)


def metric_of(recipe: TaskRecipe) -> Metric:
    """The metric of a recipe."""
    if isinstance(recipe, TextRecipe):
        from rerank.extraction.texts import make_text_metric

        return make_text_metric(recipe.metric)
    if isinstance(recipe, Recipe):
        from rerank.extraction.trees import make_parseval

        return make_parseval(recipe.metric)
    return build(metrics, recipe.metric, "metric")


def resolve_features(recipe: ListRecipe) -> ListRecipe:
    """``recipe`` with what the first training list with candidates decides: a named set in place of ``auto``, that of
    derivations if it has segmentations, and a source that they are of, else one that needs nothing but words; and
    decoding by answers, if it is a ranking and has any. The rule that the reader finds answers by, where lists say what
    is right, becomes the recipe's: for lists that do not.

    Lists that cannot be read are left to those who read them all.
    """
    if not isinstance(recipe, TextRecipe):
        return recipe
    auto, is_set = recipe.features.set == AUTO, None not in (recipe.decode.kinds, recipe.data.answer)
    ranking = recipe.task == "ranking" and not is_set and not measures_orders(recipe.metric.get("name"))
    if not auto and not ranking:
        return recipe
    plain = recipe.change({"features.set": UNDERIVED}) if auto else recipe
    try:
        lists = content_of(plain).read(plain.data, plain.data.training)
        example = next((nbest for nbest in lists if nbest.problem is None and len(nbest)), None)
    except RerankError:
        return plain
    if ranking and plain.decode.kinds is None and example is not None and example.answers is not None:
        plain = plain.change({"decode.kinds": ["mbr"]})
    rule = example.roles.rule if example is not None and example.roles is not None else None
    if plain.data.answer is None and rule is not None:
        more = {"data.reader.answer": None} if plain.data.reader["name"] == "jsonl" else {}  # which chooses by list
        plain = plain.change({"data.answer": rule, **more})
        log.info("data.answer: %s, for lists that do not say what is right", rule)
    derivations = example if example is not None and example.segmentation is not None else None
    if auto and derivations is not None and derivations.source is not None:
        return plain.change({"features.set": DERIVED})
    if auto:
        lacking = "sources for their derivations: data.sources names the files" if derivations else "derivations"
        log.info("features.set: %s, since the lists have no %s", UNDERIVED, lacking)
    return plain
