"""Parts by kind and name: what a recipe or the command line can name.

A module makes its parts known by one function, ``register(add)``, which calls ``add(kind, name, part)``, or instead of
the part gives its import path, ``module:Name``, which is imported when the part is asked for. ``rerank.parts``, the
parts in ``rerank.contrib`` and installed packages, by an entry point in the group ``rerank`` whose value is such a
function, all do so; whoever lists parts, or advises, knows them all. The name of a part that is not installed is its
import path.

Kinds: reader, template, metric, learner, task, command; of readers that know their files by name, files; of learners
whose predictors are trees, trees; of what chooses in `rerank vote`, vote; of tasks with models of their own, model; of
names of the package ``rerank``, public, and of estimators for scikit-learn, estimator; and those of the parts in
``rerank.contrib`` themselves: sequence_reader, generator.
"""

import dataclasses
import difflib
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Generic, TypeVar

from rerank.base.errors import RecipeError

T = TypeVar("T")
Add = Callable[[str, str, Any], None]  # of a kind, a name, and a part or its import path
log = logging.getLogger("rerank")

OWN = "rerank.parts"
CONTRIB = "rerank.contrib"  # its PARTS are the modules of parts that the rest of the program does without
GROUP = "rerank"  # of entry points

Parts = dict[str, dict[str, Any]]  # by kind and name


def new_table() -> tuple[Parts, Add]:
    """A table without parts, and the function that adds to it."""
    parts: Parts = {}

    def add(kind: str, name: str, part: Any) -> None:
        if name in parts.setdefault(kind, {}):
            raise ValueError(f"{kind} {name!r} is registered twice")
        parts[kind][name] = part

    return parts, add


@cache
def own_parts() -> Parts:
    """The parts of this program, those in ``rerank.contrib`` too."""
    parts, add = new_table()
    for module in (OWN, *import_module(CONTRIB).PARTS):
        import_module(module).register(add)
    return parts


@cache
def installed_parts() -> Parts:
    """The parts that installed packages add; a package that cannot be used, or takes a name that is taken, is named."""
    from importlib.metadata import entry_points

    parts: Parts = {}
    for point in entry_points(group=GROUP):  # reads a file of every package that is installed

        def add(kind: str, name: str, part: Any, source: str = point.value) -> None:
            if name in own_parts().get(kind, {}) or name in parts.get(kind, {}):
                log.warning("the %s %s of %s is not used: this name is taken", kind, name, source)
            else:
                parts.setdefault(kind, {})[name] = part

        try:
            point.load()(add)
        except Exception as error:  # the module is a stranger's: it can raise anything
            log.warning("cannot use the parts of %s: %s: %s", point.value, type(error).__name__, error)
    return parts


def module_of(part: Any) -> str:
    """The module of a part, or of an import path."""
    return part.partition(":")[0] if isinstance(part, str) else getattr(part, "__module__", type(part).__module__)


def import_object(path: str) -> Any:
    """Import the object at a path: ``module:name``, or a module."""
    module, _, name = path.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise ImportError("expected module:name, as mymodule:Name of the file mymodule.py")
    target = import_module(module)
    for part in filter(None, name.split(".")):
        target = getattr(target, part)
    return target


class Registry(Generic[T]):
    """The parts of one kind.

    contract: the class that all of them derive from, if there is one; a part that lacks something the contract leaves
    open (an abstract member, or a class variable without a value) is refused when it is named.

    >>> from rerank.learn.learner import Learner
    >>> Registry("learner", Learner).get("perceptron").__name__
    'Perceptron'
    """

    def __init__(self, kind: str, contract: type | None = None) -> None:
        self.kind, self.contract = kind, contract

    def get(self, name: str) -> T:
        """The part called ``name``, or the object at ``module:attribute``.

        Raises RecipeError: nothing has that name (the message lists the nearest names), or it does not fulfil the
        contract.
        """
        if name in self:
            return self._load(name, own_parts().get(self.kind, {}).get(name) or installed_parts()[self.kind][name])
        if ":" in name:
            return self._load(name.rpartition(":")[2], name)
        raise RecipeError(f"unknown {self.kind} {name!r}; {nearest(name, self.names())}")

    def _load(self, name: str, path: Any) -> T:
        try:
            part: T = import_object(path) if isinstance(path, str) else path
        except Exception as error:  # the module may be a stranger's: it can raise anything
            raise RecipeError(f"cannot import {self.kind} {path!r}: {type(error).__name__}: {error}") from error
        base = self.contract
        has_name = base is not None and "name" in inspect.get_annotations(base)
        if has_name and isinstance(part, type) and not hasattr(part, "name"):
            part.name = name  # type: ignore[attr-defined]
        if fault := self._fault(part):
            raise RecipeError(f"{self.kind} {path if isinstance(path, str) else name!r} {fault}")
        return part

    def _fault(self, part: Any) -> str:
        """The way in which a part breaks the contract, worded to follow its name; empty if it does not."""
        base = self.contract
        if base is None:
            return ""
        if not (isinstance(part, type) and issubclass(part, base)):
            return f"is not a class derived from {base.__module__}.{base.__name__}"
        missing = sorted(getattr(part, "__abstractmethods__", ()))
        for base_class in base.__mro__:
            hints = inspect.get_annotations(base_class)
            missing += [name for name, hint in hints.items() if "ClassVar" in str(hint) and not hasattr(part, name)]
        if missing:
            return f"does not define {', '.join(missing)}; see {base.__module__}.{base.__name__}"
        known = getattr(part, "__dataclass_fields__", None)
        own = [name for name, hint in inspect.get_annotations(part).items() if "ClassVar" not in str(hint)]
        whole = known is not None and all(name in known for name in own)  # a base class may be one alone
        return "" if whole else "is not a dataclass; its settings are the fields of one"

    def names(self) -> list[str]:
        """The names of all parts, sorted."""
        return sorted({*own_parts().get(self.kind, {}), *installed_parts().get(self.kind, {})})

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Names and parts, sorted; an installed part that cannot be used says so when it is asked for."""
        for name in self.names():
            try:
                yield name, self.get(name)
            except RecipeError:
                if name in own_parts().get(self.kind, {}):
                    raise

    def __contains__(self, name: str) -> bool:
        return any(name in parts().get(self.kind, {}) for parts in (own_parts, installed_parts))


def nearest(name: str, names: Iterable[str]) -> str:
    """The message after an unknown name: the nearest known ones, or all of them."""
    near = difflib.get_close_matches(name, list(names), n=3)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(sorted(names)) or 'none'}"


def build(registry: Registry[type[T]], spec: Mapping[str, Any], key: str) -> T:
    """An instance of the dataclass that ``spec["name"]`` names; the other entries are its parameters.

    Raises RecipeError: unknown name or parameter, or a value that the class refuses; ``key`` is where the spec is
    found.
    """
    if not isinstance(spec.get("name"), str):
        raise RecipeError(f"no {registry.kind} is named; known: {', '.join(registry.names())}", key=f"{key}.name")
    try:
        cls = registry.get(spec["name"])
    except RecipeError as error:
        raise RecipeError(error.message, key=f"{key}.name") from None
    if not (isinstance(cls, type) and dataclasses.is_dataclass(cls)):
        raise RecipeError(f"{spec['name']!r} is not a {registry.kind}; expected a dataclass", key=f"{key}.name")
    parameters = {name: value for name, value in spec.items() if name != "name"}
    fields: dict[str, dataclasses.Field[Any]] = {f.name: f for f in dataclasses.fields(cls) if f.init}
    for name in parameters:
        if name not in fields:
            message = f"{registry.kind} {spec['name']} has no setting {name!r}; {nearest(name, fields)}"
            raise RecipeError(message, key=key)
    try:
        return cls(**parameters)
    except RecipeError as error:
        raise RecipeError(error.message, key=".".join(part for part in (key, error.key) if part)) from None
    except (TypeError, ValueError) as error:
        raise RecipeError(f"{registry.kind} {spec['name']} does not accept its settings: {error}", key=key) from None


def texts_in(settings: Any) -> Iterator[str]:
    """All texts in nested settings, keys too."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, dict):
        for key, value in settings.items():
            yield from texts_in(key)
            yield from texts_in(value)
    elif isinstance(settings, list | tuple):
        for value in settings:
            yield from texts_in(value)
