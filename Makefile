# SPDX-License-Identifier: GPL-2.0-only
# A thin front: kbuild builds the module, userland/Makefile the tools, tests/ the rest.

KDIR ?= /lib/modules/$(shell uname -r)/build
KREL ?= $(or $(shell $(MAKE) -s --no-print-directory -C $(KDIR) kernelrelease 2>/dev/null),unknown)
PREFIX ?= /usr/local
# make install DESTDIR=DIR stages the module too: nothing outside DIR is written.
INSTALL_MOD_PATH ?= $(DESTDIR)
DEPMOD ?= /sbin/depmod
MODINFO ?= /sbin/modinfo
# Objects of several kernels and compilers never mix: each has its own folder.
OUT := build/$(KREL)$(if $(LC_KUNIT),-kunit)$(if $(VARIANT),-$(VARIANT))
# Handed through to kbuild if given: CC, LLVM, W, C, CF, V, LC_KUNIT come by MAKEFLAGS.

all: module tools

help:
	@echo 'make module [KDIR=...]   dm-lc.ko for the kernel prepared in KDIR'
	@echo 'make tools               the lc binary (userland/)'
	@echo 'make test                build all, boot the guests, run the tests, within an hour'
	@echo 'make test-long           every test, and those that take long; hours'
	@echo 'make matrix              the module on each kernel that Debian offers now, a table'
	@echo 'make servers             the server guests of Debian 12 and 13; hours'
	@echo 'make check               style, sparse, warnings, with gcc and clang'
	@echo 'make tables              docs/coverage.rst, made from the tests'
	@echo 'make xfstests XFSTESTS=DIR [TESTS=...] [FS=ext4|xfs]'
	@echo '                         a built xfstests on lc and on dm-linear, differences told'
	@echo 'make blktests BLKTESTS=DIR [TESTS=...]    the same for blktests'
	@echo 'make cache-sim TRACES=DIR    hit ratios of cache policies over traces'
	@echo 'make bench-sums          what checksums cost on this processor'
	@echo 'make demo                a guest with a slow and a fast disk, end to end'
	@echo 'make dashboard           docs/dashboard.png, the dashboard for Grafana over a real run'
	@echo 'make bench [TRACES=DIR]  dm-lc and its peers side by side in one guest, an hour'
	@echo 'make bench-quick         the same with less of everything, ten minutes'
	@echo 'make bench-real HDD=DISK SSD=DISK    the same on real disks, which lose all they hold'
	@echo 'make install             module and tools (KDIR, PREFIX); with DESTDIR=DIR all below DIR'
	@echo 'make uninstall           remove what make install installed, for all kernels'
	@echo 'make deb [DEBS=DIR]      the Debian packages, in build/deb/ or DIR'
	@echo 'make clean               remove what was built here (not the cache)'

module:
	@mkdir -p $(OUT)
	@cp -ru Kbuild dm-lc $(OUT)/
	@cd $(OUT) && find dm-lc -name '*.[ch]' ! -name '*.mod.c' -exec sh -c \
		'for f; do test -e "$(CURDIR)/$$f" || rm "$$f"; done' sh {} +
	+$(MAKE) -C $(KDIR) M=$(CURDIR)/$(OUT) modules

tools:
	+$(MAKE) -C userland

test:
	tests/run --in-time

test-long:
	tests/run --long

matrix:
	tests/setup
	tests/matrix $(SUITES)

# One after the other: each is of another release, and all are to run, whatever fails.
servers:
	tests/setup
	failed=; for suite in $(or $(SUITES),bookworm trixie); do \
		LC_SUITE=$$suite tests/run --no-setup --long --kernel server 'test_server\[' || failed=yes; \
	done; test -z "$$failed"

check:
	tests/check

tables:
	cd tests && python3 -m lib.coverage

# What runs is kept: a second make goes on where the first one stopped.
xfstests:
	tests/setup
	tests/others/xfstests $(if $(FS),--fs $(FS)) $(OTHERS) \
		$(or $(XFSTESTS),$(error XFSTESTS=DIR: a built checkout)) $(TESTS)

blktests:
	tests/setup
	tests/others/blktests $(OTHERS) \
		$(or $(BLKTESTS),$(error BLKTESTS=DIR: a built checkout)) $(TESTS)

demo:
	tests/demo/run

dashboard:
	tests/setup
	tests/dashboard

# Public traces are not in the tree: docs/testing.rst says which are known.
cache-sim:
	tests/sim/run $(or $(TRACES),$(error TRACES=DIR: a folder with traces))

bench:
	tests/bench/run $(if $(TRACES),--traces $(TRACES))

bench-quick:
	tests/bench/run --length quick $(if $(TRACES),--traces $(TRACES))

bench-real:
	tests/bench/real --hdd $(or $(HDD),$(error HDD=DISK: its contents will be lost)) \
		--ssd $(or $(SSD),$(error SSD=DISK: its contents will be lost)) $(BENCH)

# What checksums cost on this processor; needs libxxhash-dev, as the tools do.
bench-sums: build/sums
	build/sums

build/sums: tests/bench/sums.c
	@mkdir -p build
	$(CC) -O2 -Wall -Wextra -o $@ $<

# A tree of headers has no System.map, without which kbuild leaves depmod out, and modprobe then
# finds nothing. Debian's headers call themselves otherwise than their kernel: only the module
# knows its release. With DESTDIR, the installation of the package that is made runs depmod.
install: module tools
	+$(MAKE) -C $(KDIR) M=$(CURDIR)/$(OUT) INSTALL_MOD_PATH="$(INSTALL_MOD_PATH)" modules_install
ifeq ($(INSTALL_MOD_PATH),)
	release=$$($(MODINFO) -F vermagic $(OUT)/dm-lc/dm-lc.ko | cut -d' ' -f1); \
	$(DEPMOD) "$$release" && \
	if ls "/lib/modules/$$release/updates/dkms/"dm-lc.ko* 2> /dev/null; then \
		echo "make install: modprobe may load this module of the package dm-lc-dkms instead." \
			"Remove one of the two." >&2; \
	fi
endif
	+$(MAKE) -C userland install PREFIX=$(PREFIX)

# The folder depends on the kernel's version. What dkms installs is elsewhere.
uninstall:
	set -e; for module in "$(INSTALL_MOD_PATH)"/lib/modules/*/extra/dm-lc/dm-lc.ko* \
		"$(INSTALL_MOD_PATH)"/lib/modules/*/updates/dm-lc/dm-lc.ko*; do \
		test -e "$$module" || continue; \
		rm "$$module"; \
		rmdir --ignore-fail-on-non-empty "$${module%/*}"; \
		release=$${module#"$(INSTALL_MOD_PATH)"/lib/modules/}; \
		test "$(INSTALL_MOD_PATH)" || $(DEPMOD) "$${release%%/*}"; \
	done
	+$(MAKE) -C userland uninstall PREFIX=$(PREFIX)

deb:
	debian/make-deb $(if $(DEBS),"$(DEBS)")

clean:
	rm -rf build
	if [ -e userland/Makefile ]; then $(MAKE) -C userland clean; fi

.PHONY: all help module tools test test-long matrix servers check xfstests blktests demo dashboard bench bench-quick
.PHONY: cache-sim bench-real bench-sums install uninstall deb tables clean
