/* SPDX-License-Identifier: MIT
 * old_libm.c: as old_glibc.c, for what calls the mathematical library. Since 2.29 these no longer set errno through a
 * handler that a program could install; nothing else is different.
 */
#include "packaging/old_version.h"
#include <math.h>

FORWARD(FIRST, double, exp, (double x), (x))
FORWARD(FIRST, double, log, (double x), (x))
FORWARD(FIRST, double, pow, (double x, double y), (x, y))
FORWARD(FIRST, double, log2, (double x), (x))
FORWARD(FIRST, double, exp2, (double x), (x))
FORWARD(FIRST, double, lgamma, (double x), (x))
