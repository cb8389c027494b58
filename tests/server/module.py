# SPDX-License-Identifier: GPL-2.0-only
"""A module that the kernel does not load: what lc-resume says of it."""

from lclib import Disk, case

DISKS = (Disk("hdd", "512M", bus="scsi", rotation=7200),
         Disk("ssd", "256M", bus="scsi", rotation=1))


def told(ctx, *texts):
    """lc-resume fails, and says all of this in words of its own; nothing is left behind."""
    code, said = ctx.result(f"lc-resume music {ctx.path('ssd')}")
    missing = [text for text in texts if text not in said]
    assert code == 1 and not missing, f"not told: {missing}; {said}"
    assert "music" not in ctx.run("dmsetup ls")


def logged(ctx, text):
    """The kernel has said so."""
    assert text in ctx.run("dmesg"), text


@case(kernels=("server",), disks=DISKS, timeout=900, module="", long=True)
def rejected_module_is_explained(ctx):
    """No module for this kernel, no headers, lockdown, signatures enforced as by Secure Boot."""
    release = ctx.kernel.release
    ctx.install()
    ctx.run(f"rmmod dm_lc && lc-format --yes --backing {ctx.path('hdd')} {ctx.path('ssd')}")
    module = ctx.run("modinfo -F filename dm-lc").strip()
    build = f"/lib/modules/{release}/build"
    ctx.run(f"mv {module} /root && depmod")
    told(ctx, f"there is no module dm-lc for this kernel, {release}", "dkms status dm-lc")
    ctx.run(f"mv {build} {build}.away")
    told(ctx, "headers are missing", f"apt install linux-headers-{release}")
    ctx.run(f"mv {build}.away {build} && mv /root/{module.rpartition('/')[2]} {module} && depmod")
    assert not ctx.run("modinfo -F signer dm-lc").strip()
    ctx.run("mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security; "
            "echo integrity > /sys/kernel/security/lockdown")
    told(ctx, "Operation not permitted", "mokutil --import /var/lib/dkms/mok.pub")
    logged(ctx, "unsigned module loading is restricted")
    ctx.run("echo Y > /sys/module/module/parameters/sig_enforce")
    told(ctx, "Key was rejected by service", "mokutil --import /var/lib/dkms/mok.pub")
    logged(ctx, "oading of unsigned module is rejected")
