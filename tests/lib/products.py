# SPDX-License-Identifier: GPL-2.0-only
"""What the project's own Makefile builds, as far as its sources exist."""

import dataclasses
import pathlib

from . import host


@dataclasses.dataclass(frozen=True)
class Products:
    """Paths of what was built, or None for what does not exist yet."""

    module: pathlib.Path | None
    kunit_module: pathlib.Path | None
    tools: pathlib.Path | None


def build_module(kernel, kunit=False):
    """make module for one kernel; the path of dm-lc.ko, or None without sources."""
    if not (host.TOP / "Kbuild").exists() or not (host.TOP / "dm-lc/Kbuild").exists():
        return None
    words = [f"KDIR={kernel.kdir}", f"KREL={kernel.release}"]
    if kunit:
        words.append("LC_KUNIT=y")
    log = host.BUILD / f"module-{kernel.name}{'-kunit' if kunit else ''}.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"")
    host.run("make", "-s", "-C", host.TOP, "module", *words, log=log)
    return host.BUILD / f"{kernel.release}{'-kunit' if kunit else ''}" / "dm-lc/dm-lc.ko"


def build_tools():
    """make tools; the path of the binary, or None without sources."""
    if not (host.TOP / "userland/Makefile").exists():
        return None
    log = host.BUILD / "tools.log"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"")
    host.run("make", "-s", "-C", host.TOP, "tools", log=log)
    return host.TOP / "userland/lc"


def build(kernel):
    """All a guest of this kernel can be given."""
    return Products(build_module(kernel),
                    build_module(kernel, kunit=True) if kernel.checkers else None,
                    build_tools())
