/* SPDX-License-Identifier: MIT */
#include "report/print.h"

void print_screen(const struct report *report, const struct style *style)
{
	print_table(report, &report->rows, LAYOUT_TREE, style);
}
