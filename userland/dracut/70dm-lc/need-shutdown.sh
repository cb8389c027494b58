#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# With a volume below the root the machine goes down through the initramfs, where dracut's module dm
# removes the volume once nothing is mounted: it stops cleanly.

# shellcheck source=/dev/null
type need_shutdown > /dev/null 2>&1 || . /lib/dracut-lib.sh

if grep -q '^LC-' /sys/block/dm-*/dm/uuid 2> /dev/null; then
	need_shutdown
fi
