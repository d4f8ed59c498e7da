/* SPDX-License-Identifier: MIT
 * info_collect.c: see info_collect.h.
 */
#include "report/views/info_collect.h"

#include "report/base/error.h"
#include "report/import/open_trace.h"

static void count_event(struct info *info, const struct trace_event *event)
{
	const struct trace_gpu_batch *batch = event->record;

	info->records[event->kind]++;
	info->recorded += event->kind < TRACE_KINDS || event->kind == EVENT_POP ||
			  event->kind == EVENT_UNMATCHED;
	if (event->kind == TRACE_GPU_BATCH) {
		info->dropped += batch->dropped;
		info->unread += batch->unread;
	}
}

void info_collect(struct info *info, const char *path)
{
	char error[READER_ERROR_BYTES];
	struct trace_event event;
	int status;

	*info = (struct info){ .reader = trace_open(path, error) };
	if (!info->reader)
		fatal(STATUS_UNREADABLE, "%s", error);
	while ((status = reader_next(info->reader, &event)) > 0)
		count_event(info, &event);
	if (status < 0)
		fatal(STATUS_UNREADABLE, "%s", reader_error(info->reader));
	info->integrity = *reader_integrity(info->reader);
	info->handovers = handover_list_read(info->reader);
}

void info_release(struct info *info)
{
	handover_list_free(info->handovers);
	reader_close(info->reader);
}
