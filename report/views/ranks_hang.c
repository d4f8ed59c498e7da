/* SPDX-License-Identifier: MIT
 *
 * Prints which ranks wait for which others at the end of the traces.
 */
#include "report/analysis/ranks/rank_hang.h"
#include "report/base/alloc.h"
#include "report/text/paragraph.h"
#include "report/views/ranks.h"
#include <stdlib.h>
#include <string.h>

#define HANGS 3   /* collectives that are printed */
#define ABSENT 4  /* ranks of each that are printed */
#define THREADS 3 /* threads of each that are printed */

static void add_open_path(struct paragraph *paragraph, const struct end_thread *thread)
{
	paragraph_add(paragraph, "thread %u is in `", thread->tid);
	for (size_t i = 0; i < thread->path_count; i++) {
		paragraph_add(paragraph, "%s", i ? " / " : "");
		paragraph_text(paragraph, thread->path[i], strlen(thread->path[i]));
	}
	if (thread->call)
		paragraph_add(paragraph, "%s%s", thread->path_count ? " / " : "", thread->call);
	paragraph_add(paragraph, "`, open for ");
}

static void add_thread(
	struct paragraph *paragraph, const struct end_thread *thread, uint64_t open_ns)
{
	if (thread->path_count || thread->call)
		add_open_path(paragraph, thread);
	else
		paragraph_add(paragraph, "thread %u is in no recorded range, for ", thread->tid);
	paragraph_value(paragraph, UNIT_TIME, open_ns);
	paragraph_add(paragraph, " or longer");
	if (thread->source) {
		paragraph_add(paragraph, ", entered from ");
		paragraph_text(paragraph, thread->source, strlen(thread->source));
	}
	for (size_t i = 0; i < thread->frame_count; i++) {
		paragraph_add(paragraph, i ? " < " : ", last CUDA call from ");
		paragraph_text(paragraph, thread->frames[i], strlen(thread->frames[i]));
	}
}

/* The state of the text. */
struct hang_text {
	const struct ranks *ranks;
	const struct style *style;
	struct rank_hangs hangs;
	bool *told; /* by rank: where it is has been printed */
};

/* Returns what is known of a rank without its threads; NULL: these say it. */
static const char *state_of_absent(const struct hang_text *text, const struct absent_rank *absent)
{
	if (!absent->input)
		return "has no usable trace";
	if (absent->rank != UINT32_MAX && text->told[absent->rank])
		return "has not requested it either";
	if (rank_hang_waits_elsewhere(&text->hangs, absent))
		return "waits in another collective";
	if (!absent->input->end)
		return "has ended";
	return absent->input->end->thread_count ? NULL : "was in no recorded range";
}

static void put_absent_rank(struct hang_text *text, const struct absent_rank *absent)
{
	const char *state = state_of_absent(text, absent);
	struct paragraph paragraph = { .style = text->style };

	paragraph_add(&paragraph, "rank %lld %s", (long long)absent->number,
		state ? state : "has not requested it: ");
	for (size_t i = 0; !state && i < absent->input->end->thread_count && i < THREADS; i++) {
		const struct end_thread *thread = &absent->input->end->threads[i];

		paragraph_add(&paragraph, "%s", i ? "; " : "");
		add_thread(&paragraph, thread,
			rank_hang_open_ns(&text->hangs, text->ranks, absent, thread->begin_ns));
	}
	if (absent->rank != UINT32_MAX)
		text->told[absent->rank] = true;
	paragraph_print(&paragraph, "");
}

/* Adds what the ranks wait in: `collective 97 (ncclAllReduce) of communicator all of 0`. */
static void add_hang_place(struct paragraph *paragraph, const struct rank_hang *hang)
{
	const unsigned long long number = hang->number;

	if (!hang->number)
		paragraph_add(paragraph, "the making");
	else if (hang->from != UINT32_MAX)
		paragraph_add(paragraph, "message %llu from rank %u to rank %u", number, hang->from,
			hang->to);
	else
		paragraph_add(paragraph, "collective %llu", number);
	if (hang->operation)
		paragraph_add(paragraph, " (%s)", hang->operation);
	if (!hang->communicator)
		return;
	paragraph_add(paragraph, " of communicator ");
	paragraph_text(paragraph, hang->communicator, strlen(hang->communicator));
}

static void put_hang(struct hang_text *text, const struct rank_hang *hang)
{
	const size_t absent_count = hang->absent_count + hang->unknown_count;
	struct paragraph paragraph = { .style = text->style };

	paragraph_add(&paragraph, "at the end of the traces %zu rank%s wait%s for %zu other%s in ",
		hang->waiting_count, hang->waiting_count == 1 ? "" : "s",
		hang->waiting_count == 1 ? "s" : "", absent_count, absent_count == 1 ? "" : "s");
	add_hang_place(&paragraph, hang);
	paragraph_print(&paragraph, "hang");
	for (size_t i = 0; i < hang->absent_count && i < ABSENT; i++)
		put_absent_rank(text, &hang->absent[i]);
	if (hang->absent_count > ABSENT) {
		paragraph_add(
			&paragraph, "%zu more (-f json lists all)", hang->absent_count - ABSENT);
		paragraph_print(&paragraph, "");
	}
	if (hang->unknown_count) {
		paragraph_add(&paragraph,
			"%zu rank%s of the communicator did not request it, but which is not known",
			hang->unknown_count, hang->unknown_count == 1 ? "" : "s");
		paragraph_print(&paragraph, "");
	}
}

void ranks_print_hangs(const struct ranks *ranks, const struct style *style)
{
	struct hang_text text = {
		.ranks = ranks, .style = style, .told = xcalloc(ranks->count + 1)
	};
	struct paragraph paragraph = { .style = style };

	rank_hangs_find(&text.hangs, ranks);
	for (size_t i = 0; i < text.hangs.count && i < HANGS; i++)
		put_hang(&text, &text.hangs.all[i]);
	if (text.hangs.count > HANGS) {
		paragraph_add(&paragraph, "%zu more communicators (-f json lists all)",
			text.hangs.count - HANGS);
		paragraph_print(&paragraph, "hang");
	}
	rank_hangs_free(&text.hangs);
	free(text.told);
}
