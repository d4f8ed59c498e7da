/* SPDX-License-Identifier: MIT */
#include "report/views/memory_oom.h"
#include "report/analysis/oom_cause.h"
#include "report/text/paragraph.h"
#include <string.h>

#define THREADS_SHOWN 8u

static void put_cause(const struct oom_cause *cause, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	char text[OOM_CAUSE_TEXT];

	oom_cause_sentence(cause, style->iec, style->ascii, text);
	if (!*text)
		return;
	paragraph_add(&paragraph, "%s", text);
	paragraph_print(&paragraph, "cause");
}

/* ---- the retry ---- */

/* What an allocator released between calls that failed. */
struct retry {
	uint64_t calls, released_bytes, releases, begin_ns, end_ns;
};

static void add_call(struct retry *retry, const struct failed_allocation *failed)
{
	if (!retry->calls++)
		retry->begin_ns = failed->begin_ns;
	retry->released_bytes += failed->released_bytes;
	retry->releases += failed->releases;
	retry->end_ns = failed->succeeded_later ? failed->repeated_ns : failed->time_ns;
}

static void put_retry(const struct retry *retry, bool succeeded, const struct style *style)
{
	struct paragraph paragraph = { .style = style };
	const unsigned long long calls = retry->calls + (unsigned long long)succeeded;

	paragraph_add(&paragraph, "%llu call%s of CUDA in ", calls, calls == 1 ? "" : "s");
	paragraph_value(&paragraph, UNIT_TIME, retry->end_ns - retry->begin_ns);
	if (retry->releases) {
		paragraph_add(&paragraph, "; meanwhile ");
		paragraph_value(&paragraph, UNIT_BYTES, retry->released_bytes);
		paragraph_add(&paragraph, " were released in %llu call%s",
			(unsigned long long)retry->releases, retry->releases == 1 ? "" : "s");
	} else {
		paragraph_add(&paragraph, "; nothing was released meanwhile");
	}
	paragraph_print(&paragraph, "retry");
}

/* ---- threads ---- */

static void add_place(struct paragraph *paragraph, const struct process *process,
	const struct oom_open_range *ranges, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct string_view label = string_table_get(process->texts, ranges[i].label);

		paragraph_add(paragraph, i ? " / " : "`");
		paragraph_name(paragraph, label.bytes, label.length);
	}
	paragraph_add(paragraph, "`");
}

/* Prints where the other threads were. `self`: the one that ran out of memory. */
static void put_threads(const struct process *process, uint32_t first, uint32_t count,
	uint32_t self, const struct style *style)
{
	const struct oom_thread *threads = process->profile->oom_threads + first;
	struct paragraph paragraph = { .style = style };

	if (!count)
		return;
	paragraph_add(&paragraph, "thread %u ran out of memory; ", self);
	for (uint32_t i = 0; i < count && i < THREADS_SHOWN; i++) {
		paragraph_add(&paragraph, "%s%u in ", i ? ", " : "meanwhile ", threads[i].tid);
		add_place(&paragraph, process, process->profile->oom_ranges + threads[i].first_open,
			threads[i].open);
	}
	if (count > THREADS_SHOWN)
		paragraph_add(&paragraph, ", and %u more", count - THREADS_SHOWN);
	paragraph_print(&paragraph, "threads");
}

void memory_oom_put_torch(
	struct process *process, const struct memory_oom *oom, const struct style *style)
{
	const struct oom_cause cause = oom_cause_of_torch(process, oom);
	const struct memory_owners *memory = process->profile->memory;
	struct retry retry = { .calls = 0 };

	put_cause(&cause, style);
	for (uint32_t i = oom->first_failed; i < memory->failed_count && retry.calls < oom->failed;
		i++)
		if (memory->failed[i].tid == oom->tid && memory->failed[i].device == oom->device)
			add_call(&retry, &memory->failed[i]);
	if (retry.calls)
		put_retry(&retry, false, style);
	put_threads(process, oom->first_thread, oom->threads, oom->tid, style);
}

void memory_oom_put_call(
	struct process *process, const struct failed_allocation *failed, const struct style *style)
{
	const struct oom_cause cause = oom_cause_of_call(process, failed);
	struct retry retry = { .calls = 0 };

	if (!failed->succeeded_later) {
		put_cause(&cause, style);
	} else {
		add_call(&retry, failed);
		put_retry(&retry, true, style);
	}
	put_threads(process, failed->first_thread, failed->threads, failed->tid, style);
}
