"""Which set of templates translations get where a recipe names none: by whether their lists have derivations."""

import logging

from rerank.base.errors import RerankError
from rerank.extraction.content import content_of
from rerank.readers.base import NBestList
from rerank.readers.texts.text_list import TextList
from rerank.recipes.recipe import ListRecipe
from rerank.recipes.text_recipe import AUTO, DERIVED, UNDERIVED, TextRecipe

log = logging.getLogger("rerank")


def with_set(recipe: ListRecipe) -> ListRecipe:
    """``recipe`` with a named set in place of ``auto``: that of phrase pairs if the first training list with candidates
    has segmentations, and a source that they are of, else one that needs nothing but words.

    Lists that cannot be read are left to those who read them all.
    """
    if not isinstance(recipe, TextRecipe) or recipe.features.set != AUTO:
        return recipe
    plain = recipe.changed({"features.set": UNDERIVED})
    try:
        lists = content_of(plain).read(plain.data, plain.data.training)
        shown = next((each for each in lists if isinstance(each, NBestList) and len(each)), None)
    except RerankError:
        return plain
    if isinstance(shown, TextList) and shown.segmentation is not None and shown.source is not None:
        return recipe.changed({"features.set": DERIVED})
    log.info("features.set: %s, since the lists have no derivations", UNDERIVED)
    return plain
