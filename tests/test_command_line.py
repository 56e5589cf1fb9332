"""``python -m phintys``: the commands that measure, and wrong arguments."""

from __future__ import annotations

import pytest

from phintys.__main__ import main


def test_times_of_products(capsys):
    assert main(["check_blas", "8"]) == 0
    out = capsys.readouterr().out
    assert "GFlop/s" in out
    assert "results    agree" in out


def test_times_of_threads(capsys):
    assert main(["check_threads", "1000"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("  1 threads")
    assert out[-1].startswith("speed-up")


def test_the_doctor_names_the_package_of_the_older_name(capsys, monkeypatch):
    monkeypatch.setattr("phintys.__main__._backend", lambda mode: "works")
    monkeypatch.setattr("phintys.__main__.older_package", lambda name: f"finds {name}")
    assert main(["doctor"]) == 0
    assert "pytensor   finds pytensor\n" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["check_blas", "many"], ["doctors"]])
def test_usage(arguments, capsys):
    assert main(arguments) == 2
    assert "usage: python -m phintys doctor" in capsys.readouterr().out
