/* SPDX-License-Identifier: MIT
 * Holds the style sheets and scripts of pages. The assembler includes the files of this folder in
 * pperf-report. A page contains them unchanged: what is in the page is what is in the repository.
 */
#ifndef PPERF_REPORT_PAGE_ASSETS_H
#define PPERF_REPORT_PAGE_ASSETS_H

#include <stddef.h>

/* name, file. The order of scripts is the order in which a page runs them. */
#define PAGE_STYLES(X)                        \
	X(STYLE_TOKENS, "tokens.css")         \
	X(STYLE_PAGE, "page.css")             \
	X(STYLE_FLAME, "flame.css")           \
	X(STYLE_RUN, "run.css")               \
	X(STYLE_MEMORY_MAP, "memory_map.css") \
	X(STYLE_SEVERAL, "several.css")       \
	X(STYLE_TRENDS, "trends.css")
#define PAGE_SCRIPTS(X)                       \
	X(SCRIPT_BASE, "base.js")             \
	X(SCRIPT_NUMBERS, "numbers.js")       \
	X(SCRIPT_FLAME_TREE, "flame_tree.js") \
	X(SCRIPT_FLAME, "flame.js")           \
	X(SCRIPT_HEAD, "head.js")             \
	X(SCRIPT_FLAME_PAGE, "flame_page.js") \
	X(SCRIPT_LANES, "lanes.js")           \
	X(SCRIPT_TIMELINE, "timeline.js")     \
	X(SCRIPT_TABLES, "tables.js")         \
	X(SCRIPT_MEMORY_MAP, "memory_map.js") \
	X(SCRIPT_RUN, "run.js")               \
	X(SCRIPT_RUN_PAGE, "run_page.js")     \
	X(SCRIPT_RANKS_PAGE, "ranks_page.js") \
	X(SCRIPT_SIDES_PAGE, "sides_page.js") \
	X(SCRIPT_TRENDS_PAGE, "trends_page.js")

enum page_asset {
#define X(name, file) PAGE_##name,
	PAGE_STYLES(X) PAGE_SCRIPTS(X)
#undef X
		PAGE_ASSET_COUNT
};

struct asset {
	const char *file, *text; /* text: terminated */
	size_t length;
};

/* By enum page_asset. */
struct asset asset_get(enum page_asset asset);

#endif
