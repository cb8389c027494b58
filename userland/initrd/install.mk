# SPDX-License-Identifier: GPL-2.0-only
# Installs what a root file system on a volume needs: see initrd-lines. Part of userland/Makefile.

LIBDIR ?= $(PREFIX)/lib/dm-lc
INITRAMFSDIR ?= /usr/share/initramfs-tools
DRACUTDIR ?= /usr/lib/dracut/modules.d

# The file in userland/, and where it goes.
INITRD := \
	initrd/initrd-lines:$(LIBDIR)/initrd-lines \
	initrd/shutdown-ramfs:$(LIBDIR)/shutdown-ramfs \
	initramfs-tools/hooks/dm-lc:$(INITRAMFSDIR)/hooks/dm-lc \
	initramfs-tools/scripts/dm-lc:$(INITRAMFSDIR)/scripts/local-top/dm-lc \
	initramfs-tools/scripts/dm-lc:$(INITRAMFSDIR)/scripts/local-block/dm-lc \
	dracut/70dm-lc/module-setup.sh:$(DRACUTDIR)/70dm-lc/module-setup.sh \
	dracut/70dm-lc/need-shutdown.sh:$(DRACUTDIR)/70dm-lc/need-shutdown.sh
PATHS := -e 's|@SBINDIR@|$(SBINDIR)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' \
	-e 's|@UDEVDIR@|$(UDEVDIR)|g' -e 's|@UDEVLIBDIR@|$(UDEVLIBDIR)|g'

install: install-initrd
install-initrd: all
	set -e; for f in $(INITRD); do \
		to="$(DESTDIR)$${f#*:}"; \
		install -d "$${to%/*}"; \
		sed $(PATHS) "$(SRC)$${f%%:*}" > "$$to"; \
		chmod 0755 "$$to"; \
	done

uninstall: uninstall-initrd
uninstall-initrd:
	set -e; for f in $(foreach f,$(INITRD),"$(lastword $(subst :, ,$f))"); do \
		dpkg-query -S "$(DESTDIR)$$f" > /dev/null 2>&1 || rm -f "$(DESTDIR)$$f"; \
	done

.PHONY: install-initrd uninstall-initrd
