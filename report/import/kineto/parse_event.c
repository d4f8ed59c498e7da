/* SPDX-License-Identifier: MIT
 * Reads one event of the file: its class, and the keys and arguments that are used.
 */
#include "report/import/kineto/kineto_reader.h"

#define CATEGORY(text, class)                \
	{                                    \
		text, sizeof text - 1, class \
	}

static const struct {
	const char *category;
	size_t length;
	enum kineto_class class;
} classes[] = {
	CATEGORY("cpu_op", KINETO_IS_OPERATOR),
	CATEGORY("kernel", KINETO_IS_KERNEL),
	CATEGORY("cuda_runtime", KINETO_IS_CALL),
	CATEGORY("python_function", KINETO_IS_PYTHON),
	CATEGORY("user_annotation", KINETO_IS_ANNOTATION),
	CATEGORY("cuda_driver", KINETO_IS_CALL),
	CATEGORY("gpu_memcpy", KINETO_IS_COPY),
	CATEGORY("gpu_memset", KINETO_IS_MEMSET),
	CATEGORY("cuda_sync", KINETO_IS_SYNC),
	CATEGORY("overhead", KINETO_IS_OVERHEAD),
	CATEGORY("xpu_runtime", KINETO_IS_CALL),
	CATEGORY("xpu_driver", KINETO_IS_CALL),
	CATEGORY("privateuse1_runtime", KINETO_IS_CALL),
	CATEGORY("privateuse1_driver", KINETO_IS_CALL),
	CATEGORY("Operator", KINETO_IS_OPERATOR),
	CATEGORY("Runtime", KINETO_IS_CALL),
	CATEGORY("Kernel", KINETO_IS_KERNEL),
	CATEGORY("Memcpy", KINETO_IS_COPY),
	CATEGORY("Memset", KINETO_IS_MEMSET),
};

static enum kineto_class class_of_category(const struct json_text *category)
{
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (category->length == classes[i].length &&
			!memcmp(category->bytes, classes[i].category, classes[i].length))
			return classes[i].class;
	return KINETO_OTHER;
}

static enum kineto_class event_class(const struct kineto_event *event)
{
	const char phase = event->phase.length == 1 ? event->phase.bytes[0] : 0;

	switch (phase) {
	case 'X':
	case 'B':
		return class_of_category(&event->category);
	case 'E':
		return KINETO_IS_END;
	case 'i':
	case 'I':
		return json_is(&event->name, "[memory]") ? KINETO_IS_MEMORY : KINETO_OTHER;
	case 's':
	case 'f':
		return json_is(&event->category, "fwdbwd") ? KINETO_IS_FLOW : KINETO_OTHER;
	case 'M':
		return KINETO_IS_META;
	default:
		return KINETO_OTHER;
	}
}

static bool wants_args(enum kineto_class class)
{
	return class != KINETO_OTHER && class != KINETO_IS_PYTHON && class != KINETO_IS_OVERHEAD &&
	       class != KINETO_IS_FLOW && class != KINETO_IS_END;
}

/* The keys of an event that are used. */
static const struct {
	const char *key;
	size_t offset; /* of its value in struct kineto_event */
} members[] = {
	{ "ph", offsetof(struct kineto_event, phase) },
	{ "cat", offsetof(struct kineto_event, category) },
	{ "name", offsetof(struct kineto_event, name) },
	{ "pid", offsetof(struct kineto_event, pid) },
	{ "tid", offsetof(struct kineto_event, tid) },
	{ "ts", offsetof(struct kineto_event, time) },
	{ "dur", offsetof(struct kineto_event, duration) },
	{ "id", offsetof(struct kineto_event, id) },
};

#define MEMBERS (sizeof members / sizeof *members)
#define ARGUMENTS_KEY MEMBERS
#define UNUSED_KEY (MEMBERS + 1)

static unsigned member_meaning(const struct json_text *key)
{
	for (unsigned member = 0; member < MEMBERS; member++)
		if (json_is(key, members[member].key))
			return member;
	return json_is(key, "args") ? ARGUMENTS_KEY : UNUSED_KEY;
}

static bool read_args_of(struct kineto_reader *reader, struct json_scanner *scan)
{
	struct json_keys *keys = &reader->args[reader->event.class];

	keys->meaning = kineto_arg_of_key;
	return kineto_args_read(scan, keys, &reader->event.args);
}

/* Arguments usually come last, when the event's class is known. Otherwise they are skipped and
 * read a second time, from `later`. */
static bool read_args(struct kineto_reader *reader, struct json_text *later)
{
	struct kineto_event *event = &reader->event;
	struct json_scanner *scan = &reader->window.scan;

	if (!event->phase.form || !event->category.form || !event->name.form)
		return json_value(scan, later);
	event->class = event_class(event);
	if (!wants_args(event->class))
		return json_value(scan, later);
	event->has_args = true;
	return read_args_of(reader, scan);
}

static inline bool read_event_member(
	struct kineto_reader *reader, unsigned member, struct json_text *later)
{
	struct json_scanner *scan = &reader->window.scan;
	struct json_text unasked;

	if (member < MEMBERS)
		return json_value(scan, (struct json_text *)(void *)((char *)&reader->event +
								     members[member].offset));
	return member == ARGUMENTS_KEY ? read_args(reader, later) : json_value(scan, &unasked);
}

bool kineto_event_read(struct kineto_reader *reader)
{
	struct kineto_event *event = &reader->event;
	struct json_scanner *scan = &reader->window.scan;
	struct json_text value, later = { .form = JSON_NONE };
	unsigned member;

	memset(event, 0, offsetof(struct kineto_event, args));
	if (json_peek(scan) != '{')
		return !scan->problem && json_value(scan, &value);
	reader->keys.meaning = member_meaning;
	reader->keys.last = 0;
	for (bool more = json_open(scan, '{'); more; more = json_next(scan, '}'))
		if (!json_keys_next(scan, &reader->keys, &member) ||
			!read_event_member(reader, member, &later))
			return false;
	if (scan->problem)
		return false;
	if (event->has_args)
		return true;
	event->class = event_class(event);
	if (!wants_args(event->class))
		return true;
	kineto_args_clear(&event->args);
	if (later.form) {
		struct json_scanner again = { .at = later.bytes,
			.end = later.bytes + later.length };

		return read_args_of(reader, &again);
	}
	return true;
}
