"""What a notebook shows of a value: HTML that needs nothing else, and plain text."""

from __future__ import annotations

from collections.abc import Container

from core.display.markup import Markup, element, joined
from core.display.style import STYLE


class View:
    """Hold something to look at, for notebooks and terminals."""

    def __init__(self, body: Markup, text: str) -> None:
        """Keep the HTML of its body and the same as plain text."""
        self.body = body
        self.text = text

    @property
    def html(self) -> str:
        """Return the body with the styles it needs, which reach nothing else on a page."""
        style = Markup(f"<style>{STYLE}</style>")
        return element("div", {"class": "carrel-view"}, joined(style, self.body))

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


class Displayed:
    """Show itself in a notebook; a class says how in `_view`."""

    def _view(self) -> View:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return self._view().html

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> dict[str, str]:
        view = self._view()
        made = {"text/plain": view.text, "text/html": view.html}
        return {
            kind: data
            for kind, data in made.items()
            if (not include or kind in include) and not (exclude and kind in exclude)
        }
