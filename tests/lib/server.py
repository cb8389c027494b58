# SPDX-License-Identifier: GPL-2.0-only
"""One server guest and the case that drives it from the host, over several boots.

A server case is a function of the registry like a guest case, with kernels=("server",), but it
runs here and is given a Server: its commands run in the guest, and it can restart the machine,
stop it, look at the disks from outside meanwhile, and cut the power.
"""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import random
import re
import select
import shutil
import socket
import subprocess
import time
import traceback

from lclib import Skip, kmsg, wait

from . import host, payload, serverroot, times, vm

BOOT_SECONDS = 300
STOP_SECONDS = 240
ORDINARY = 120  # seconds for a command
SYSTEMD = 90    # seconds that it gives a unit to start, unless told otherwise
APPEND = ("ro net.ifnames=0 console=ttyS0 loglevel=7 panic=-1 oops=panic "
          "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=180 random.trust_cpu=on "
          "no_timer_check")
KERNEL_LINE = re.compile(r"\[ *\d+\.\d{6}\] (.*)")
# The kernel has hit a breakpoint of its own patching after it had removed it.
LEFT_OVER = "Oops: int3"
SOURCES = ("Kbuild", "Makefile", "README.md", "dm-lc", "userland")


@dataclasses.dataclass(frozen=True)
class Payload:
    """The files of a boot beside the kernel."""

    root: pathlib.Path      # the cached image, which no guest writes to
    initrd: pathlib.Path
    image: pathlib.Path     # squashfs: the agent, the sources, what make install puts


def make_payload(kernel, folder):
    """Build module and tools for the guest, and pack what a boot needs."""
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tree"
    tree.mkdir(parents=True)
    log = folder / "install.log"
    for program in (host.TESTS / "server/guest").glob("*.py"):
        shutil.copy(program, tree)
    (tree / "source").mkdir()
    host.run("cp", "-a", *(host.TOP / name for name in SOURCES), tree / "source")
    for built in (tree / "source/userland").glob("build*"):
        shutil.rmtree(built)
    stage = tree / "stage"
    # Of the environment: a word O= for make would be one for kbuild, too.
    tools = [f"O={host.BUILD / f'tools-{serverroot.guest_suite()}'}"] if kernel.enter else []
    host.run(*kernel.enter, "env", *tools, "make", "-s", "-C", host.TOP, "install",
             f"KDIR={kernel.kdir}", f"KREL={kernel.label}", f"DESTDIR={stage}",
             f"INSTALL_MOD_PATH={stage}", log=log)
    home = kernel.image.parent
    return Payload(home / "root.img", home / "initrd",
                   payload.pack(tree, folder / "payload.squashfs"))


def console_faults(text):
    """What the kernel's lines of a console hold that no case may cause; others' do not count."""
    found = map(KERNEL_LINE.search, text.splitlines())
    return kmsg.faults([line.group(1) for line in found if line])


def systemd_limits():
    """Kernel parameters that stretch systemd's own limits as LC_TIMEOUT_SCALE does all others.

    Before 253 the limit for devices is no parameter, and an unknown one does nothing.
    """
    seconds = round(SYSTEMD * vm.wanted_scale())
    if seconds == SYSTEMD:
        return ""
    return (f" systemd.default_timeout_start_sec={seconds} "
            f"systemd.default_device_timeout_sec={seconds}")


class GuestFailed(AssertionError):
    """A command in the guest did not end as its caller said it must."""

    def __init__(self, script, code, output):
        how = "was still running at its limit" if code is None else f"ended with {code}"
        super().__init__(f"`{script.strip()}` {how}:\n{output.strip()[-2500:]}")
        self.code = code
        self.output = output


class Server:
    """The machine of one case: its disks live as long as the case, its boots do not."""

    def __init__(self, kernel, files, case, folder, seed, in_turn=False):
        self.kernel = kernel
        self.in_turn = in_turn   # emulated processors run in turn, not side by side
        self.payload = files
        self.case = case
        self.suite = serverroot.guest_suite()
        self.folder = pathlib.Path(folder)
        self.seed = seed
        self.random = random.Random(seed)
        self.scale = vm.time_scale(kernel) * (case.smp if in_turn else 1)
        self.deadline = time.monotonic() + case.timeout * self.scale
        self.figures = {}
        self.boots = []          # seconds of each
        self.faults = []         # what the kernel logs of all boots held
        self.recorder = None
        # Of the next boot; a case may boot another kernel, or from a root that it has made.
        self.vmlinuz = kernel.image
        self.initrd = files.initrd
        self.root = "root=LABEL=rootfs"
        self.absent = set()      # names of disks that are not plugged in
        self.neighbour = None    # the other machine on the network
        self.is_second = False   # of the two
        self.process = None
        self.channel = None
        self.rest = b""

    def figure(self, name, value):
        """A number for the report."""
        self.figures[name] = value

    @staticmethod
    def skip(reason):
        """End the case: it cannot run here, for this reason."""
        raise Skip(reason)

    # ------------------------------------------------------------- the disks

    def disk(self, name):
        """The case's registry.Disk of that name."""
        return next(disk for disk in self.case.disks if disk.name == name)

    def path(self, name):
        """Its name in the guest, the same in each boot, as /dev/sda is not."""
        disk = self.disk(name)
        if disk.bus == "scsi":
            return f"/dev/disk/by-id/wwn-{disk.wwn:#x}"
        if disk.bus == "nvme":
            return f"/dev/disk/by-id/nvme-QEMU_NVMe_Ctrl_{disk.serial}"
        return f"/dev/disk/by-id/virtio-{disk.serial}"

    def image(self, name):
        """The file that holds the bytes of a disk that is not recorded."""
        return self.folder / f"{self.disk(name).serial}.img"

    def digest(self, name):
        """The checksum of all its bytes, read from outside the guest."""
        total = hashlib.sha256()
        with open(self.image(name), "rb") as image:
            while part := image.read(1 << 20):
                total.update(part)
        return total.hexdigest()

    def beside(self, name, disks):
        """Another machine on the network of this one (case(network=True)), not yet started.

        It has disks of its own, and shares the recorded ones of this machine if it names them.
        """
        other = Server(self.kernel, self.payload, dataclasses.replace(self.case, disks=disks),
                       self.folder / name, self.random.randrange(1 << 31), self.in_turn)
        other.neighbour, other.is_second = self, True
        other.deadline = self.deadline
        other.recorder = self.recorder if any(disk.kind == "recorded" for disk in disks) else None
        other.prepare()
        self.neighbour = other
        return other

    def prepare(self):
        """The folder, the overlay over the cached root, the disks that remember every write."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        host.run("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", self.payload.root,
                 self.folder / "root.img")
        recorded = [disk for disk in self.case.disks if disk.kind == "recorded"]
        if recorded and not self.recorder:
            from disks import Disks  # pylint: disable=import-outside-toplevel
            self.recorder = Disks(**{disk.name: disk.size for disk in recorded}).start()

    def close(self):
        """Whatever happened: no process, no image stays."""
        if self.process:
            self.process.kill()
            self.ended()
        if self.neighbour and not self.is_second:
            self.neighbour.close()
            self.faults += [f"second machine, {fault}" for fault in self.neighbour.faults]
        if self.recorder and not self.is_second:
            self.recorder.stop()
        if self.case.network and not self.is_second:
            for number in (1, 2):
                pathlib.Path(self.socket_path(f"lan{number}")).unlink(missing_ok=True)
        for image in self.folder.glob("*.img"):
            image.unlink()

    def plug(self, name):
        """Put a disk in, that the machine was started without or that was pulled out."""
        drive, device = vm.disk_arguments(self.disk(name), self.image(name))[1::2]
        for line, good in ((f"drive_add 0 {drive}", "OK"), (f"device_add {device}", "")):
            answer = self.monitor(line)
            assert answer == good, f"{line}: {answer}"
        self.absent.discard(name)

    def unplug(self, name):
        """Pull a disk out; returns when QEMU has forgotten its drive, which takes a while."""
        serial = self.disk(name).serial
        answer = self.monitor(f"device_del {serial}")
        assert not answer, answer
        wait.until(lambda: serial not in self.monitor("info block"), ORDINARY * self.scale,
                   f"the end of {serial}")
        self.absent.add(name)

    def monitor(self, line):
        """What QEMU's monitor answers to a command."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as channel:
            channel.settimeout(ORDINARY * self.scale)
            channel.connect(self.socket_path("monitor"))
            with channel.makefile("rw", encoding="utf-8") as stream:
                for request in ({"execute": "qmp_capabilities"},
                                {"execute": "human-monitor-command",
                                 "arguments": {"command-line": line}}):
                    stream.write(json.dumps(request) + "\n")
                    stream.flush()
                    message = {}
                    while not {"return", "error"} & message.keys():
                        message = json.loads(stream.readline())
        return message["return"].strip()

    def socket_path(self, kind):
        """Of this machine; such names must be short."""
        return f"/tmp/dmlc-{kind}-{host.digest(str(self.folder))}"

    def network(self):
        """QEMU's words for its network card; frames for a machine that is off are lost."""
        first = self.neighbour if self.is_second else self
        ends = [first.socket_path(f"lan{number}") for number in (1, 2)]
        mine, other = reversed(ends) if self.is_second else ends
        return ["-netdev", f"dgram,id=lan,local.type=unix,local.path={mine},"
                f"remote.type=unix,remote.path={other}",
                "-device", f"virtio-net-pci,netdev=lan,mac=52:54:00:00:00:0{1 + self.is_second}"]

    # ------------------------------------------------------------- its boots

    def command(self, path, console):
        """The whole QEMU command line."""
        if self.case.icount:
            machine, _ = vm.INSTRUCTIONS
        else:
            machine, _ = vm.accelerators(self.kernel, "max", self.in_turn)
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none",
                 "-no-reboot", *machine, "-smp", self.case.smp, "-m", self.case.memory,
                 "-kernel", self.vmlinuz, "-initrd", self.initrd,
                 "-append", f"{self.root} {APPEND}{systemd_limits()} {self.case.append}".strip(),
                 "-serial", f"file:{console}",
                 "-device", "virtio-rng-pci", "-device", "virtio-serial-pci,id=harness",
                 "-chardev", f"socket,id=verdict,path={path}",
                 "-device", f"virtserialport,bus=harness.0,chardev=verdict,name={vm.PORT}",
                 "-drive", f"if=none,id=root,file={self.folder / 'root.img'},format=qcow2,"
                 "cache=unsafe,discard=unmap", "-device", "virtio-blk-pci,drive=root,serial=root",
                 "-drive", f"if=none,id=lc-payload,file={self.payload.image},format=raw,"
                 "readonly=on", "-device", "virtio-blk-pci,drive=lc-payload,serial=lc-payload"]
        if self.case.network:
            words += self.network()
        words += ["-qmp", f"unix:{self.socket_path('monitor')},server=on,wait=off"]
        raw = [disk for disk in self.case.disks if disk.kind == "raw"]
        if any(disk.bus == "scsi" for disk in raw):
            words += ["-device", "virtio-scsi-pci"]
        raw = [disk for disk in raw if disk.name not in self.absent]
        # In another order each time: on a server /dev/sda is not always the same disk.
        for disk in self.random.sample(raw, len(raw)):
            words += vm.disk_arguments(disk, self.image(disk.name))
        if self.recorder:
            words += self.recorder.qemu_args()
        return [str(word) for word in words]

    def start(self, meanwhile=lambda: None):
        """Boot; returns when systemd has reached its target and the agent has spoken.

        `meanwhile` is called while the machine boots. A kernel that never came to systemd is booted
        once more, as in vm.booted().
        """
        started = time.monotonic()
        message = self.boot(meanwhile)
        if not message and "systemd[1]" not in self.console().read_text("utf-8", "replace"):
            host.say(f"{self.case.name}: a guest did not boot, once more; see {self.console()}")
            self.process.kill()
            self.ended()
            started = time.monotonic()
            message = self.boot(meanwhile)
        if not message or not message.get("boot"):
            raise AssertionError(f"boot {len(self.boots)}: the machine did not come up: {message}\n"
                                 + host.tail_of(self.console()))
        self.boots[-1] = round(time.monotonic() - started, 1)
        self.figure("boot_seconds", list(self.boots))

    def boot(self, meanwhile):
        """Start QEMU; the agent's first message, or None if it did not speak in time."""
        number = len(self.boots)
        path = pathlib.Path(self.socket_path("server"))
        path.unlink(missing_ok=True)
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
            listener.bind(str(path))
            listener.listen(1)
            with open(self.folder / f"qemu-{number}.log", "wb") as log:
                command = self.command(path, self.console(number))
                log.write((" ".join(command) + "\n").encode())
                log.flush()
                self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=log)
            self.channel = vm.Boot.accept(listener, self.process)
            path.unlink(missing_ok=True)
        self.rest = b""
        self.boots.append(0)
        if self.channel is None:
            raise AssertionError("QEMU did not start:\n"
                                 + host.tail_of(self.folder / f"qemu-{number}.log"))
        meanwhile()
        return self.receive(BOOT_SECONDS * self.scale)

    def await_console(self, pattern):
        """Wait until the console of the boot that runs holds the pattern; False if that fails."""
        end = min(time.monotonic() + BOOT_SECONDS * self.scale, self.deadline)
        while not (self.console().exists()
                   and re.search(pattern, self.console().read_text("utf-8", "replace"))):
            if time.monotonic() > end or self.process.poll() is not None:
                return False
            time.sleep(0.2)
        return True

    def console(self, number=-1):
        """The console of a boot; the last one by default."""
        return self.folder / f"console-{number if number >= 0 else len(self.boots) + number}"

    def receive(self, limit):
        """One message, or None if the guest ended or said nothing until the limit."""
        end = min(time.monotonic() + limit, self.deadline)
        while b"\n" not in self.rest:
            if not select.select([self.channel], [], [], max(0, end - time.monotonic()))[0]:
                return None
            try:
                part = self.channel.recv(65536)
            except ConnectionResetError:
                part = b""
            if not part:
                return None
            self.rest += part
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def ended(self):
        """QEMU is over: hang up, and scan what the kernel said in this boot."""
        self.process.wait()
        self.process = None
        if self.channel:
            self.channel.close()
        pathlib.Path(self.socket_path("monitor")).unlink(missing_ok=True)
        number = len(self.boots) - 1
        with contextlib.suppress(OSError):
            text = self.console(number).read_text(encoding="utf-8", errors="replace")
            self.faults += [f"boot {number + 1}: {line}" for line in console_faults(text)]

    def stop(self, how="poweroff", meanwhile=lambda: None):
        """systemctl poweroff (or reboot), until the machine is off; the disks stay.

        `meanwhile` is called while the machine stops.
        """
        self.send({"run": f"systemctl {how}", "user": "root", "limit": 60, "answers": None})
        meanwhile()
        try:
            self.process.wait(min(STOP_SECONDS * self.scale,
                                  max(1, self.deadline - time.monotonic())))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the machine did not end after systemctl {how}\n"
                                 + host.tail_of(self.console())) from None
        self.ended()

    def reboot(self):
        """systemctl reboot, and up again."""
        self.stop("reboot")
        self.start()

    def kill(self):
        """The machine is gone between two instructions; its disks have what was sent to them."""
        self.process.kill()
        self.ended()

    def cut(self, policy="random"):
        """The power goes: volatile writes of recorded disks by the policy; the guest is gone.

        The root's own writes all arrive: what is on trial lies on the recorded disks.
        """
        self.recorder.control.request("cut", seed=self.random.randrange(1 << 31), policy=policy)
        self.process.kill()
        self.ended()
        self.recorder.control.request("restore")

    # ---------------------------------------------------------- the commands

    def send(self, message):
        """One JSON line to the agent."""
        self.channel.sendall(json.dumps(message).encode() + b"\n")

    def result(self, script, user="root", limit=ORDINARY, answers=None):
        """Run a shell script in the guest; returns (exit code or None at the limit, output)."""
        limit *= self.scale
        with open(self.folder / "commands", "a", encoding="utf-8") as log:
            log.write(f"# {user}\n{script.strip()}\n")
            log.flush()
            started = time.monotonic()
            self.send({"run": script, "user": user, "limit": limit, "answers": answers})
            message = self.receive(limit + 60 * self.scale)
            if message is None:
                raise AssertionError(f"`{script.strip()}`: the guest gave no answer\n"
                                     + host.tail_of(self.console()))
            log.write(f"# {message['code']} after {time.monotonic() - started:.1f} s\n"
                      f"{message['output']}\n")
        return message["code"], message["output"]

    def run(self, script, **options):
        """Run a shell script in the guest that must succeed; returns what it printed."""
        code, output = self.result(script, **options)
        if code != 0:
            raise GuestFailed(script, code, output)
        return output

    def put(self, folder, *paths):
        """Copy files of the host into a folder of the guest, over the disk that is named copies."""
        work = self.folder / "put"
        work.mkdir()
        for path in paths:
            shutil.copy(path, work)
        host.run("mkfs.ext4", "-q", "-F", "-d", work, self.image("copies"))
        shutil.rmtree(work)
        disk = self.path("copies")
        self.run(f"mkdir -p {folder} /run/copies && blockdev --flushbufs {disk} && "
                 f"mount -o ro {disk} /run/copies && "
                 f"find /run/copies -maxdepth 1 -type f -exec cp -t {folder} {{}} + && "
                 "umount /run/copies && udevadm settle")

    def take(self, name, path):
        """Copy a file of the guest to a path of the host, over the same disk; returns its size."""
        disk = self.path("copies")
        size = int(self.run(f"stat -c %s {name} && cat {name} > {disk} && sync {disk}").split()[0])
        with open(self.image("copies"), "rb") as image:
            path.write_bytes(image.read(size))
        return size

    def install(self):
        """Module and tools as `make install` puts them, built on the host; the module loaded."""
        self.run("tar -C /opt/dm-lc/stage -c . | tar -C / -x --keep-directory-symlink "
                 "&& depmod && modprobe dm-lc")


def emulator_failed(server):
    """Is the first fault an instruction that an emulated processor should no longer have met?"""
    return (not server.case.icount and vm.is_emulated(server.kernel) and server.faults
            and LEFT_OVER in server.faults[0])


def one(kernel, files, case, folder, seed, budget=None):
    """Run one case on a machine of its own; returns its vm.Outcome.

    Emulated kernels that patch themselves while they run have died of breakpoints that they had
    removed, as if QEMU 7.2 let a processor run what another one had already replaced. Such a case
    is run once more, with processors that take turns, unless the run's time is over. What the
    second run finds counts.
    """
    got, server = attempt(kernel, files, case, folder, seed)
    if emulator_failed(server) and not (budget or times.Budget()).is_over():
        kept = server.folder.with_name(server.folder.name + "-int3")
        shutil.rmtree(kept, ignore_errors=True)
        server.folder.rename(kept)
        host.say(f"{case.name}: the emulator ran an instruction that was no longer there, once "
                 f"more with processors in turn; see {kept}")
        got, _ = attempt(kernel, files, case, folder, seed, in_turn=True)
    return got


def attempt(*args, **options):
    """A run of a case; returns its vm.Outcome and the Server, closed."""
    started = time.monotonic()
    server = Server(*args, **options)
    case = server.case
    verdict, reason = "passed", ""
    try:
        server.prepare()
        server.start()
        case.function(server)
        server.stop()
    except Skip as skip:
        verdict, reason = "skipped", str(skip)
    except Exception as error:  # pylint: disable=broad-except
        reason = f"{type(error).__name__}: {error}\n"
        reason += "".join(traceback.format_tb(error.__traceback__)[-3:])
        reason += f"seed {server.seed}; consoles and commands are in {server.folder}"
        verdict = "failed"
    finally:
        server.close()
    if server.faults:
        verdict = "failed"
        reason = "\n".join([reason, "kernel log:", *server.faults]).strip()
    seconds = round(time.monotonic() - started, 1)
    return vm.Outcome(verdict, reason, seconds, server.figures), server


def run_all(kernel, files, cases, folder, seed, budget):
    """The same as vm.run_all(), for server cases."""
    outcomes = {case.name: vm.Outcome("skipped", budget.reason()) if budget.is_over()
                else one(kernel, files, case, pathlib.Path(folder) / case.name, seed, budget)
                for case in cases}
    return outcomes, [got.figures.get("boot_seconds") for got in outcomes.values()]
