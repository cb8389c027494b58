#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Puts what starts the volumes below the file systems that dracut mounts into the initramfs. There
# systemd starts them, by the units that lc-generator makes of the image's /etc/lctab.
# shellcheck disable=SC2154 # dracut's variables

# The lines of /etc/lctab that the image needs.
dm_lc_lines() {
	local dev devices=()

	for dev in "${!host_fs_types[@]}"; do
		[[ $dev == /dev/* ]] || dev=/dev/block/$dev
		devices+=("$dev")
	done
	@LIBDIR@/initrd-lines "${devices[@]}"
}

check() {
	require_binaries @SBINDIR@/lc findmnt findfs || return 1
	# Without a line there is nothing to start, for whatever machine the image is.
	[[ $(dm_lc_lines 2> /dev/null) ]] && return 0
	return 255
}

depends() {
	echo dm systemd
}

installkernel() {
	hostonly="" instmods dm-lc
	if ! modinfo -k "$kernel" dm-lc > /dev/null 2>&1; then
		derror "dm-lc: there is no module dm-lc for $kernel: THIS IMAGE CANNOT START ITS VOLUMES."
		derror "dm-lc: Install that kernel's headers, run: dkms autoinstall -k $kernel"
		derror "dm-lc: and then dracut again. Until then boot another kernel."
	fi
	return 0
}

install() {
	local rule

	dm_lc_lines > "$initdir/etc/lctab"
	mark_hostonly /etc/lctab
	inst_multiple @SBINDIR@/lc @SBINDIR@/lc-resume @SBINDIR@/lc-remove
	inst_multiple -o \
		"$systemdutildir/system-generators/lc-generator" \
		"$systemdsystemunitdir/lc.target" \
		"$systemdsystemunitdir/sysinit.target.wants/lc.target" \
		"$systemdsystemunitdir/modprobe@.service" \
		"$systemdsystemunitdir/blockdev@.target" \
		@UDEVLIBDIR@/lc-probe
	for rule in @UDEVDIR@/*-dm-lc.rules; do
		inst_rules "${rule##*/}"
	done
	inst_hook cleanup 30 "$moddir/need-shutdown.sh"
}
