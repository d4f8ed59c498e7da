/* SPDX-License-Identifier: MIT */
#include "report/page/html_pages.h"
#include "report/run/process.h"

int html_sides_page(const struct options *options, struct processes sides[2])
{
	(void)options;
	(void)sides;
	return 0;
}
