"""An installed distribution of an older name, whose package hands over to this one.

`enable` writes what an installer would unpack: a package, its stubs, and the folder of metadata, so
that pip finds the requirement of other packages fulfilled, and can uninstall it.
"""

from __future__ import annotations

import hashlib
import re
import sysconfig
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from importlib import invalidate_caches
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path, PurePosixPath

from phintys.compat.stubs import stubs
from phintys.compat.systems import VERSIONS, checked, folder

#: The label of the versions of such distributions: ``3.3.8+phintys`` fulfils ``>=3.3.6,<3.4``.
LABEL = "phintys"
_VERSION = re.compile(r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?")


def site_packages() -> Path:
    """The folder where this environment has its pure Python packages."""
    return Path(sysconfig.get_path("purelib"))


def installed(system: str) -> Distribution | None:
    """The distribution of that name that this environment has, or None."""
    context = DistributionFinder.Context(name=system, path=[str(site_packages())])
    return next(iter(MetadataPathFinder.find_distributions(context)), None)


def is_ours(found: Distribution) -> bool:
    """Whether `enable` has installed a distribution."""
    return (found.read_text("INSTALLER") or "").strip() == LABEL


def enable(system: str, version: str | None = None) -> str:
    """Install a distribution ``system``, whose package is this one; return its version.

    Parameters
    ----------
    system : ``"pytensor"``, ``"aesara"`` or ``"theano"``
    version : the version that other packages find; None: that of which this package has the names.
        It gets the label ``+phintys``

    One that `enable` has installed before is replaced.  FileExistsError if another one is
    installed, ValueError if a name or version is not legal.
    """
    given = VERSIONS[checked(system)] if version is None else version.removesuffix(f"+{LABEL}")
    if not _VERSION.fullmatch(given):
        raise ValueError(f"{version!r} is not a version: write numbers and dots, such as 3.3.8.")
    _refuse_foreign(system)
    disable(system)
    label = f"{given}+{LABEL}"
    _write(_files(system, label), f"{system}-{label}.dist-info/RECORD")
    invalidate_caches()
    return label


def disable(system: str) -> bool:
    """Remove what `enable` has installed; return whether there was something.

    ValueError for other names; FileExistsError if another distribution of that name is installed.
    """
    found, root = installed(checked(system)), site_packages()
    if found is None:
        return False
    if not is_ours(found):
        raise FileExistsError(
            f"{system} {found.version} in {root} was not installed by enable: "
            f"`pip uninstall {system}` removes it."
        )
    files = [root / file for file in found.files or ()]
    sources = [file for file in files if file.suffix == ".py"]
    compiled = [f for file in sources for f in file.parent.glob(f"__pycache__/{file.stem}.*.pyc")]
    for file in (*files, *compiled):
        file.unlink(missing_ok=True)
    folders = {folder for file in (*files, *compiled) for folder in file.parents}
    for inner in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        if root in inner.parents and inner.is_dir() and not any(inner.iterdir()):
            inner.rmdir()
    invalidate_caches()
    return True


def _refuse_foreign(system: str) -> None:
    """FileExistsError if something of that name is installed that is not this package."""
    found, package = installed(system), site_packages() / system
    if found is not None and is_ours(found):
        return
    if found is None and not package.exists():
        return
    what = f"{system} {found.version}" if found else str(package)
    raise FileExistsError(
        f"{what} is installed in {site_packages()}. Remove it first, by `pip uninstall {system}`. "
        f"To go back: `python -m phintys.compat disable {system}`, then `pip install {system}`."
    )


def _files(system: str, version: str) -> dict[str, str]:
    """The texts of the files of the distribution, by their paths in ``site-packages``."""
    module = (folder(system) / system / "__init__.py").read_text(encoding="utf-8")
    types = stubs()
    metadata = (
        "Metadata-Version: 2.1\n"
        f"Name: {system}\n"
        f"Version: {version}\n"
        f"Summary: The name {system} for the package phintys\n"
        "Requires-Dist: phintys\n"
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: {LABEL}\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    info = f"{system}-{version}.dist-info"
    return {
        f"{info}/INSTALLER": f"{LABEL}\n",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": wheel,
        f"{info}/top_level.txt": f"{system}\n",
        f"{system}/py.typed": "",
        **{f"{system}/{path}": text for path, text in types.items()},
        **{f"{system}/{path.removesuffix('i')}": module for path in types},
    }


def _write(files: Mapping[str, str], record: str) -> None:
    """Write files to ``site-packages``; first the record of them, so that `disable` finds those
    that are there if it is interrupted."""
    lines = [_recorded(path, text) for path, text in files.items()]
    for path, text in {record: "\n".join((*lines, f"{record},,\n")), **files}.items():
        target = site_packages() / PurePosixPath(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


def _recorded(path: str, text: str) -> str:
    content = text.encode()
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(content)}"
