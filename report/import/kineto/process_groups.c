/* SPDX-License-Identifier: MIT
 * Finds the process group of each CUDA stream of NCCL. The file may name it in three places, of
 * which the first is used:
 *
 *	the kernels		arguments, written since about PyTorch 2.3
 *	record_param_comms	the operator that launched the kernels, by their External id
 *	pg_config		all groups of the process. Used where only one of them has several
 *				ranks, and only one stream has kernels of NCCL
 *
 * The kernels' list of ranks ends with `...` behind 30 ranks. pg_config then has the whole list.
 */
#include "report/base/alloc.h"
#include "report/base/compare.h"
#include "report/base/search.h"
#include "report/base/text_builder.h"
#include "report/import/kineto/kineto_reader.h"
#include <stdio.h>
#include <stdlib.h>

#define RANKS_BYTES_MAX 8000u /* of a list of ranks; a longer one ends with `...` */

/* Returns the text of an argument; 0: it is absent, empty or too long. */
static uint32_t text_of(struct kineto_reader *reader, const struct json_text *value)
{
	return value->form && value->form != JSON_NULL && value->length <= RANKS_BYTES_MAX
		       ? kineto_intern(reader, value)
		       : 0;
}

/* Returns the row of a CUDA stream, which is added if needed. Valid until the next call. */
static struct kineto_stream *stream_row(
	struct kineto_reader *reader, uint32_t device, uint32_t stream)
{
	const uint64_t hash = hash_u64((uint64_t)device << 32 | stream);
	struct hash_slot *slot;

	hash_index_reserve(&reader->stream_index);
	for (slot = hash_index_first(&reader->stream_index, hash); slot->number;
		slot = hash_index_next(&reader->stream_index, slot)) {
		struct kineto_stream *known = &reader->streams[slot->number - 1];

		if (known->device == device && known->stream == stream)
			return known;
	}
	*ARRAY_ADD(reader->streams, reader->stream_room, reader->stream_count) =
		(struct kineto_stream){ .device = device, .stream = stream, .sequence = INT64_MAX };
	hash_index_add(&reader->stream_index, slot, hash, (uint32_t)reader->stream_count);
	return &reader->streams[reader->stream_count - 1];
}

static void set_group(struct kineto_stream *row, uint32_t name, uint32_t ranks)
{
	if (!row->name && !row->ranks) {
		row->name = name;
		row->ranks = ranks;
	}
	row->several |= row->name != name || row->ranks != ranks;
}

void kineto_add_kernel_group(struct kineto_reader *reader, uint32_t device, uint32_t stream)
{
	const struct json_text *values = reader->event.args.values;
	struct kineto_stream *row;
	int64_t number;

	row = stream_row(reader, device, stream);
	set_group(row, text_of(reader, &values[KINETO_GROUP]),
		text_of(reader, &values[KINETO_GROUP_RANKS]));
	reader->kernels_have_groups = true;
	if (json_signed(&values[KINETO_GROUP_SEQUENCE], &number) && number >= 0 &&
		number < row->sequence)
		row->sequence = number;
}

void kineto_add_operator_group(struct kineto_reader *reader)
{
	const struct json_text *values = reader->event.args.values;
	const uint64_t external = kineto_external_id(&reader->event.args);
	const uint32_t name = text_of(reader, &values[KINETO_GROUP]);

	if (!external || !name || reader->kernels_have_groups)
		return;
	*ARRAY_ADD(reader->launchers, reader->launcher_room,
		reader->launcher_count) = (struct kineto_launcher){ .external = external,
		.name = name,
		.ranks = text_of(reader, &values[KINETO_GROUP_RANKS]) };
}

/* ---- pg_config ---- */

/* Adds a rank to a list. Returns false if the list is long enough. */
static bool add_rank(struct text_builder *list, uint64_t rank)
{
	if (list->used > RANKS_BYTES_MAX) {
		text_add(list, ", ...");
		return false;
	}
	text_add(list, "%s%llu", list->used > 1 ? ", " : "", (unsigned long long)rank);
	return true;
}

/* Returns the list in the form that kernels have it: `[0, 1]`. An empty one means all `size`
 * ranks of the job, if `all`. Returns 0 for a list without ranks or with something else. */
static uint32_t ranks_text(
	struct kineto_reader *reader, const struct json_text *ranks, uint64_t size, bool all)
{
	struct json_scanner scan = { .at = ranks->bytes, .end = ranks->bytes + ranks->length };
	struct text_builder list = { .text = NULL };
	struct json_text value;
	uint64_t rank;
	uint32_t text;
	bool good = true;

	if (ranks->form != JSON_ARRAY)
		return text_of(reader, ranks);
	text_add(&list, "[");
	for (bool more = json_open(&scan, '['); more; more = json_next(&scan, ']')) {
		good = json_value(&scan, &value) && json_unsigned(&value, &rank);
		all = false;
		if (!good || !add_rank(&list, rank))
			break;
	}
	for (rank = 0; all && rank < size; rank++)
		if (!add_rank(&list, rank))
			break;
	text_add(&list, "]");
	text = good && list.used > 2
		       ? string_table_intern(reader->imported->texts, list.text, list.used)
		       : 0;
	free(list.text);
	return text;
}

/* `world`: ranks of the job; 0: not known. */
static void read_group(struct kineto_reader *reader, struct json_text object, uint64_t world)
{
	struct json_scanner scan = { .at = object.bytes, .end = object.bytes + object.length };
	struct json_text key, value, ranks = { .form = JSON_NONE };
	struct kineto_group group = { .name = 0 };

	for (bool more = json_open(&scan, '{'); more; more = json_next(&scan, '}')) {
		if (!json_key(&scan, &key) || !json_value(&scan, &value))
			return;
		if (json_is(&key, "pg_name"))
			group.name = text_of(reader, &value);
		else if (json_is(&key, "pg_size") || json_is(&key, "group_size"))
			json_unsigned(&value, &group.size);
		else if (json_is(&key, "backend_config"))
			group.is_nccl = memmem(value.bytes, value.length, "nccl", 4);
		else if (json_is(&key, "ranks"))
			ranks = value;
	}
	if (scan.problem || !group.name)
		return;
	group.ranks = ranks_text(reader, &ranks, group.size, group.size == world);
	*ARRAY_ADD(reader->groups, reader->group_room, reader->group_count) = group;
}

void kineto_read_groups(struct kineto_reader *reader, const struct json_text *array, uint64_t world)
{
	struct json_scanner scan = { .at = array->bytes, .end = array->bytes + array->length };
	struct json_text value;

	for (bool more = array->form == JSON_ARRAY && json_open(&scan, '['); more;
		more = json_next(&scan, ']')) {
		if (!json_value(&scan, &value))
			return;
		if (value.form == JSON_OBJECT)
			read_group(reader, value, world);
	}
}

/* ---- after the last event ---- */

COMPARE_BY(by_external, struct kineto_launcher, external)
COMPARE_BY(by_name, struct kineto_group, name)
DEFINE_COUNT_WHILE(launchers_before, struct kineto_launcher, item->external < limit)
DEFINE_COUNT_WHILE(groups_before, struct kineto_group, item->name < limit)

static bool text_has(const struct kineto_reader *reader, uint32_t text, const char *part)
{
	const struct string_view view = string_table_get(reader->imported->texts, text);

	return memmem(view.bytes, view.length, part, strlen(part));
}

/* By text of a kernel's name: 1: not of NCCL or RCCL, 2: it is; 0: not known yet. */
struct nccl_names {
	uint8_t *known;
	size_t room;
};

static bool is_nccl_kernel(const struct kineto_reader *reader, const struct imported_gpu *gpu,
	struct nccl_names *names)
{
	if (gpu->kind != IMPORTED_KERNEL)
		return false;
	ARRAY_GROW(names->known, names->room, (size_t)gpu->name + 1);
	if (!names->known[gpu->name])
		names->known[gpu->name] = text_has(reader, gpu->name, "nccl") ||
							  text_has(reader, gpu->name, "rccl")
						  ? 2
						  : 1;
	return names->known[gpu->name] == 2;
}

static void name_by_launcher(
	struct kineto_reader *reader, const struct imported_gpu *gpu, struct kineto_stream *row)
{
	const size_t at = launchers_before(
		reader->launchers, reader->launcher_count, gpu->external);
	const struct kineto_launcher *found = &reader->launchers[at];

	if (gpu->external && at < reader->launcher_count && found->external == gpu->external)
		set_group(row, found->name, found->ranks);
}

/* Finds the streams of NCCL and, where the kernels have no group, that of their operators. */
static void find_streams(struct kineto_reader *reader)
{
	const struct event_rows *imported = reader->imported;
	struct nccl_names names = { .room = 0 };

	if (reader->launcher_count)
		qsort(reader->launchers, reader->launcher_count, sizeof *reader->launchers,
			by_external);
	for (size_t i = 0; i < imported->gpu_count; i++) {
		const struct imported_gpu *gpu = &imported->gpus[i];
		struct kineto_stream *row;

		if (!is_nccl_kernel(reader, gpu, &names))
			continue;
		row = stream_row(reader, gpu->device, gpu->stream);
		row->is_nccl = true;
		if (!reader->kernels_have_groups)
			name_by_launcher(reader, gpu, row);
	}
	free(names.known);
}

/* Returns the only group of NCCL with several ranks, or NULL. */
static const struct kineto_group *only_group(const struct kineto_reader *reader)
{
	const struct kineto_group *only = NULL;

	for (size_t i = 0; i < reader->group_count; i++) {
		if (reader->groups[i].size < 2 || !reader->groups[i].is_nccl)
			continue;
		if (only)
			return NULL;
		only = &reader->groups[i];
	}
	return only;
}

/* Completes the groups of streams from pg_config. */
static void use_groups(struct kineto_reader *reader, size_t nccl_streams)
{
	const struct kineto_group *only;

	if (reader->group_count)
		qsort(reader->groups, reader->group_count, sizeof *reader->groups, by_name);
	only = nccl_streams == 1 ? only_group(reader) : NULL;
	for (size_t i = 0; i < reader->stream_count; i++) {
		struct kineto_stream *row = &reader->streams[i];
		size_t at;

		if (row->is_nccl && !row->name && only)
			set_group(row, only->name, only->ranks);
		at = groups_before(reader->groups, reader->group_count, row->name);
		if (row->name && at < reader->group_count && reader->groups[at].name == row->name &&
			reader->groups[at].ranks &&
			(!row->ranks || text_has(reader, row->ranks, "...") ||
				text_has(reader, row->ranks, "[]")))
			row->ranks = reader->groups[at].ranks;
	}
}

static void write_stream(struct kineto_reader *reader, const struct kineto_stream *row)
{
	const struct string_view name = string_table_get(reader->imported->texts, row->name),
				 ranks = string_table_get(reader->imported->texts, row->ranks);
	struct text_builder group = { .text = NULL };
	struct json_text value = { .form = JSON_STRING };
	char key[64], number[32];

	if (row->name && !row->several) {
		text_add(&group, "%.*s %.*s", (int)name.length, name.bytes, (int)ranks.length,
			ranks.bytes);
		snprintf(key, sizeof key, "stream.%u.%u.group", row->device, row->stream);
		value.bytes = group.text;
		value.length = group.used;
		kineto_add_metadata(reader, key, &value);
		free(group.text);
	}
	if (row->sequence == INT64_MAX)
		return;
	snprintf(key, sizeof key, "stream.%u.%u.sequence", row->device, row->stream);
	value.bytes = number;
	value.length = (size_t)snprintf(number, sizeof number, "%lld", (long long)row->sequence);
	kineto_add_metadata(reader, key, &value);
}

/* Says of how many streams of NCCL the process group is known. */
static void write_coverage(struct kineto_reader *reader, size_t nccl_streams)
{
	size_t several = 0, unnamed = 0, without_ranks = 0;
	struct text_builder line = { .text = NULL };

	for (size_t i = 0; i < reader->stream_count; i++) {
		const struct kineto_stream *row = &reader->streams[i];

		several += row->is_nccl && row->several;
		unnamed += row->is_nccl && !row->name && !row->several;
		without_ranks += row->is_nccl && row->name && !row->several && !row->ranks;
	}
	text_add(&line, "%zu of %zu streams with kernels of NCCL have one",
		nccl_streams - several - unnamed, nccl_streams);
	if (without_ranks)
		text_add(&line, "; of %zu the file does not list the ranks", without_ranks);
	if (several)
		text_add(&line, "; %zu have several, and are not named", several);
	if (unnamed)
		text_add(&line,
			"; of %zu the file names none (older PyTorch, or launches by CUDA graphs)",
			unnamed);
	kineto_add_metadata(reader, "import.process_groups",
		&(struct json_text){
			.bytes = line.text, .length = line.used, .form = JSON_STRING });
	free(line.text);
}

void kineto_finish_groups(struct kineto_reader *reader)
{
	size_t nccl_streams = 0;

	find_streams(reader);
	for (size_t i = 0; i < reader->stream_count; i++)
		nccl_streams += reader->streams[i].is_nccl;
	use_groups(reader, nccl_streams);
	for (size_t i = 0; i < reader->stream_count; i++)
		write_stream(reader, &reader->streams[i]);
	if (nccl_streams)
		write_coverage(reader, nccl_streams);
	hash_index_free(&reader->stream_index);
	free(reader->streams);
	free(reader->groups);
	free(reader->launchers);
}
