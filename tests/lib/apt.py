# SPDX-License-Identifier: GPL-2.0-only
"""A private apt state: packages of other Debian suites, the system untouched."""

import re
import subprocess

from . import host

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def mirror(label="Debian"):
    """The URL of the Debian archive (or of "Debian-Security") this machine uses."""
    listing = host.run("apt-get", "indextargets", "--format",
                       "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages")
    for line in listing.splitlines():
        origin, found, uri = line.split("|", 2)
        if origin == "Debian" and found == label:
            return uri.rstrip("/")
    raise RuntimeError(f"no archive labelled {label} in this machine's apt lists; "
                       "run tests/setup (it does apt-get update)")


def version_key(name):
    """Order package names as a person would: linux-source-7.10 after 7.9."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


class PrivateApt:
    """apt over its own folder, with the given suites and nothing else."""

    def __init__(self, name, suites):
        self.dir = host.cache() / "apt-state" / name
        for sub in ("lists/partial", "cache/archives/partial"):
            (self.dir / sub).mkdir(parents=True, exist_ok=True)
        self.lines = []
        for suite in suites:
            label = "Debian-Security" if suite.endswith("-security") else "Debian"
            self.lines.append(f"deb [signed-by={KEYRING}] {mirror(label)} {suite} main")
        (self.dir / "sources.list").write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        options = {
            "Dir::Etc::sourcelist": self.dir / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": self.dir / "lists",
            "Dir::State::status": "/dev/null",
            "Dir::Cache": self.dir / "cache",
            "APT::Sandbox::User": "root",
        }
        self.options = []
        for key, value in options.items():
            self.options += ["-o", f"{key}={value}"]

    def update(self):
        """Fetch the package lists."""
        host.run("apt-get", *self.options, "update")

    def names(self, pattern):
        """Packages on offer whose whole name matches, oldest first."""
        listing = host.run("apt-cache", *self.options, "pkgnames")
        found = [name for name in listing.split() if re.fullmatch(pattern, name)]
        return sorted(found, key=version_key)

    def candidate(self, package):
        """The version apt would take."""
        policy = host.run("apt-cache", *self.options, "policy", package)
        found = re.search(r"Candidate: (\S+)", policy)
        if not found or found.group(1) == "(none)":
            raise RuntimeError(f"no candidate for {package}")
        return found.group(1)

    def depends(self, package, pattern):
        """What the pattern finds in the name of a package that this one depends on, or None."""
        found = re.search(rf"Depends: {pattern}$",
                          host.run("apt-cache", *self.options, "depends", package), re.M)
        return found and found.group(1)

    def download(self, folder, status, suite, *packages):
        """Download packages of a suite, and all they need that a machine with this dpkg status
        does not have.
        """
        (folder / "partial").mkdir(parents=True)
        host.run("apt-get", *self.options, "-o", f"Dir::State::status={status}",
                 "-o", f"Dir::Cache::archives={folder}", "-o", "Debug::NoLocking=true",
                 "--yes", "--no-install-recommends", "--target-release", suite,
                 "--download-only", "install", *packages)

    def unpack(self, package, root):
        """Download a package (apt checks its signature) and unpack it below root."""
        before = set(self.dir.glob("*.deb"))
        subprocess.run(["apt-get", *self.options, "download", package],
                       cwd=self.dir, check=True, stdout=subprocess.DEVNULL)
        fresh = set(self.dir.glob("*.deb")) - before
        for deb in fresh or self.dir.glob(f"{package}_*.deb"):
            host.run("dpkg", "-x", deb, root)
            deb.unlink()
