"""Pictures of graphs as pages for browsers: `d3viz`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from phintys.show.picture import Picture, picture_of

_TEMPLATE = Path(__file__).with_name("page.html")


def d3viz(fct: Any, outfile: Path | str, copy_deps: bool = True, *args: Any, **kwargs: Any) -> None:
    """Write an HTML file that shows a graph: boxes can be dragged, the wheel zooms.

    Parameters
    ----------
    fct
        a function, a FunctionGraph, a variable, a node, or a list of variables
    outfile
        the file, which needs no others
    copy_deps
        without effect
    args, kwargs
        options of `picture_of`

    >>> import tempfile, phintys.tensor as pt
    >>> x = pt.dvector("x")
    >>> with tempfile.NamedTemporaryFile(suffix=".html") as file:
    ...     d3viz(pt.exp(x), file.name)
    ...     '"label": "Exp"' in Path(file.name).read_text()
    True
    """
    graph = json.dumps(_placed(picture_of(fct, *args, **kwargs))).replace("<", "\\u003c")
    page = _TEMPLATE.read_text(encoding="utf-8").replace("{{graph}}", graph)
    Path(outfile).write_text(page, encoding="utf-8")


def d3write(fct: Any, path: Path | str, *args: Any, **kwargs: Any) -> None:
    """Write the picture of a graph in the language of Graphviz, in UTF-8.

    ``args`` and ``kwargs`` are options of `picture_of`.
    """
    Path(path).write_text(picture_of(fct, *args, **kwargs).dot(), encoding="utf-8")


def _placed(picture: Picture) -> dict[str, Any]:
    """The picture as data for the page, with the row and the column of each box.

    A box is one row below the lowest box that an arrow comes from.
    """
    sources: dict[str, list[str]] = {}
    for arrow in picture.arrows:
        sources.setdefault(arrow.target, []).append(arrow.source)
    row: dict[str, int] = {}
    width: dict[int, int] = {}
    boxes = []
    for box in picture.boxes:
        y = row[box.key] = 1 + max([row[s] for s in sources.get(box.key, ())], default=-1)
        x = width[y] = width.get(y, -1) + 1
        boxes.append({**asdict(box), "row": y, "column": x})
    return {"boxes": boxes, "arrows": [asdict(arrow) for arrow in picture.arrows]}
