# SPDX-License-Identifier: GPL-2.0-only
"""What the benchmark needs that is not dm-lc: its own modules, dm-writeboost, make-bcache.

The peers come from Debian, unpacked below the cache and never into the tree or the system.
"""

import shutil

from lib import apt, host, kernels, products


def unpacked(package):
    """(version, folder) of a package of the stock kernel's suite, fetched once."""
    top = host.cache() / "peers"
    top.mkdir(exist_ok=True)
    with host.locked("peers"):
        found = sorted(top.glob(f"{package}_*"))
        if not found:
            source = apt.PrivateApt("stock", kernels.STOCK_SUITES)
            source.update()
            version = source.candidate(package)
            host.say(f"fetching {package} {version}")
            work = top / f".work-{package}"
            shutil.rmtree(work, ignore_errors=True)
            source.unpack(package, work)
            work.rename(top / f"{package}_{version.replace(':', '%3a')}")
            found = sorted(top.glob(f"{package}_*"))
    return found[-1].name.partition("_")[2], found[-1]


def build_writeboost(kernel):
    """(version, dm-writeboost.ko), built against that kernel in the cache."""
    version, root = unpacked("dm-writeboost-dkms")
    folder = root / f"build-{kernel.release}"
    with host.locked("peers"):
        if not (folder / "dm-writeboost.ko").exists():
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(next(root.glob("usr/src/dm-writeboost-*")), folder)
            host.run("make", "-s", "-C", kernel.kdir, f"M={folder}", "modules",
                     log=host.cache() / "dm-writeboost.log")
    return version, folder / "dm-writeboost.ko"


def prepare(kernel):
    """(versions, files for the guest).  dm-writeboost is built for the stock kernel only."""
    bcache, root = unpacked("bcache-tools")
    versions = {"bcache-tools": bcache,
                "dm-writecache, dm-cache, bcache, dm-linear": f"Linux {kernel.release}"}
    files = [*products.build_load(kernel), root / "usr/sbin/make-bcache"]
    if kernel.name == "stock":
        versions["dm-writeboost"], module = build_writeboost(kernel)
        files.append(module)
    return versions, files
