/* SPDX-License-Identifier: MIT
 * Writes a page of HTML: one file without any reference to another one.
 *
 *	page_begin(out, "trace.bin", assets, count);
 *	... one JSON value: the data of the page
 *	page_end(out, assets, count);
 *
 * The Content-Security-Policy forbids everything but the page's own styles and scripts, by their
 * hashes. So a name in a trace cannot run a script or load anything.
 */
#ifndef PPERF_REPORT_PAGE_PAGE_WRITER_H
#define PPERF_REPORT_PAGE_PAGE_WRITER_H

#include "report/page/assets.h"
#include "report/text/output.h"

/* `title`: prepared text (page_text.h). Writes everything before the JSON value. */
void page_begin(struct output *out, const char *title, const enum page_asset *assets, size_t count);
void page_end(struct output *out, const enum page_asset *assets, size_t count);

#endif
