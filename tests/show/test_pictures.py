"""Pictures of graphs: text for Graphviz, pages for browsers."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from phintys.d3viz import d3viz, d3write
from phintys.printing import pydotprint

import phintys
import phintys.tensor as pt
from phintys.errors import CompilerError
from phintys.graph.op import Op
from phintys.show.picture import picture_of


@pytest.fixture
def function():
    x, w = pt.dvector("x"), phintys.shared(np.ones(3), "w")
    middle = x * w
    middle.name = "middle"
    outputs = [pt.exp(middle).sum(), x[1:]]
    return phintys.function([x], outputs, updates={w: w + x}, mode="FAST_COMPILE")


def edges(picture):
    """The arrows, by the labels of boxes up to the first blank."""
    names = {b.key: b.label.split(" ")[0] for b in picture.boxes}
    return {(names[a.source], names[a.target], a.label, a.color) for a in picture.arrows}


def test_what_a_picture_shows(function):
    picture = picture_of(function, var_with_name_simple=True)
    colors = {b.label: (b.is_round, b.color) for b in picture.boxes if b.label[0] in "xwmM"}
    assert colors == {
        "x": (False, "limegreen"),
        "w": (False, "cyan"),
        "middle": (False, "white"),
        "Mul": (True, "#FFAABB"),
    }
    found = edges(picture)
    assert {
        ("x", "Mul", "0", "black"),
        ("Mul", "middle", "", "black"),
        ("middle", "Exp", "", "black"),
        ("Exp", "Sum{axes=None}", "Vector(float64, shape=(?,))", "black"),
        ("x", "Subtensor{start:}", "0", "dodgerblue"),
    } <= found
    outputs = [b for b in picture.boxes if b.color == "dodgerblue"]
    assert len(outputs) == 3
    full = picture_of(function, compact=False)
    assert len(full.boxes) == len(picture.boxes) + 1  # what Exp computes


def test_options(function):
    numbered = picture_of(function, with_ids=True, colorCodes={"Sum": "red"}, max_label_size=8)
    assert "Mul id=2" in {b.label for b in numbered.boxes}
    assert "x id=..." in {b.label for b in numbered.boxes}
    assert "red" in {b.color for b in numbered.boxes}
    x = pt.dvector("x")
    for fct in (x + 1, (x + 1).owner, [x + 1], function.maker.fgraph):
        assert any(b.is_round for b in picture_of(fct).boxes)
    with pytest.raises(TypeError, match="not 3"):
        picture_of(3)


def test_destroyed_inputs_are_red():
    class Doubles(Op):
        destroy_map = {0: [0]}
        itypes, otypes = (pt.dvector,), (pt.dvector,)

    x = pt.dvector("x")
    assert ("x", "Doubles", "", "red") in edges(picture_of(Doubles()(x)))


def test_text_for_graphviz(function, tmp_path):
    x = pt.dvector('a "name"\\')
    text = pydotprint(pt.exp(x), format="dot", return_image=True, high_contrast=False).decode()
    assert r'label="a \"name\"\\ Vector' in text
    assert 'color="limegreen"' in text
    assert "fillcolor" not in text
    d3write(function, tmp_path / "graph.dot")
    assert pydotprint(function, tmp_path / "same.gv", format="gv", print_output_file=False) is None
    assert (tmp_path / "graph.dot").read_text() == (tmp_path / "same.gv").read_text()


def test_graphs_inside_ops(tmp_path, capsys):
    x = pt.dvector("x")
    sums = phintys.scan(lambda a, s: pt.sin(a) + s, x, x[0], return_updates=False)
    pydotprint(sums, tmp_path / "loop.dot", format="dot", scan_graphs=True)
    (inner,) = tmp_path.glob("loop_Scan_*.dot")
    assert 'label="Sin"' in inner.read_text()
    assert 'label="Sin"' not in (tmp_path / "loop.dot").read_text()
    assert str(tmp_path / "loop.dot") in capsys.readouterr().out


def test_other_formats_call_dot(function, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompilerError, match="needs the program dot"):
        pydotprint(function, tmp_path / "graph.png")
    program = tmp_path / "dot"
    program.write_text(
        f"#!{sys.executable}\nimport sys\ntext = sys.stdin.read()\n"
        "print(sys.argv[1], len(text))\nsys.exit(sys.argv[1] == '-Tbad')\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    found = pydotprint(function, format="svg", return_image=True)
    assert found.decode().split() == ["-Tsvg", str(len(picture_of(function).dot()))]
    with pytest.raises(CompilerError, match="dot -Tbad failed"):
        pydotprint(function, format="bad", return_image=True)


def test_pages(tmp_path):
    x = pt.dvector("<!--<script></script>")
    d3viz(pt.exp(x).sum(), tmp_path / "graph.html")
    page = Path(tmp_path / "graph.html").read_text()
    data = re.search(r"const graph = (.*);\n", page).group(1)
    graph = json.loads(data)
    assert "<" not in data  # a script ends, or does not, by what follows it
    rows = {b["label"].split(" ")[0]: b["row"] for b in graph["boxes"]}
    assert (rows["<!--<script></script>"], rows["Exp"], rows["Sum{axes=None}"]) == (0, 1, 2)
    places = [(b["row"], b["column"]) for b in graph["boxes"]]
    assert len(set(places)) == len(places)
    assert {a["source"] for a in graph["arrows"]} <= {b["key"] for b in graph["boxes"]}


def test_deep_graphs():
    y = pt.dscalar("x")
    for _ in range(3000):
        y = pt.sin(y)
    assert len(picture_of(y).boxes) == 3002


def test_files_are_in_utf8_whatever_the_locale_says(tmp_path):
    code = (
        "import locale, sys, phintys.tensor as pt; from phintys.d3viz import d3viz, d3write\n"
        "y = pt.exp(pt.dvector('\\u03bb'))\n"
        "d3viz(y, sys.argv[1] + '/graph.html'); d3write(y, sys.argv[1] + '/graph.dot')\n"
        "print(locale.getpreferredencoding(False))"
    )
    env = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(tmp_path)]
    found = subprocess.run(command, env=env, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "\u03bb" in (tmp_path / "graph.dot").read_text(encoding="utf-8")
    assert "\\u03bb" in (tmp_path / "graph.html").read_text(encoding="utf-8")
