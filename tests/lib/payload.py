# SPDX-License-Identifier: GPL-2.0-only
"""What a run adds to the guest root: kernel modules, dm-lc.ko, the tools, the cases."""

import dataclasses
import lzma
import pathlib
import re
import shutil

from lclib import CASES, registry

from . import guestroot, host

# Loaded by the initramfs if the kernel has them as modules, with what they need.
BOOT_MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "squashfs", "overlay")
# Taken along for the cases.
CASE_MODULES = re.compile(
    r"kernel/drivers/md/(?!raid|linear|faulty|multipath|md-)"
    r"|kernel/drivers/md/raid1\.ko"
    r"|kernel/drivers/block/(brd|loop|null_blk)|kernel/block/(bfq|kyber)"
    r"|/(ext4|xfs|scsi_debug|sd_mod|sr_mod|virtio_scsi|virtio_rng|9pnet_virtio|9p|kunit)\.ko"
    # A SCSI disk on top of a block device, by the in-kernel target.
    r"|/(target_core_mod|target_core_iblock|tcm_loop)\.ko"
    r"|/(crc32c[-_]\w+|libcrc32c|crc32c|xxhash_generic)\.ko")
GUEST = "opt/dm-lc"


@dataclasses.dataclass(frozen=True)
class Payload:
    """The files one boot needs beside the kernel."""

    root: pathlib.Path
    image: pathlib.Path
    initramfs: pathlib.Path


def dependencies(modules):
    """modules.dep as {path: [paths it needs]}."""
    table = {}
    for line in (modules / "modules.dep").read_text(encoding="ascii").splitlines():
        path, _, needs = line.partition(":")
        table[path] = needs.split()
    return table


def with_needs(table, wanted):
    """The wanted modules and all they need, in an order that loads."""
    order = []
    for path in wanted:
        for part in (*reversed(table[path]), path):
            if part not in order:
                order.append(part)
    return order


def module_name(path):
    """kernel/fs/ext4/ext4.ko.xz -> ext4"""
    return pathlib.PurePath(path).name.partition(".ko")[0].replace("-", "_")


def copy_module(source, target):
    """Copy a module, not compressed: not every busybox and depmod takes what a kernel's suite has.

    Return: its name.
    """
    name = source.name.removesuffix(".xz")
    if source.suffix == ".xz":
        (target / name).write_bytes(lzma.decompress(source.read_bytes()))
    else:
        shutil.copy(source, target / name)
    return name


def make_initramfs(kernel, work, init=host.TESTS / "guest/initramfs-init"):
    """busybox, init and the modules that find the root."""
    tree = work / "initramfs"
    (tree / "modules").mkdir(parents=True)
    (tree / "bin").mkdir()
    shutil.copy("/bin/busybox", tree / "bin/busybox")
    shutil.copy(init, tree / "init")
    table = dependencies(kernel.modules)
    wanted = [path for name in BOOT_MODULES for path in table if module_name(path) == name]
    order = with_needs(table, wanted)
    names = [copy_module(kernel.modules / path, tree / "modules") for path in order]
    (tree / "modules/order").write_text("".join(name + "\n" for name in names), encoding="ascii")
    image = work / "initramfs.cpio.gz"
    host.run("sh", "-c", f"cd {tree} && find . | cpio -o -H newc --quiet | gzip -1 > {image}")
    return image


def add_modules(kernel, tree, ours, wanted=CASE_MODULES):
    """The kernel's modules that match, and our own (None: was not built)."""
    home = tree / "usr/lib/modules" / kernel.release
    table = dependencies(kernel.modules)
    for path in with_needs(table, [path for path in table if wanted.search(path)]):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        copy_module(kernel.modules / path, (home / path).parent)
    home.mkdir(parents=True, exist_ok=True)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        if (kernel.modules / name).exists():
            shutil.copy(kernel.modules / name, home / name)
    (home / "extra").mkdir()
    for path in filter(None, ours):
        shutil.copy(path, home / "extra" / path.name)
    host.run("depmod", "-b", tree / "usr", kernel.release)


def add_tools(tree, work):
    """lc and its links, as make install puts them."""
    host.run("make", "-s", "-C", host.TOP / "userland", "install", f"DESTDIR={tree}",
             "PREFIX=/usr", log=work / "tools.log")


def pack(tree, image, *options):
    """A folder as a squashfs; not compressed, see guestroot.py."""
    host.run("mksquashfs", tree, image, "-noI", "-noD", "-noF", "-noX", "-quiet", "-no-progress",
             "-all-root", *options)
    return image


def make_payload(kernel, work, products, extra):
    """The squashfs laid over the guest root; `extra` names files for the benchmark's folder."""
    tree = work / "payload"
    add_modules(kernel, tree, (products.module, products.scatter, products.load))
    shutil.copytree(host.TESTS / "guest", tree / GUEST / "guest",
                    ignore=shutil.ignore_patterns("__pycache__", "scatter"))
    shutil.copytree(host.TESTS / "demo/guest", tree / GUEST / "demo",
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(host.TESTS / "bench/guest", tree / GUEST / "bench",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for path in extra:
        shutil.copy(path, tree / GUEST / "bench")
    shutil.copytree(host.TESTS / "meta", tree / GUEST / "meta",
                    ignore=shutil.ignore_patterns("__pycache__", "test_*", "leak", "race"))
    if products.broken:
        shutil.copy(products.broken, tree / GUEST / "meta" / products.broken.name)
    # Cases type what the guide says.
    shutil.copy(host.TOP / "docs/dm-lc.rst", tree / GUEST)
    (tree / GUEST / "bin").mkdir()
    for program in products.programs:
        shutil.copy(program, tree / GUEST / "bin" / program.name)
    if products.kunit_module:
        (tree / GUEST / "kunit").mkdir()
        shutil.copy(products.kunit_module, tree / GUEST / "kunit/dm-lc.ko")
        registry.load(host.TESTS / "guest/cases")
        names = [case.function.__name__ for case in CASES.values() if case.module == "dm-lc-kunit"]
        (tree / GUEST / "kunit/suites").write_text(" ".join(names), encoding="ascii")
    if products.tools:
        add_tools(tree, work)
    # The guest runs this machine's own Python (its suite is the same): compile here, once.
    host.run("/usr/bin/python3", "-m", "compileall", "-q", "--invalidation-mode",
             "unchecked-hash", tree / GUEST)
    return pack(tree, work / "payload.squashfs")


def make(kernel, products, folder, extra=()):
    """Everything a boot of this kernel needs, made afresh below folder."""
    work = pathlib.Path(folder)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    return Payload(guestroot.image(), make_payload(kernel, work, products, extra),
                   make_initramfs(kernel, work))
