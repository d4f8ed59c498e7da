/* SPDX-License-Identifier: MIT
 *
 * Folded stacks: one line for each call path with an amount of its own, `outer;inner;innermost
 * AMOUNT`. Readers drop lines whose amount is no positive integer without a word, so there are
 * none. The amounts are nanoseconds or bytes, and their sum is the total of the text views.
 */
#include "report/export/export.h"
#include "report/export/tree_frames.h"
#include <stdlib.h>
#include <string.h>

/* Semicolons separate frames. */
static void put_frame(struct output *out, struct string_view name)
{
	for (uint32_t i = 0; i < name.length; i++)
		output_char(out, name.bytes[i] == ';' ? ':' : name.bytes[i]);
}

static void put_stack(struct output *out, const struct frame_path *path)
{
	if (!path->count)
		put_frame(out, frame_name(path->process, 0));
	for (size_t i = 0; i < path->count; i++) {
		if (i)
			output_char(out, ';');
		put_frame(out, frame_name(path->process, path->nodes[i]));
	}
}

static void put_process(struct output *out, const struct process *process, enum tree_amount amount,
	bool names_process)
{
	const uint32_t count = process->profile->tree->count;
	struct frame_path path = { .count = 0 };
	uint64_t sum, *amounts = tree_amounts_of(process->profile, amount, &sum);

	for (uint32_t node = 0; node < count && !out->error; node++) {
		if (!amounts[node])
			continue;
		if (names_process) {
			put_frame(out, (struct string_view){ process_name(process),
					       (uint32_t)strlen(process_name(process)) });
			output_char(out, ';');
		}
		frame_path_set(&path, process, node);
		put_stack(out, &path);
		output_char(out, ' ');
		output_unsigned(out, amounts[node]);
		output_char(out, '\n');
	}
	free(amounts);
	frame_path_free(&path);
}

void export_folded(const struct options *options, struct processes *processes, struct output *out)
{
	for (size_t i = 0; i < processes->shown; i++)
		put_process(out, &processes->all[i], frame_amount_of(options, &processes->all[0]),
			processes->shown > 1);
}
