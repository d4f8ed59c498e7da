/* SPDX-License-Identifier: MIT
 * Implements the functions of trace_reader.h that read the dictionary.
 */
#include "report/trace/trace_reader_state.h"
#include "report/base/search.h"

#include <stdio.h>
#include <string.h>

static const struct trace_text no_text = { "", 0, false };

struct trace_text reader_name(struct trace_reader *reader, uint32_t name)
{
	const struct trace_dictionary *dictionary = &reader->state->dictionary;

	if (name == 0)
		return no_text;
	if (name >= dictionary->name_end || !dictionary->names[name].bytes) {
		__atomic_fetch_add(&reader->state->unknown_names, 1, __ATOMIC_RELAXED);
		return no_text;
	}
	return (struct trace_text){ dictionary->names[name].bytes, dictionary->names[name].length,
		true };
}

uint32_t reader_node_count(const struct trace_reader *reader)
{
	return reader->state->dictionary.node_end + 1;
}

const struct trace_node_info *reader_node(const struct trace_reader *reader, uint32_t node)
{
	const struct trace_dictionary *dictionary = &reader->state->dictionary;

	return &dictionary->nodes[node < dictionary->node_end ? node : dictionary->node_end];
}

struct trace_text reader_event_text(struct trace_reader *reader, const struct trace_event *event)
{
	const struct trace_range *range = event->record;

	if (event->record && (event->kind == TRACE_PUSH || event->kind == TRACE_START ||
				     event->kind == TRACE_MARK)) {
		if (range->head.flags & TRACE_HAS_TEXT)
			return (struct trace_text){ (const char *)(range + 1), range->text_bytes,
				true };
		if (range->name || event->kind != TRACE_PUSH)
			return reader_name(reader, range->name);
	}
	return reader_name(reader, reader_node(reader, event->node)->name);
}

uint32_t reader_dictionary_count(const struct trace_reader *reader, enum trace_kind kind)
{
	return kind < TRACE_KINDS ? reader->state->dictionary.lists[kind].count : 0;
}

const void *reader_dictionary(
	const struct trace_reader *reader, enum trace_kind kind, uint32_t index)
{
	return index < reader_dictionary_count(reader, kind)
		       ? reader->state->dictionary.lists[kind].records[index]
		       : NULL;
}

static bool redacting;

void reader_redact(void)
{
	redacting = true;
}

static bool is_listed_key(struct trace_text key, const char *const *list)
{
	for (; *list; list++)
		if (key.length == strlen(*list) && !memcmp(key.bytes, *list, key.length))
			return true;
	return false;
}

static bool begins_with_listed(struct trace_text key, const char *const *list)
{
	for (; *list; list++)
		if (key.length > strlen(*list) && !memcmp(key.bytes, *list, strlen(*list)))
			return true;
	return false;
}

static const char *const hidden_keys[] = { "directory", "host", NULL };
static const char *const path_keys[] = { "exe", "cupti.library", NULL };
static const char *const command_keys[] = { "command", NULL };
static const char *const key_beginnings[] = { "env.", "warning.", "import.process", "process.",
	NULL }; /* hidden if the value has a path in it */

/* Hides what may be private. Of a command only the first word is kept, of a path only the last
 * part. */
static struct trace_text redact_value(struct trace_text key, struct trace_text value)
{
	static const char mark[] = "[redacted]";
	const struct trace_text redacted = { mark, sizeof mark - 1, true };
	const char *end;

	if (is_listed_key(key, command_keys) && (end = memchr(value.bytes, ' ', value.length)))
		value.length = (uint32_t)(end - value.bytes);
	if (is_listed_key(key, path_keys) || is_listed_key(key, command_keys)) {
		if ((end = memrchr(value.bytes, '/', value.length)))
			value = (struct trace_text){ end + 1,
				value.length - (uint32_t)(end + 1 - value.bytes), true };
		return value;
	}
	if (is_listed_key(key, hidden_keys))
		return redacted;
	if (begins_with_listed(key, key_beginnings) && memchr(value.bytes, '/', value.length))
		return redacted;
	return value;
}

uint32_t reader_meta_count(const struct trace_reader *reader)
{
	return reader_dictionary_count(reader, TRACE_META);
}

void reader_meta_at(const struct trace_reader *reader, uint32_t index, struct trace_text *key,
	struct trace_text *value)
{
	const struct trace_meta *meta = reader_dictionary(reader, TRACE_META, index);

	*key = *value = no_text;
	if (!meta)
		return;
	*key = (struct trace_text){ (const char *)(meta + 1), meta->key_bytes, true };
	*value = (struct trace_text){ key->bytes + meta->key_bytes, meta->value_bytes, true };
	if (redacting)
		*value = redact_value(*key, *value);
}

struct trace_text reader_meta(const struct trace_reader *reader, const char *wanted)
{
	size_t length = strlen(wanted);

	for (uint32_t i = 0; i < reader_meta_count(reader); i++) {
		struct trace_text key, value;

		reader_meta_at(reader, i, &key, &value);
		if (key.length == length && !memcmp(key.bytes, wanted, length))
			return value;
	}
	return no_text;
}

struct trace_text reader_meta_of(
	const struct trace_reader *reader, const char *group, const char *name)
{
	char key[64];

	snprintf(key, sizeof key, "%s.%s", group, name);
	return reader_meta(reader, key);
}

bool reader_meta_number(const struct trace_reader *reader, const char *key, uint64_t *number)
{
	const struct trace_text text = reader_meta(reader, key);
	uint64_t value = 0;

	for (uint32_t i = 0; i < text.length; i++) {
		if (text.bytes[i] < '0' || text.bytes[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(text.bytes[i] - '0');
		if (i == 18)
			return false;
	}
	*number = value;
	return text.length > 0;
}

const char *const trace_source_names[TRACE_SOURCES] = { "nvtx", "torch_ops", "torch_modules",
	"torch_compile", "torch_memory", "python_stacks", "cuda_symbols", "cupti", "roctracer",
	"cpu_samples" };

DEFINE_COUNT_WHILE(records_before, struct trace_head *const, dictionary_record_id(*item) < limit)

/* Returns whether the record with the id is at `at`, and is the first one with it. */
static bool is_first_record(const struct record_list *list, size_t at, uint32_t id)
{
	return at < list->count && dictionary_record_id(list->records[at]) == id &&
	       (!at || dictionary_record_id(list->records[at - 1]) != id);
}

static const void *find_record(const struct trace_reader *reader, enum trace_kind kind, uint32_t id)
{
	const struct record_list *list = &reader->state->dictionary.lists[kind];
	/* ids usually follow each other */
	size_t at = list->count ? id - (size_t)dictionary_record_id(list->records[0]) : 0;

	if (!is_first_record(list, at, id))
		at = records_before(list->records, list->count, id);
	return is_first_record(list, at, id) ? list->records[at] : NULL;
}

static const struct trace_mixed_stack *mixed_stack(const struct trace_reader *reader, uint32_t id)
{
	return find_record(reader, TRACE_MIXED_STACK, id);
}

const struct trace_stack *reader_stack(const struct trace_reader *reader, uint32_t stack)
{
	const struct trace_stack *own = find_record(reader, TRACE_STACK, stack);
	const struct trace_mixed_stack *mixed = own ? NULL : mixed_stack(reader, stack);

	return mixed ? find_record(reader, TRACE_STACK, mixed->native) : own;
}

uint32_t reader_python_stack_id(const struct trace_reader *reader, uint32_t stack)
{
	const struct trace_mixed_stack *mixed;

	if (find_record(reader, TRACE_PYTHON_STACK, stack))
		return stack;
	mixed = mixed_stack(reader, stack);
	return mixed && find_record(reader, TRACE_PYTHON_STACK, mixed->python) ? mixed->python : 0;
}

const struct trace_python_stack *reader_python_stack(
	const struct trace_reader *reader, uint32_t stack)
{
	return find_record(reader, TRACE_PYTHON_STACK, reader_python_stack_id(reader, stack));
}

const struct trace_source *reader_source(const struct trace_reader *reader, uint32_t node)
{
	return find_record(reader, TRACE_SOURCE, node);
}

const struct trace_counter *reader_counter(const struct trace_reader *reader, uint32_t counter)
{
	return find_record(reader, TRACE_COUNTER, counter);
}

bool reader_frame(const struct trace_reader *reader, uint32_t frame, struct trace_frame_info *info)
{
	const struct trace_python_node *python;
	const struct trace_frame *native = frame ? find_record(reader, TRACE_FRAME, frame) : NULL;

	if (native) {
		*info = (struct trace_frame_info){ .parent = native->parent,
			.address = native->address };
	} else {
		python = frame ? find_record(reader, TRACE_PYTHON_FRAME, frame) : NULL;
		if (!python)
			return false;
		*info = (struct trace_frame_info){
			.parent = python->parent, .is_python = true, .at = python->at
		};
	}
	if (info->parent >= frame)
		info->parent = 0; /* would be circular */
	return true;
}

uint32_t reader_frame_last(const struct trace_reader *reader)
{
	static const enum trace_kind kinds[] = { TRACE_FRAME, TRACE_PYTHON_FRAME };
	uint64_t frames = 0, last = 0;

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct record_list *list = &reader->state->dictionary.lists[kinds[i]];
		const uint32_t id = list->count
					    ? dictionary_record_id(list->records[list->count - 1])
					    : 0;

		frames += list->count;
		last = id > last ? id : last;
	}
	return (uint32_t)(last < frames * 64 ? last : frames * 64);
}

uint64_t reader_time(const struct trace_reader *reader, uint64_t stamp)
{
	return clock_ns(&reader->state->clock, stamp);
}
