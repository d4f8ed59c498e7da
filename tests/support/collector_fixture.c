/* SPDX-License-Identifier: MIT */
#include "tests/support/collector_fixture.h"

#include "collector/stream/stream.h"
#include "collector/file/trace_file.h"

#include <check.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char folder[4096];

void collector_start(uint64_t limit_bytes)
{
	static struct trace_settings settings;
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof folder, "%s/pperf-recording-XXXXXX", base && *base ? base : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
	ck_assert_int_lt(
		snprintf(settings.output, sizeof settings.output, "%.4000s/trace.bin", folder),
		(int)sizeof settings.output);
	settings.limit_bytes = limit_bytes ? limit_bytes : 1u << 30;
	settings.run_id = 42;
	stream_configure(&settings);
}

void collector_finish(void)
{
	stream_end_process();
	trace_end();
}

struct trace_reader *collector_open_trace(void)
{
	char error[READER_ERROR_BYTES] = "";
	struct trace_reader *reader = reader_open(trace_path(), error);

	ck_assert_msg(reader != NULL, "%s", error);
	return reader;
}

static const char *verb(uint32_t kind)
{
	switch (kind) {
	case TRACE_PUSH:
		return "push";
	case EVENT_POP:
		return "pop";
	case TRACE_START:
		return "start";
	case TRACE_END:
		return "end";
	case TRACE_MARK:
		return "mark";
	case TRACE_METRIC:
		return "metric";
	case TRACE_OBJECT:
		return "object";
	case EVENT_RESUMED:
		return "resumed";
	case EVENT_UNENDED:
		return "unended";
	case EVENT_LEFT_OPEN:
		return "left open";
	case EVENT_GAP:
		return "gap";
	case TRACE_LOST:
		return "lost";
	}
	return NULL;
}

static bool has_text(uint32_t kind)
{
	return kind == TRACE_PUSH || kind == EVENT_POP || kind == TRACE_START ||
	       kind == TRACE_MARK || kind == EVENT_RESUMED || kind == EVENT_UNENDED ||
	       kind == EVENT_LEFT_OPEN;
}

static uint32_t domain_of(struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_range *range = event->record;

	if (event->kind == TRACE_START || event->kind == TRACE_MARK)
		return range->domain;
	return reader_node(reader, event->node)->domain;
}

static void print_event(FILE *out, struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_lost *lost = event->record;
	struct trace_text text;

	if (!verb(event->kind))
		return;
	fputs(verb(event->kind), out);
	if (event->kind == TRACE_LOST)
		fprintf(out, " %" PRIu64, lost->events);
	if (has_text(event->kind)) {
		text = reader_event_text(reader, event);
		fprintf(out, " %.*s", (int)text.length, text.bytes);
		text = reader_name(reader, domain_of(reader, event));
		if (text.known)
			fprintf(out, " @%.*s", (int)text.length, text.bytes);
	}
	fputc('\n', out);
}

char *collector_trace_text(struct trace_reader *reader)
{
	struct trace_event event;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int status;

	ck_assert_ptr_nonnull(out);
	while ((status = reader_next(reader, &event)) > 0)
		print_event(out, reader, &event);
	ck_assert_msg(status == 0, "%s", reader_error(reader));
	fclose(out);
	return text;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

uint64_t monotonic_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void collector_remove_folder(void)
{
	if (folder[0])
		nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
