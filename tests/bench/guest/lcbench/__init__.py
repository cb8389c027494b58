# SPDX-License-Identifier: GPL-2.0-only
"""The benchmark's part in the guest: systems under test, load, jobs."""
