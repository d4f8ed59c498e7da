/* SPDX-License-Identifier: MIT
 *
 * profile.proto (https://github.com/google/pprof/blob/main/proto/profile.proto): a sample for each
 * call path, with a value for each amount. A function is a name; a location is a function.
 */
#include "report/base/alloc.h"
#include "report/export/export.h"
#include "report/export/protobuf.h"
#include "report/export/tree_frames.h"
#include <stdlib.h>
#include <string.h>

/* Fields of Profile. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME_NS = 9,
	PROFILE_DURATION_NS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14
};

struct pprof {
	struct output *out;
	/* Its ids are the indexes of the string table, whose first string is empty too. A function
	 * and its location have the id of its name. */
	struct string_table *strings;
	uint32_t string_count;
	struct protobuf message, inner, packed;
	bool *is_function; /* by string */
	size_t function_room;
	bool chosen[AMOUNT_COUNT];
	uint64_t *amounts[AMOUNT_COUNT]; /* of the process being written */
};

static uint32_t string_number(struct pprof *pprof, struct string_view text)
{
	const uint32_t number = string_table_intern(pprof->strings, text.bytes, text.length);

	if (number >= pprof->string_count)
		pprof->string_count = number + 1;
	return number;
}

static uint32_t word_number(struct pprof *pprof, const char *word)
{
	return string_number(pprof, (struct string_view){ word, (uint32_t)strlen(word) });
}

/* ---- the types of values ---- */

static void set_value_type(struct pprof *pprof, enum tree_amount amount)
{
	protobuf_clear(&pprof->message);
	protobuf_number(&pprof->message, 1, word_number(pprof, tree_amounts[amount].key));
	protobuf_number(&pprof->message, 2, word_number(pprof, tree_amounts[amount].unit));
}

/* Chooses the amounts that some process has, and writes their types. */
static void put_value_types(struct pprof *pprof, const struct frame_amounts *requested,
	const struct processes *processes)
{
	for (int amount = 0; amount < AMOUNT_COUNT; amount++) {
		uint64_t sum = 0;

		for (size_t i = 0; requested->chosen[amount] && i < processes->shown && !sum; i++)
			free(tree_amounts_of(
				processes->all[i].profile, (enum tree_amount)amount, &sum));
		pprof->chosen[amount] = sum > 0;
		if (!sum)
			continue;
		set_value_type(pprof, (enum tree_amount)amount);
		protobuf_write(pprof->out, PROFILE_SAMPLE_TYPE, &pprof->message);
	}
}

/* ---- samples ---- */

static void write_number(struct pprof *pprof, unsigned field, uint64_t value)
{
	protobuf_clear(&pprof->message);
	protobuf_number(&pprof->message, field, value);
	output_bytes(pprof->out, pprof->message.bytes.text, pprof->message.bytes.used);
}

/* Writes the function and the location of a name once. */
static uint32_t location_of(struct pprof *pprof, struct string_view name)
{
	const uint32_t number = string_number(pprof, name);

	array_grow_zeroed(&pprof->is_function, &pprof->function_room, (size_t)number + 1,
		sizeof *pprof->is_function);
	if (pprof->is_function[number])
		return number;
	pprof->is_function[number] = true;
	protobuf_clear(&pprof->message);
	protobuf_number(&pprof->message, 1, number);
	protobuf_number(&pprof->message, 2, number);
	protobuf_number(&pprof->message, 3, number);
	protobuf_write(pprof->out, PROFILE_FUNCTION, &pprof->message);
	protobuf_clear(&pprof->inner);
	protobuf_number(&pprof->inner, 1, number);
	protobuf_clear(&pprof->message);
	protobuf_number(&pprof->message, 1, number);
	protobuf_message(&pprof->message, 4, &pprof->inner);
	protobuf_write(pprof->out, PROFILE_LOCATION, &pprof->message);
	return number;
}

/* Sets `packed` to the locations of a path, the innermost first. */
static void pack_locations(struct pprof *pprof, const struct frame_path *path, bool names_process)
{
	const char *process = process_name(path->process);

	protobuf_clear(&pprof->packed);
	for (size_t i = path->count; i--;)
		protobuf_packed(&pprof->packed,
			location_of(pprof, frame_name(path->process, path->nodes[i])));
	if (!path->count)
		protobuf_packed(&pprof->packed, location_of(pprof, frame_name(path->process, 0)));
	if (names_process)
		protobuf_packed(&pprof->packed,
			location_of(
				pprof, (struct string_view){ process, (uint32_t)strlen(process) }));
}

static void put_sample(
	struct pprof *pprof, const struct frame_path *path, uint32_t node, bool names_process)
{
	struct protobuf sample = { { NULL, 0, 0 } };

	pack_locations(pprof, path, names_process);
	protobuf_message(&sample, 1, &pprof->packed);
	protobuf_clear(&pprof->packed);
	for (int amount = 0; amount < AMOUNT_COUNT; amount++)
		if (pprof->chosen[amount])
			protobuf_packed(&pprof->packed, pprof->amounts[amount][node]);
	protobuf_message(&sample, 2, &pprof->packed);
	protobuf_write(pprof->out, PROFILE_SAMPLE, &sample);
	protobuf_free(&sample);
}

static bool has_amount(const struct pprof *pprof, uint32_t node)
{
	for (int amount = 0; amount < AMOUNT_COUNT; amount++)
		if (pprof->chosen[amount] && pprof->amounts[amount][node])
			return true;
	return false;
}

static void put_process(struct pprof *pprof, const struct process *process, bool names_process)
{
	struct frame_path path = { .count = 0 };
	uint64_t sum;

	for (int amount = 0; amount < AMOUNT_COUNT; amount++)
		if (pprof->chosen[amount])
			pprof->amounts[amount] = tree_amounts_of(
				process->profile, (enum tree_amount)amount, &sum);
	for (uint32_t node = 0; node < process->profile->tree->count; node++) {
		if (!has_amount(pprof, node) || pprof->out->error)
			continue;
		frame_path_set(&path, process, node);
		put_sample(pprof, &path, node, names_process);
	}
	for (int amount = 0; amount < AMOUNT_COUNT; amount++) {
		free(pprof->amounts[amount]);
		pprof->amounts[amount] = NULL;
	}
	frame_path_free(&path);
}

/* ---- the rest ---- */

static void put_times(
	struct pprof *pprof, const struct options *options, const struct process *process)
{
	const enum tree_amount amount = frame_amount_of(options, process);

	write_number(pprof, PROFILE_TIME_NS, process->start_unix_ns);
	write_number(pprof, PROFILE_DURATION_NS, process->wall_ns);
	set_value_type(pprof, amount);
	protobuf_write(pprof->out, PROFILE_PERIOD_TYPE, &pprof->message);
	write_number(pprof, PROFILE_PERIOD, 1);
	write_number(
		pprof, PROFILE_DEFAULT_SAMPLE_TYPE, word_number(pprof, tree_amounts[amount].key));
}

static void put_strings(struct pprof *pprof)
{
	for (uint32_t i = 0; i < pprof->string_count; i++) {
		protobuf_clear(&pprof->message);
		protobuf_text(&pprof->message, PROFILE_STRING, string_table_get(pprof->strings, i));
		output_bytes(pprof->out, pprof->message.bytes.text, pprof->message.bytes.used);
	}
}

void export_pprof(const struct options *options, struct processes *processes, struct output *out)
{
	const struct frame_amounts requested = frame_amounts_of(options);
	struct pprof pprof = { .out = out, .strings = string_table_new(), .string_count = 1 };

	put_value_types(&pprof, &requested, processes);
	for (size_t i = 0; i < processes->shown; i++)
		put_process(&pprof, &processes->all[i], processes->shown > 1);
	put_times(&pprof, options, &processes->all[0]);
	put_strings(&pprof);
	protobuf_free(&pprof.message);
	protobuf_free(&pprof.inner);
	protobuf_free(&pprof.packed);
	free(pprof.is_function);
	string_table_free(pprof.strings);
}
