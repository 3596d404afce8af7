"""Checks of a single run before anything is read: every part that its recipe names is built, or refused."""

from collections.abc import Sequence

from rerank.base.errors import RecipeError
from rerank.base.usage import require
from rerank.data.shards import Corpora, part_of
from rerank.learn.base import Learner
from rerank.learn.base_weight import make_learner
from rerank.learn.contract import accepted
from rerank.learn.folds import latest
from rerank.learn.rules.maxent import Maxent
from rerank.learn.trainer import bytes_needed, require_source
from rerank.models.model import Model
from rerank.recipes.recipe import ListRecipe, Single, tree_learner
from rerank.recipes.settings import Settings
from rerank.recipes.text_recipe import TextRecipe
from rerank.runs.callbacks import callbacks
from rerank.runs.mert import make_mert
from rerank.runs.training import pair_source

TREES_BYTES = 12 + 20  # of a nonzero: for LightGBM, and on the way there


def check_single(single: ListRecipe) -> None:
    """Build the parts that a single run names, and refuse settings that exclude one another.

    Raises
    ------
    RecipeError: names the setting, and what is expected.
    """
    settings, learner = single.training, accepted(make_learner(single.learner))
    check_pairs(learner, settings.pairs)
    if learner.batch and settings.vote:
        message = f"{single.learner['name']} finds one optimum, in one go; leave it out"
        raise RecipeError(message, key="training.vote")
    every = {"mert": getattr(single, "mert", None)}
    every |= {f"training.{key}": getattr(settings, key) for key in ("select", "ensemble")}
    stages = {key: stage for key, stage in every.items() if stage is not None}
    if name := tree_learner([single.learner, *(stage.model_dump() for stage in stages.values())]):
        make_learner({"name": name}).require()
        for key in stages:
            raise RecipeError(f"works with weights, and {name} has trees; leave one of them out", key=key)
    check_room(single)
    if settings.ensemble is not None:
        for number, member in enumerate(settings.ensemble.learners):
            make_learner(member, f"training.ensemble.learners.{number}")
        if single.data.dev is None:
            raise RecipeError("the scores of its members are compared on dev; name data.dev", key="training.ensemble")
        for key in ("start", "vote"):
            if getattr(settings, key):
                raise RecipeError("an ensemble has no such training; leave it out", key=f"training.{key}")
    if isinstance(single, TextRecipe) and single.mert is not None:
        make_mert(single)
    if settings.select is not None:
        accepted(make_learner(settings.select.learner, "training.select.learner"))
        if settings.start is not None:
            message = "a selection starts from the beginning; leave out start or select"
            raise RecipeError(message, key="training.start")
    if settings.start is not None:
        if not learner.linear:
            raise RecipeError(f"{learner.name} grows its trees from the beginning; leave it out", key="training.start")
        Model.load(settings.start, trust=True)
    if settings.callback is not None and not callable(callbacks.get(settings.callback)):
        raise RecipeError(f"{settings.callback} cannot be called; name a function", key="training.callback")


def check_pairs(learner: Learner, settings: Settings) -> None:
    """Refuse a pair source that does not exist, or that ``learner`` cannot learn from."""
    source = pair_source(settings)
    try:
        require_source(learner, source)
    except RecipeError as error:
        raise RecipeError(error.message, key="training.pairs.name") from None


def check_room(recipe: ListRecipe) -> None:
    """Report what hashed columns will take, and refuse more than there may be.

    A table of features has only as many columns as there are.
    """
    bits = recipe.features.hash_bits
    if bits is None:
        return
    need = bytes_needed(make_learner(recipe.learner), 1 << bits)
    require(need, f"2^{bits} columns with {recipe.learner['name']}", "take fewer bits", "features.hash_bits")


def check_sizes(singles: Sequence[Single[ListRecipe]], train: Corpora, *, tests: bool) -> None:
    """``check_room`` for what takes many of the training lists at once; tests: whether dense columns alone are fitted
    too."""
    dense = 8 * (3 + part_of(train, 0).stats.shape[1] + train.free)  # bytes of a candidate; twice while put together,
    if tests and train.free:
        need = 3 * dense * latest(train).candidate_count  # and a copy of the lists that are not held out
        advice = "keep fewer candidates per list, or leave out the template Dense"
        require(need, "the regression on dense columns alone", advice, "features.templates")
    for single in (single.recipe for single in singles):
        learner, need = make_learner(single.learner), 0
        if not learner.linear:
            need = TREES_BYTES * train.nonzeros
        elif isinstance(learner, Maxent) and learner.columns != "all" and 0 < train.free < train.width:
            need = 2 * dense * train.candidate_count
        what = f"{learner.name} with {train.candidate_count:,} candidates at once"
        advice = "take a share of the lists, or another learner"
        require(single.training.share * need, what, advice, "training.share")
