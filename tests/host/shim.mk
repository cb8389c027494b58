# SPDX-License-Identifier: GPL-2.0-only
#
# The stand-in for the kernel, see shim.h.
#
#   TREE   with dm-lc/ and userland/
#   O      where $(O)/include is made: $(SHIM_INCLUDED) says that it is there
#
# SHIM_FLAGS go before all other -I; the module is built without what SHIM_WARNINGS turns off.

SHIM := $(dir $(lastword $(MAKEFILE_LIST)))
SHIM_FLAGS := -I$(O)/include -I$(SHIM) -I$(TREE)/userland/kernel
SHIM_WARNINGS := -Wno-unused-parameter -Wno-sign-compare -Wno-shadow -Wno-c23-extensions
SHIM_INCLUDED := $(O)/include/.made
# What the module includes of the kernel, but for what the tools have and what glibc includes.
SHIM_HEADERS := $(filter-out stddef.h $(notdir $(wildcard $(TREE)/userland/kernel/linux/*.h)), \
	$(shell sed -n 's/^\#include <linux\/\(.*\)>/\1/p' $(TREE)/dm-lc/*.[ch] $(TREE)/dm-lc/*/*.[ch] | sort -u))

$(SHIM_INCLUDED): $(SHIM)shim.mk $(wildcard $(TREE)/dm-lc/*.[ch] $(TREE)/dm-lc/*/*.[ch])
	@set -e; for name in $(SHIM_HEADERS); do \
		mkdir -p $(O)/include/linux/$$(dirname $$name); \
		echo '#include "shim.h"' > $(O)/include/linux/$$name; \
	done; mkdir -p $(O)/include/trace; : > $(O)/include/trace/define_trace.h; touch $@
