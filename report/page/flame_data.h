/* SPDX-License-Identifier: MIT
 * Writes the data of flame graphs as JSON, for the scripts of a page. The shape is documented in
 * README.md of this folder.
 */
#ifndef PPERF_REPORT_PAGE_FLAME_DATA_H
#define PPERF_REPORT_PAGE_FLAME_DATA_H

#include "report/page/flame_tree.h"
#include "report/text/json_writer.h"

#define FLAME_FRAMES_MAX 20000u /* of one tree in a page */

/* The texts of a page: each one once. */
struct page_strings {
	struct string_table *from; /* names as they are in the trace */
	uint32_t *number;          /* by text of `from`: its number in the page + 1; 0: none */
	size_t number_room;
	uint32_t *texts; /* by number: the text of `from` */
	size_t count, room;
};

/* Returns the number of a text in the page. */
uint32_t page_string(struct page_strings *strings, uint32_t text);
/* Writes the members `strings` and `changed`. The latter has the numbers of texts that differ from
 * the names in the trace, so no command can name them. */
void page_strings_write(struct json_writer *json, const struct page_strings *strings);
void page_strings_free(struct page_strings *strings);

/* Writes the member `flame`. `selected`: key of the metric to show first, or NULL. `shape`: the
 * shape to show first. Trees must be pruned. */
void flame_data_write(struct json_writer *json, struct flame *flame, struct page_strings *strings,
	const char *selected, enum flame_shape shape);
/* Returns the sum of a metric over a tree. */
long double flame_sum(const struct flame_tree *tree, size_t value);
/* Whether a shape shows a metric: stacks show memory only. */
bool flame_shows(const struct flame *flame, enum flame_shape shape, size_t metric);
/* Prepared text (page_text.h) as a member. */
void page_put_text(struct json_writer *json, const char *key, const char *text, size_t length);
const char *flame_shape_name(enum flame_shape shape);

#endif
