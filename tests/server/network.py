# SPDX-License-Identifier: GPL-2.0-only
"""Two machines on one network: what docs/clusters.rst says of volumes, copies and network disks."""

import re
import time

from lclib import Disk, case, wait

from .boot import shown, write
from .stacks import PATIENT, all_up, in_fstab, is_clean, line_of

HDD = Disk("hdd", "512M", bus="scsi", rotation=7200)
SSD = Disk("ssd", "192M", bus="scsi", rotation=1)
ADDRESSES = ("10.0.0.1", "10.0.0.2")
BLOCKS = 4096           # of the file that the load writes to
GROUPS = 60             # fdatasyncs before something happens
DURABLE = re.compile(r"durable (\d+): ([\d ]+) \.")
FILE = "/srv/music/blocks"
EXPORT = "6f0c1b0e-3b43-4c64-9a39-2f1f0a4be1d1"     # the UUID of what nvmet exports
REMOTE = f"/dev/disk/by-id/nvme-uuid.{EXPORT}"
AWAY = 60               # seconds without the network disk


def name(node, host, address):
    """Give a machine its name and address, for this boot and later ones."""
    node.run(f"hostnamectl hostname {host} && cat > /etc/systemd/network/lan.network << END\n"
             f"[Match]\nName=eth0\n[Network]\nAddress={address}/24\nEND\n"
             "systemctl enable --now systemd-networkd && "
             "/lib/systemd/systemd-networkd-wait-online --interface=eth0 --timeout=60 && sync")


def two(ctx, disks):
    """Start the second machine, with these disks; both have the module and an address."""
    other = ctx.beside("south", disks)
    other.start()
    for node, host, address in zip((ctx, other), ("north", "south"), ADDRESSES):
        node.install()
        name(node, host, address)
    return other


def until(node, script, what, seconds=300):
    """Wait until a script in the guest succeeds."""
    wait.until(lambda: node.result(script)[0] == 0, seconds * node.scale, what)


def volume(node, hdd=None, ssd=None):
    """Format and start a volume named music."""
    node.run(f"lc-format --yes --backing {hdd or node.path('hdd')} {ssd or node.path('ssd')} && "
             f"lc-resume music {ssd or node.path('ssd')}")


# ------------------------------------------------------------------- the load


def load(node, first=1):
    """Start the load on the file system at /srv/music; returns when it has done some."""
    node.run("systemd-run --quiet --unit=load /usr/bin/python3 /opt/dm-lc/promises.py write "
             f"{FILE} {BLOCKS} {first}")
    goes_on(node)


def promises(node):
    """{place: number} of all that was told in this boot to be durable."""
    newest = {}
    for number, places in DURABLE.findall(node.console().read_text("utf-8", "replace")):
        for later, place in enumerate(places.split()):
            newest[int(place)] = max(int(number) + later, newest.get(int(place), 0))
    return newest


def goes_on(node):
    """Wait until the load has done more."""
    def groups():
        return len(DURABLE.findall(node.console().read_text("utf-8", "replace")))
    enough = groups() + GROUPS
    wait.until(lambda: groups() >= enough, 600 * node.scale, f"{enough} groups of writes")


def end(node):
    """End the load."""
    node.run("systemctl is-active load && systemctl stop load && "
             "{ systemctl reset-failed load 2> /dev/null || true; }")


def judge(node, promised):
    """All that was promised is in the file."""
    assert promised
    said = node.run("echo 3 > /proc/sys/vm/drop_caches && python3 /opt/dm-lc/promises.py check "
                    f"{FILE} {BLOCKS} << END\n"
                    + "".join(f"{place} {number}\n" for place, number in promised.items())
                    + "END\n", limit=300)
    assert int(said) == len(promised), said


def mount(node, device, make=False):
    """Mount a device on /srv/music."""
    node.run((f"mkfs.ext4 -q {device} && " if make else "")
             + f"mkdir -p /srv/music && mount {device} /srv/music", limit=300)


def sound(node, device):
    """Unmount it; its file system is sound."""
    node.run(f"umount /srv/music && udevadm settle && fsck.ext4 -fn {device}", limit=300)


# ----------------------------------------------------------------------- DRBD


def resource(node, lower):
    """Configure a DRBD device over the lower one, the same on both machines, and bring it up."""
    parts = "".join(f"  on {host} {{ device /dev/drbd0; disk {lower}; address {address}:7789; "
                    "meta-disk internal; }\n"
                    for host, address in zip(("north", "south"), ADDRESSES))
    node.run("cat > /etc/drbd.d/music.res << END\nresource music {\n"
             "  net { protocol C; }\n  disk { c-plan-ahead 0; resync-rate 100M; }\n"
             f"{parts}}}\nEND\nmodprobe drbd && drbdadm create-md --force music && "
             "drbdadm up music && sync")


def replicate(north, south, lower):
    """A DRBD device on both, equal from the start as nothing was written yet."""
    for node in (north, south):
        resource(node, lower)
    in_step(north)
    north.run("drbdadm primary music")


def in_step(node):
    """Wait until both copies are connected and equal."""
    if "Inconsistent/Inconsistent" in connected(node):
        node.run("drbdadm -- --clear-bitmap new-current-uuid music")
    until(node, "test $(drbdadm dstate music) = UpToDate/UpToDate", "equal copies", 600)


def connected(node):
    """Wait until DRBD has its peer; returns the states of both disks."""
    until(node, "test $(drbdadm cstate music) = Connected", "DRBD's peer")
    return node.run("drbdadm dstate music")


def take_over(node):
    """Become primary once DRBD has missed its peer."""
    until(node, "test $(drbdadm cstate music) != Connected && drbdadm primary music",
          "the loss of the peer")


@case(kernels=("server",), disks=(HDD, SSD), timeout=2400, module="", network=True, long=True)
def drbd_over_volumes(ctx):
    """DRBD, protocol C, over a volume of each of two machines: the primary is killed under load.
    The other one has all that was durable and goes on; the first comes back, starts its volume by a
    replay and catches up, and then both have the same bytes.
    """
    south = two(ctx, (HDD, SSD))
    for node in (ctx, south):
        volume(node)
    replicate(ctx, south, "/dev/mapper/music")
    mount(ctx, "/dev/drbd0", make=True)
    load(ctx)
    ctx.kill()
    promised = promises(ctx)
    take_over(south)
    mount(south, "/dev/drbd0")
    judge(south, promised)
    load(south, max(promised.values()) + 1_000_000)
    ctx.start()
    ctx.run(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')} && modprobe drbd && "
            "drbdadm up music")
    assert "replayed" in ctx.run("dmesg")
    in_step(ctx)
    end(south)
    promised |= promises(south)
    judge(south, promised)
    sound(south, "/dev/drbd0")
    in_step(south)
    size = int(south.run("blockdev --getsize64 /dev/drbd0"))
    sums = []
    for node in (south, ctx):
        node.run("drbdadm down music")
        assert shown(node)["mode"] == "rw"
        sums.append(node.run(f"head -c {size} /dev/mapper/music | sha256sum", limit=300))
        node.run("lc-remove music", limit=300)
    assert sums[0] == sums[1], sums
    ctx.figure("durable blocks", len(promised))
    south.stop()


# ------------------------------------------------------------------- NVMe/TCP


def export(node, device):
    """Offer a device over NVMe/TCP, as nvmetcli would."""
    node.run("modprobe nvmet-tcp && cd /sys/kernel/config/nvmet && mkdir subsystems/music && "
             "echo 1 > subsystems/music/attr_allow_any_host && "
             "mkdir subsystems/music/namespaces/1 && cd subsystems/music/namespaces/1 && "
             f"echo {EXPORT} > device_uuid && echo -n {device} > device_path && echo 1 > enable && "
             "mkdir /sys/kernel/config/nvmet/ports/1 && cd /sys/kernel/config/nvmet/ports/1 && "
             f"echo tcp > addr_trtype && echo ipv4 > addr_adrfam && echo {ADDRESSES[0]} > "
             "addr_traddr && echo 4420 > addr_trsvcid && "
             "ln -s /sys/kernel/config/nvmet/subsystems/music subsystems/")


def connect(node, patience=-1):
    """Use what the first machine offers; without it, commands wait, at most for that many seconds
    if it is not -1.
    """
    # What waits for another machine may wait for longer than the kernel finds usual.
    node.run("sysctl -q kernel.hung_task_timeout_secs=0 && modprobe nvme-tcp && "
             f"nvme connect -t tcp -a {ADDRESSES[0]} -s 4420 -n music --reconnect-delay=2 "
             f"--ctrl-loss-tmo={patience}")
    until(node, f"udevadm settle && test -b {REMOTE}", "the network disk")


@case(kernels=("server",), disks=(Disk("hdd", "512M", kind="recorded"),
                                  Disk("ssd", "192M", kind="recorded")),
      timeout=2400, module="", network=True, long=True)
def volume_is_exported(ctx):
    """A volume that another machine uses over NVMe/TCP: the power of the machine that has it goes
    under load. The client is told by errors, and all that was durable is there when it mounts the
    file system again.
    """
    south = two(ctx, ())
    volume(ctx)
    export(ctx, "/dev/mapper/music")
    # A client that waits would not notice that writes before its next FLUSH are gone.
    connect(south, patience=10)
    mount(south, REMOTE, make=True)
    load(south)
    ctx.cut()
    promised = promises(south)
    until(south, f"! test -b {REMOTE} && ! systemctl is-active load", "the end of the connection")
    south.run("umount /srv/music && systemctl reset-failed load")
    ctx.start()
    ctx.run(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')}")
    assert "replayed" in ctx.run("dmesg")
    export(ctx, "/dev/mapper/music")
    connect(south, patience=10)
    mount(south, REMOTE)
    judge(south, promised)
    load(south, max(promised.values()) + 1_000_000)
    end(south)
    judge(south, promises(south))
    sound(south, REMOTE)
    south.run("nvme disconnect -n music")
    south.stop()
    assert shown(ctx)["mode"] == "rw"
    ctx.figure("durable blocks", len(promised))


@case(kernels=("server",), disks=(HDD,), timeout=2400, module="", network=True, long=True)
def network_disk_is_away(ctx):
    """A volume whose hard disk is another machine's, over NVMe/TCP, and the path is lost for a
    minute under load: writes go on, no mode changes, nothing is lost.
    """
    south = two(ctx, (SSD,))
    export(ctx, ctx.path("hdd"))
    connect(south)
    volume(south, hdd=REMOTE)
    mount(south, "/dev/mapper/music", make=True)
    load(south)
    ctx.monitor("set_link lan off")
    started = time.monotonic()
    before = len(promises(south))
    wait.until(lambda: time.monotonic() - started > AWAY, 2 * AWAY, "a minute")
    until(south, "dmesg | grep -q 'Failed reconnect attempt'",
          "the loss of the path")
    ctx.figure("blocks written meanwhile", len(promises(south)) - before)
    assert shown(south)["mode"] == "rw"
    ctx.monitor("set_link lan on")
    goes_on(south)
    end(south)
    south.run("sync && lc-flush music", limit=600)
    judge(south, promises(south))
    assert shown(south)["mode"] == "rw", shown(south)
    assert shown(south)["dirty"] == 0, shown(south)
    sound(south, "/dev/mapper/music")
    south.run("lc-remove music && nvme disconnect -n music", limit=300)
    south.stop()


@case(kernels=("server",), disks=(HDD,), timeout=2400, module="", network=True, long=True)
def network_disk_at_boot(ctx):
    """A volume whose hard disk is another machine's, with _netdev in lctab and fstab: it is mounted
    after a reboot, which needs no replay, and after a crash.
    """
    south = two(ctx, (SSD,))
    export(ctx, ctx.path("hdd"))
    south.run(f"echo -t tcp -a {ADDRESSES[0]} -s 4420 > /etc/nvme/discovery.conf && "
              "systemctl enable --now nvmf-autoconnect.service")
    until(south, f"udevadm settle && test -b {REMOTE}", "the network disk")
    south.run("lc-format --yes -o writeback=off --backing "
              f"{REMOTE} {south.path('ssd')} && udevadm settle")
    line_of(south, f"{south.path('ssd')} {REMOTE} _netdev")
    in_fstab(south, f"_netdev,{PATIENT}")
    write(south, "/srv/music", "{100..107}", 4)
    south.reboot()
    all_up(south, {"/srv/music": "/dev/mapper/music"})
    is_clean(south)
    write(south, "/srv/music", "{200..203}", 4)
    south.kill()
    south.start()
    all_up(south, {"/srv/music": "/dev/mapper/music"})
    assert "replayed" in south.run("dmesg") and shown(south)["mode"] == "rw"
    south.stop()


# ------------------------------------------------- one volume, two machines


@case(kernels=("server",), disks=(Disk("hdd", "512M", kind="recorded"), SSD), timeout=2400,
      module="", network=True, long=True)
def volume_moves_to_another_machine(ctx):
    """A hard disk that two machines reach, and an SSD that DRBD copies: the machine that runs the
    volume is killed under load. The other one starts it and has all that was durable; the first one
    comes back and is refused with its old copy.
    """
    south = two(ctx, (Disk("hdd", "512M", kind="recorded"), SSD))
    replicate(ctx, south, ctx.path("ssd"))
    volume(ctx, ssd="/dev/drbd0")
    mount(ctx, "/dev/mapper/music", make=True)
    load(ctx)
    ctx.kill()
    killed = time.monotonic()
    promised = promises(ctx)
    take_over(south)
    started = time.monotonic()
    south.run("modprobe dm-lc && lc-resume music /dev/drbd0", limit=300)
    mount(south, "/dev/mapper/music")
    ctx.figure("seconds to start and mount", round(time.monotonic() - started, 1))
    ctx.figure("seconds from the kill to the mount", round(time.monotonic() - killed, 1))
    assert "replayed" in south.run("dmesg")
    judge(south, promised)
    load(south, max(promised.values()) + 1_000_000)
    ctx.start()
    code, said = ctx.result(f"modprobe dm-lc && lc-resume music {ctx.path('ssd')} "
                            f"{ctx.path('hdd')}")
    assert code and "old copy" in said, said
    goes_on(south)
    end(south)
    judge(south, promised | promises(south))
    ctx.run("modprobe drbd && drbdadm up music")
    in_step(ctx)
    sound(south, "/dev/mapper/music")
    south.run("lc-remove music && drbdadm secondary music", limit=300)
    ctx.run("drbdadm primary music && lc-resume music /dev/drbd0", limit=300)
    mount(ctx, "/dev/mapper/music")
    judge(ctx, promised | promises(south))
    ctx.figure("durable blocks", len(promised))
    sound(ctx, "/dev/mapper/music")
    ctx.run("lc-remove music", limit=300)
    south.stop()
