# SPDX-License-Identifier: GPL-2.0-only
"""Cases on an ordinary Debian with systemd, driven from here: see lib/server.py."""

from lib import host
from test_guest import test_guest as verdict

CASE_FOLDER = host.TESTS / "server"


def test_server(guest_case, guest_runs, record_property):
    """What came of this case."""
    verdict(guest_case, guest_runs, record_property)
