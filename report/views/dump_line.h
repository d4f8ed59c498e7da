/* SPDX-License-Identifier: MIT
 * dump_line.h: one record as keys and values, and how such a line is written in each format. One list makes the
 * keys of JSON, the header of CSV and the words of text.
 */
#ifndef PPERF_REPORT_VIEWS_DUMP_LINE_H
#define PPERF_REPORT_VIEWS_DUMP_LINE_H

#include "report/text/output.h"
#include "report/trace/trace_reader.h"

/* In the order in which they are written. */
#define DUMP_KEYS(X)           \
	X(t_ns)                \
	X(pid)                 \
	X(tid)                 \
	X(kind)                \
	X(name)                \
	X(domain)              \
	X(category)            \
	X(color)               \
	X(payload)             \
	X(payload_type)        \
	X(depth)               \
	X(id)                  \
	X(node)                \
	X(api)                 \
	X(correlation)         \
	X(bytes)               \
	X(allocated)           \
	X(reserved)            \
	X(address)             \
	X(device)              \
	X(context)             \
	X(stream)              \
	X(grid)                \
	X(block)               \
	X(shared_bytes)        \
	X(static_shared_bytes) \
	X(registers)           \
	X(local_bytes)         \
	X(copy_kind)           \
	X(memory_kind)         \
	X(source_kind)         \
	X(target_kind)         \
	X(other_device)        \
	X(type)                \
	X(value)               \
	X(unit)                \
	X(counter)             \
	X(object)              \
	X(object_type)         \
	X(other)               \
	X(subtype)             \
	X(action)              \
	X(function)            \
	X(exec)                \
	X(exec_id)             \
	X(event)               \
	X(graph)               \
	X(graph_node)          \
	X(stack)               \
	X(python_stack)        \
	X(flags)               \
	X(result)              \
	X(duration_ns)         \
	X(begin_ns)            \
	X(last_ns)             \
	X(missing)             \
	X(events)              \
	X(reason)              \
	X(records)             \
	X(dropped)             \
	X(unread)              \
	X(stamp)               \
	X(monotonic_ns)        \
	X(realtime_ns)

enum dump_key {
#define X(name) DUMP_##name,
	DUMP_KEYS(X)
#undef X
		DUMP_KEY_COUNT
};

enum dump_value_type {
	VALUE_NULL,
	VALUE_UNSIGNED,
	VALUE_SIGNED,
	VALUE_WIDE,  /* signed, and a string in JSON, whose readers may have 53 bits only */
	VALUE_ID,    /* "0x1f" */
	VALUE_COLOR, /* "0xFF00FF00" */
	VALUE_DOUBLE,
	VALUE_TEXT,
	VALUE_TRIPLE,
	VALUE_FRAMES, /* of Python: [{"function":..,"file":..,"line":..},..], else `file:line function < ..` */
};

struct dump_frames {
	struct trace_reader *reader;
	const struct trace_python_frame *frames; /* innermost first */
	uint32_t count;
};

struct dump_value {
	uint8_t type; /* enum value_type */
	union {
		uint64_t number;
		int64_t whole;
		double real;
		struct trace_text text;
		uint32_t triple[3];
		struct dump_frames frames;
	} of;
};

/* Filled by line_* in any order; written in the order of the keys. */
struct dump_line {
	uint64_t present; /* a bit for each key */
	struct dump_value values[DUMP_KEY_COUNT];
	char flags[64];
	bool ascii; /* for text: no character beyond ASCII; stays as it is from line to line */
};
static_assert(DUMP_KEY_COUNT <= 64, "a bit for each key");

void line_begin(struct dump_line *line);
void line_null(struct dump_line *line, enum dump_key key);
void line_unsigned(struct dump_line *line, enum dump_key key, uint64_t value);
void line_signed(struct dump_line *line, enum dump_key key, int64_t value);
void line_wide(struct dump_line *line, enum dump_key key, int64_t value);
void line_id(struct dump_line *line, enum dump_key key, uint64_t value);
void line_color(struct dump_line *line, enum dump_key key, uint32_t argb);
void line_double(struct dump_line *line, enum dump_key key, double value);
/* Adds a word to `flags`, if it is set. */
void line_flag(struct dump_line *line, const char *word, bool set);
void line_text(
	struct dump_line *line, enum dump_key key, struct trace_text text); /* not known: null */
void line_string(
	struct dump_line *line, enum dump_key key, const char *string); /* must outlive the line */
void line_triple(struct dump_line *line, enum dump_key key, const uint32_t triple[3]);
void line_frames(struct dump_line *line, enum dump_key key, struct dump_frames frames);

void line_write_json(struct output *out, const struct dump_line *line);
void line_write_csv(struct output *out, const struct dump_line *line);
void line_write_text(struct output *out, const struct dump_line *line);
/* The first line of CSV. */
void line_write_header(struct output *out);

#endif
