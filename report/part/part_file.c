/* SPDX-License-Identifier: MIT */
#include "report/part/part_file.h"
#include "report/base/alloc.h"
#include "report/base/error.h"
#include "report/base/text_builder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name, *columns;
} tables[] = {
#define X(id, name, columns) { #name, "trace rank " columns },
	PART_TABLES(X)
#undef X
};

const char *part_table_name(enum part_table table)
{
	return tables[table].name;
}

void part_make_folder(const char *path)
{
	struct text_builder part = { .text = NULL };

	for (const char *end = path; *end; end++) {
		end += strspn(end, "/");
		end += strcspn(end, "/");
		part.used = 0;
		text_add_bytes(&part, path, (size_t)(end - path));
		if (mkdir(part.text, 0777) && errno != EEXIST)
			fatal(STATUS_UNREADABLE, "%s: cannot be created:", part.text);
		if (!*end)
			break;
	}
	free(part.text);
}

/* ---- the schema ---- */

/* Writes the names of the columns, separated by commas. */
static void put_header(struct output *out, const char *columns)
{
	while (*columns) {
		const size_t length = strcspn(columns, " "), name = strcspn(columns, ": ");

		output_bytes(out, columns, name);
		columns += length + (columns[length] == ' ');
		output_char(out, *columns ? ',' : '\n');
	}
}

static const char *sql_type(const char *suffix)
{
	return *suffix != ':' ? "BIGINT" : suffix[1] == 't' ? "VARCHAR" : "BOOLEAN";
}

void part_put_columns(struct json_writer *json, enum part_table table)
{
	json_put_begin(json, "columns", '[');
	for (const char *at = tables[table].columns; *at;) {
		const size_t length = strcspn(at, " "), name = strcspn(at, ": ");

		json_write_begin(json, '[');
		json_write_text(json, (struct string_view){ at, (uint32_t)name });
		json_write_string(json, sql_type(at + name));
		json_write_end(json, ']');
		at += length + (at[length] == ' ');
	}
	json_write_end(json, ']');
}

/* ---- files ---- */

void part_file_open(
	struct part_file *file, const char *folder, enum part_table table, const char *task)
{
	struct text_builder name = { .text = NULL };

	text_add(&name, "%s/%s", folder, tables[table].name);
	part_make_folder(name.text);
	text_add(&name, "/%s.csv.gz", task);
	*file = (struct part_file){ .name = strdup(name.text) };
	text_add(&name, ".%ld.tmp", (long)getpid());
	file->temporary = name.text;
	file->out = output_open(file->temporary);
	output_compress(file->out);
	put_header(file->out, tables[table].columns);
}

uint64_t part_file_finish(struct part_file *file)
{
	struct stat status;

	output_close(file->out, file->temporary);
	if (stat(file->temporary, &status))
		fatal(STATUS_UNREADABLE, "%s: cannot be read:", file->temporary);
	return (uint64_t)status.st_size;
}

void part_file_publish(struct part_file *file)
{
	if (rename(file->temporary, file->name))
		fatal(STATUS_UNREADABLE, "%s: cannot be created:", file->name);
	free(file->temporary);
	free(file->name);
}

/* ---- rows ---- */

void part_cell(struct part_file *file)
{
	if (file->has_cell)
		output_char(file->out, ',');
	file->has_cell = true;
}

void part_integer(struct part_file *file, int64_t value)
{
	part_cell(file);
	output_signed(file->out, value);
}

void part_known(struct part_file *file, uint64_t value)
{
	part_cell(file);
	if (value != UINT64_MAX)
		output_unsigned(file->out, value);
}

void part_flag(struct part_file *file, bool value)
{
	part_cell(file);
	output_string(file->out, value ? "true" : "false");
}

void part_text(struct part_file *file, const char *bytes, size_t length)
{
	part_cell(file);
	output_csv_text(file->out, bytes, length);
}

void part_string(struct part_file *file, const char *text)
{
	part_text(file, text ? text : "", text ? strlen(text) : 0);
}

void part_row_begin(struct part_file *file, uint64_t trace, int64_t rank)
{
	file->has_cell = false;
	part_integer(file, (int64_t)trace);
	part_integer(file, rank);
}

void part_row_end(struct part_file *file)
{
	output_char(file->out, '\n');
	file->rows++;
}
