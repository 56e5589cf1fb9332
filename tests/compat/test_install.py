"""`phintys.compat.install`: ``import pytensor`` means this package, in one process."""

from __future__ import annotations

import os
import threading

import pytest
from older_names import installed, python

import phintys.tensor as pt
from phintys.compat import alias
from phintys.compat.alias import install


def test_modules_are_the_same_objects():
    """However they are imported: files, modules of `phintys.paths`, functions that are modules."""
    installed("""
        import importlib, sys
        import pytensor, pytensor.tensor as pt, pytensor.link.vm, pytensor.scan.op
        from pytensor.tensor import linalg
        from pytensor.tensor.rewriting import basic
        import phintys.tensor.rewriting.basic, phintys.scan.op
        assert pytensor is phintys and pt is phintys.tensor and linalg is phintys.tensor.linalg
        assert sys.modules["pytensor.tensor"] is sys.modules["phintys.tensor"]
        assert pytensor.link.vm is sys.modules["phintys.link.vm"]
        assert basic is sys.modules["phintys.tensor.rewriting.basic"]
        assert importlib.import_module("pytensor.scan.op") is phintys.scan.op
        assert importlib.import_module(".scan.op", "pytensor") is phintys.scan.op
        assert isinstance(pt.dvector("x"), pytensor.graph.basic.Variable)
    """)


def test_modules_are_the_same_if_the_own_name_comes_second():
    installed("""
        import sys, pytensor.loop.op, pytensor.saturation
        assert sys.modules["pytensor.loop.op"] is sys.modules["phintys.loop.op"]
        import phintys.saturation
        assert phintys.saturation is sys.modules["pytensor.saturation"]
    """)


def test_each_module_is_the_one_of_its_own_name_and_keeps_its_attributes():
    installed("""
        import importlib, sys, types
        from phintys.compat.stubs import _tree, _is_looked_up
        for path in filter(None, _tree()):
            if _is_looked_up(path):
                continue
            older = importlib.import_module(f"pytensor.{path}")
            own = sys.modules[f"phintys.{path}"]
            assert older is own, path
            assert own.__name__ == own.__spec__.name == f"phintys.{path}"
            assert type(own.__loader__) is type(own.__spec__.loader)
    """)


def test_functions_with_the_name_of_a_module_stay_functions():
    """Whichever modules are imported, and also those that PyTensor has at the place."""
    installed("""
        import importlib, sys, types
        from phintys.compat.stubs import _files
        from pytensor import function, scan, ifelse
        import pytensor.scan, pytensor.ifelse, pytensor.config, pytensor.compile.function
        for path in filter(None, sorted(_files(), reverse=True)):
            importlib.import_module(f"pytensor.{path}")
        def value(path):
            package, _, name = path.rpartition(".")
            return vars(sys.modules[f"phintys.{package}".removesuffix(".")])[name]
        hidden = "tensor.sort tensor.dot tensor.einsum loop.scan graph.clone show.explain function"
        for path in hidden.split():
            assert isinstance(value(path), types.FunctionType), path
        assert type(pytensor.config).__name__ == "Config"
        assert callable(pytensor.scan) and callable(pytensor.ifelse)
        modules = [path for path in filter(None, _files()) if callable(value(path))]
        assert len(modules) > 10
    """)


def test_modules_that_do_not_exist():
    out = installed("""
        import importlib
        for name in ("pytensor.nothing", "pytensor.tensor.no.thing", "pytensor.tensor.sort.deep"):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as exc:
                print(exc.name, "|", exc)
        try:
            from pytensor.tensor import nothing
        except ImportError as exc:
            print(exc)
    """).splitlines()
    assert out[0] == "pytensor.nothing | No module named 'pytensor.nothing'"
    assert out[1] == "pytensor.tensor.no | No module named 'pytensor.tensor.no'"
    assert out[2].startswith("pytensor.tensor.sort.deep | No module named")
    assert out[3].startswith("cannot import name 'nothing'")


def test_what_python_asks_of_modules():
    installed("""
        import importlib, importlib.resources, inspect, pickle, pkgutil, sys
        import pytensor, pytensor.tensor as pt
        from importlib.util import find_spec
        assert find_spec("pytensor.tensor").name == "phintys.tensor"
        assert find_spec("pytensor.saturation").origin.endswith("__init__.py")
        assert "pytensor.saturation" not in sys.modules and find_spec("pytensor.nothing") is None
        names = {m.name for m in pkgutil.iter_modules(pytensor.__path__, "pytensor.")}
        assert {"pytensor.tensor", "pytensor.graph"} <= names
        assert pkgutil.resolve_name("pytensor.tensor.linalg:cholesky") is pt.linalg.cholesky
        assert inspect.getmodule(pt.TensorVariable) is pt.variable
        assert "def cholesky" in inspect.getsource(pt.linalg.cholesky)
        assert importlib.resources.files("pytensor").joinpath("py.typed").is_file()
        assert importlib.reload(pytensor.graph.features) is phintys.graph.features
        assert pickle.loads(pickle.dumps(pt.TensorVariable)) is phintys.tensor.TensorVariable
        old = b"cpytensor.tensor.type\\nTensorType\\n."
        assert pickle.loads(old) is phintys.tensor.TensorType
        x = pickle.loads(pickle.dumps(pt.dvector("x") + 1))
        assert x.owner.op == pt.add
    """)


def test_a_second_call_does_nothing():
    installed("""
        import sys
        before = list(sys.meta_path), dict(sys.modules)
        phintys.compat.install("pytensor")
        assert before == (list(sys.meta_path), dict(sys.modules))
    """)


@pytest.mark.parametrize("system", ["aesara", "theano"])
def test_other_names(system):
    """They have the modules that are here; Theano had others, which are absent."""
    code = """
        import NAME, NAME.tensor as T, NAME.sandbox.linalg, NAME.tensor.nnet
        assert NAME is phintys and T is phintys.tensor
        f = NAME.function([x := T.dscalar("x")], NAME.grad(x**2, x))
        assert f(3.0) == 6.0
        try:
            import NAME.gpuarray
        except ModuleNotFoundError as exc:
            print(exc)
        phintys.compat.install("pytensor")
        import pytensor.tensor
        assert pytensor.tensor is T
    """
    out = installed(code.replace("NAME", system), system)
    assert out == f"No module named '{system}.gpuarray'"


def test_a_foreign_package_is_refused(tmp_path):
    (tmp_path / "pytensor").mkdir()
    (tmp_path / "pytensor" / "__init__.py").write_text("from pytensor import _version")
    (tmp_path / "pytensor" / "_version.py").write_text("value = 1")
    code = "import sys; sys.path.insert(0, sys.argv[1]); import pytensor, phintys.compat\n"
    done = python("-c", f"{code}phintys.compat.install('pytensor')", str(tmp_path))
    message = done.stderr.splitlines()[-1]
    file = tmp_path / "pytensor" / "__init__.py"
    assert message.startswith(f"ImportError: pytensor is already imported, from {file}. Call")
    assert "phintys.compat.install('pytensor') before the first import" in message
    code = code.replace("pytensor, phintys", "phintys") + "phintys.compat.install('pytensor')\n"
    assert python("-c", f"{code}import pytensor\npytensor.tensor", str(tmp_path)).returncode == 0


@pytest.mark.parametrize("name", ["numpy", "phintys", "pytensors", "pytensor.tensor", ""])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="is none of pytensor, aesara, theano"):
        install(name)


@pytest.mark.parametrize("name", [3, None, ["pytensor"]])
def test_names_are_texts(name):
    with pytest.raises(TypeError, match="a text, one of pytensor, aesara, theano, not"):
        install(name)


def test_threads_that_import_at_the_same_time():
    installed("""
        import importlib, sys, threading
        sys.setswitchinterval(1e-6)
        names = ["loop.op", "scan.op", "loop", "link.vm", "tensor.rewriting.basic", "saturation"]
        names = [f"pytensor.{name}" for name in names * 2] + ["phintys.loop", "phintys.saturation"]
        found, barrier = [None] * len(names), threading.Barrier(len(names))
        def load(k):
            barrier.wait()
            found[k] = importlib.import_module(names[k])
        threads = [threading.Thread(target=load, args=(k,)) for k in range(len(names))]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        for name, module in zip(names, found):
            own = name.replace("pytensor", "phintys")
            assert module is sys.modules[own] is sys.modules[own.replace("phintys", "pytensor")]
            assert module.__spec__.name == own
    """)


@pytest.mark.parametrize("turn", range(3))
def test_threads_that_import_modules_which_import_each_other(turn):
    """Modules of rules are imported together: none waits for one that waits for it."""
    names = ["tensor.rules", "conditional.rewriting", "saturation", "tensor.rewriting.linalg"]
    names = names[turn:] + names[:turn]
    installed(f"""
        import importlib, sys, threading
        sys.setswitchinterval(1e-6)
        names = [f"pytensor.{{name}}" for name in {names}]
        errors, barrier = [], threading.Barrier(len(names))
        def load(name):
            barrier.wait()
            try:
                importlib.import_module(name)
            except BaseException as exc:
                errors.append(exc)
        threads = [threading.Thread(target=load, args=(name,)) for name in names]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert errors == [], errors
        from pytensor.compile.mode import optdb
        assert optdb.query("+canonicalize") is not None
    """)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_fork_while_another_thread_imports():
    """That thread does not exist in the child, which does not wait for it."""
    out = installed("""
        import os, threading, warnings
        from phintys.compat import alias
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads and fork
        held, done = threading.Event(), threading.Event()
        def load():
            with alias._turn():
                held.set()
                done.wait()
        thread = threading.Thread(target=load)
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            if alias._lock.acquire(blocking=False):
                import pytensor.saturation
                os._exit(17)
            os._exit(1)
        done.set()
        thread.join()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert out == "17"


def test_an_import_that_forks_releases_the_lock_that_it_holds():
    before = alias._lock
    with alias._turn():
        alias._new_lock()
    assert alias._lock is not before
    taken = []
    thread = threading.Thread(target=lambda: taken.append(before.acquire(blocking=False)))
    thread.start()
    thread.join()
    assert taken == [True]


def test_an_import_that_has_waited_in_vain_says_so(monkeypatch):
    monkeypatch.setattr(alias, "PATIENCE", 1e-3)
    held, done = threading.Event(), threading.Event()

    def load():
        with alias._turn():
            held.set()
            done.wait()

    thread = threading.Thread(target=load)
    thread.start()
    held.wait()
    try:
        with pytest.warns(RuntimeWarning, match=r"waited 0\.001 seconds"), alias._turn():
            pass
    finally:
        done.set()
        thread.join()


def test_nothing_changes_without_it():
    code = "import phintys, phintys.tensor as pt, sys; assert hasattr(pt.dscalar(), '{}')\n"
    code = code.format("__array_function__") + "assert 'phintys.compat' not in sys.modules"
    assert python("-c", code).returncode == 0
    assert hasattr(pt.dscalar(), "__array_function__")


def test_numpy_puts_variables_into_object_arrays():
    """As those of the older systems, which programs take apart again."""
    installed("""
        import numpy as np, pytensor.tensor as pt
        x, s = pt.dvector("x"), pt.dscalar("s")
        for wrapped in (np.atleast_1d(x), np.atleast_1d(s), np.asarray(x)[None], np.ravel(x)):
            assert wrapped.dtype == object and wrapped.shape == (1,)
            assert wrapped[0] in (x, s)
        assert np.stack([x, x]).shape == (2,) and np.broadcast_to(x, (2, 3)).shape == (2, 3)
        for name in ("__array_function__", "__array_namespace__"):
            assert not hasattr(x, name) and not hasattr(pt.constant(1.0), name)
        for y in (np.exp(x), np.arange(3.0) + x, np.float64(2) * s, np.ones((3, 3)) @ x):
            assert isinstance(y, pt.TensorVariable)
    """)


def test_each_switch_has_a_reason_and_something_to_take_away():
    installed("""
        from phintys.compat.switches import SWITCHES
        assert SWITCHES and all(len(switch.reason) > 40 for switch in SWITCHES)
        assert not any(hasattr(switch.owner, switch.attribute) for switch in SWITCHES)
    """)
    from phintys.compat.switches import SWITCHES

    assert all(switch.attribute in vars(switch.owner) for switch in SWITCHES)
