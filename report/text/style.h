/* SPDX-License-Identifier: MIT
 * Decides what text output may use (colour, width, characters beyond ASCII) and prints text in
 * that style.
 */
#ifndef PPERF_REPORT_TEXT_STYLE_H
#define PPERF_REPORT_TEXT_STYLE_H

#include "report/text/output.h"

enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* What the command line requests. */
struct style_settings {
	enum color_when color;
	bool ascii;     /* no characters beyond ASCII */
	bool iec;       /* KiB instead of kB */
	unsigned width; /* columns to fill; 0: not given */
};

struct written_paths; /* report/print/node_words.h */

/* The style of text output. */
struct style {
	struct output *out;
	bool terminal, color, ascii, iec;
	bool width_given;
	bool whole_names; /* names are never shortened: no terminal, and no width was given */
	unsigned width;
	/* Call paths that the screen has already: they are not written in full again. NULL: all
	 * are. */
	struct written_paths *written;
};

/* Decides the style from the settings, the environment (NO_COLOR, FORCE_COLOR, TERM, COLUMNS)
 * and the kind of file that `out` writes to. */
struct style style_of(const struct style_settings *settings, struct output *out);

/* Prints one line of foreign text, escaped. Shortens it to `columns` if that is not 0. */
void print_escaped(const struct style *style, const char *text, size_t bytes, size_t columns);
/* Prints our own text to style->out, formatted as by printf. */
void print_line(const struct style *style, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

enum paint { PAINT_NONE, PAINT_BOLD, PAINT_DIM, PAINT_HOT, PAINT_WARM };
/* Switches the colour. Prints nothing if style->color is false. */
void print_paint(const struct style *style, enum paint paint);

#endif
