"""Templates over texts: like those over trees, with a view of the list instead of places."""

from dataclasses import dataclass
from typing import ClassVar

from rerank.features.template import Template


@dataclass(frozen=True)
class TextTemplate(Template):
    """A template over lists of texts: ``fire(view, sink, ids, seeds, options)`` sees all candidates of a list."""

    content: ClassVar[str] = "texts"
    needs: ClassVar[str] = ""  # "source", "segmentation", "alignment": it gives nothing for lists without it

    scope = 0
