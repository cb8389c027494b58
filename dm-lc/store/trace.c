// SPDX-License-Identifier: GPL-2.0-only
/* What the tracepoints consist of, once.  See trace.h. */
#define CREATE_TRACE_POINTS
#include "store/trace.h"
