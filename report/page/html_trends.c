/* SPDX-License-Identifier: MIT */
#include "report/base/error.h"
#include "report/base/regular_file.h"
#include "report/page/html_pages.h"
#include "report/page/page_writer.h"
#include "report/run/output_file.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const enum page_asset assets[] = { PAGE_STYLE_TOKENS, PAGE_STYLE_PAGE, PAGE_STYLE_RUN,
	PAGE_STYLE_TRENDS, PAGE_SCRIPT_BASE, PAGE_SCRIPT_NUMBERS, PAGE_SCRIPT_FLAME_TREE,
	PAGE_SCRIPT_HEAD, PAGE_SCRIPT_TABLES, PAGE_SCRIPT_TRENDS_PAGE };
#define ASSETS (sizeof assets / sizeof *assets)

/* In JSON these characters are in strings only, where an escape means the same. So no content of
 * the file ends the element that it is in. */
static void write_escaped(struct output *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		const char c = text[i];

		if (c == '<' || c == '>' || c == '&')
			output_string(out, c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026");
		else
			output_char(out, c);
	}
}

int html_trends_page(const struct options *options)
{
	struct output_file file;
	struct stat status;
	char chunk[1 << 16];
	ssize_t got;
	int data;

	if (options->file_count != 1)
		fatal(STATUS_USAGE, "--trends needs one file; pperf history html writes it");
	data = regular_file_open(options->files[0], &status);
	if (data < 0)
		fatal(STATUS_UNREADABLE, "%s: cannot be read:", options->files[0]);
	if (read(data, chunk, 1) != 1 || *chunk != '{')
		fatal(STATUS_UNREADABLE,
			"%s: is not the data of a page; pperf history html writes it",
			options->files[0]);
	file = output_file_open(options, ".html");
	page_begin(file.out, "history", assets, ASSETS);
	output_char(file.out, '{');
	while ((got = read(data, chunk, sizeof chunk)) > 0)
		write_escaped(file.out, chunk, (size_t)got);
	if (got < 0)
		fatal(STATUS_UNREADABLE, "%s: cannot be read:", options->files[0]);
	close(data);
	page_end(file.out, assets, ASSETS);
	return output_file_close(&file) ? STATUS_OK : STATUS_UNREADABLE;
}
