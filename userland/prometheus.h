/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Running volumes in the text format of Prometheus, version 0.0.4.
 *
 * Names of metrics and labels are only ever added.  Values are in base units.  The label `volume`
 * is device mapper's name of the volume, escaped as shown() does, so that it is printable ASCII or
 * UTF-8 whatever the name is.  `device` is the kernel's name, as node_exporter calls the device.
 *
 * A status key that the running module does not have gives no sample.
 */
#ifndef LC_PROMETHEUS_H
#define LC_PROMETHEUS_H

#include <stdio.h>

#include "view.h"

void prometheus_print(FILE *out, const struct volume_view *views, size_t nr);

#endif
