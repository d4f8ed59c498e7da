/* SPDX-License-Identifier: MIT
 * Builds one record of the view `dump` as keys and values, and writes it as JSON, CSV or text. One
 * list of keys gives the keys of JSON, the header of CSV and the words of text.
 */
#ifndef PPERF_REPORT_VIEWS_DUMP_LINE_H
#define PPERF_REPORT_VIEWS_DUMP_LINE_H

#include "report/text/output.h"
#include "report/trace/trace_reader.h"

/* The keys, in the order in which they are written. */
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
	X(parent)              \
	X(node_kind)           \
	X(api)                 \
	X(correlation)         \
	X(bytes)               \
	X(allocated)           \
	X(reserved)            \
	X(address)             \
	X(handle)              \
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
	X(peak_memory_bytes)   \
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
	X(realtime_ns)         \
	X(free_bytes)          \
	X(total_bytes)         \
	X(process_bytes)       \
	X(module)              \
	X(communicator)        \
	X(communicator_name)   \
	X(ranks)               \
	X(rank)                \
	X(key)                 \
	X(sequence)            \
	X(data_type)           \
	X(peer)                \
	X(calls)               \
	X(of_tid)              \
	X(state)               \
	X(cpu_ns)

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
	VALUE_WIDE,  /* signed; a string in JSON, because readers of JSON may keep only 53 bits */
	VALUE_ID,    /* "0x1f" */
	VALUE_COLOR, /* "0xFF00FF00" */
	VALUE_DOUBLE,
	VALUE_TEXT,
	VALUE_TRIPLE,
	/* Python frames. JSON: an array of {"function", "file", "line"}. Text and CSV: `FILE:LINE
	 * FUNCTION < ...`. */
	VALUE_FRAMES,
};

struct dump_frames {
	struct trace_reader *reader;
	const struct trace_python_frame *frames; /* innermost first */
	uint32_t count;
};

struct dump_value {
	uint8_t type; /* enum dump_value_type */
	union {
		uint64_t number;
		int64_t whole;
		double real;
		struct trace_text text;
		uint32_t triple[3];
		struct dump_frames frames;
	} of;
};

/* One record. line_* fill it in any order; it is written in the order of the keys. */
struct dump_line {
	bool present[DUMP_KEY_COUNT]; /* by key: whether it has a value */
	struct dump_value values[DUMP_KEY_COUNT];
	char flags[64];
	bool ascii; /* The text format writes ASCII only. line_begin() does not change it. */
};

/* Removes all values, so that the next record can be filled in. */
void line_begin(struct dump_line *line);
/* Each of these sets the value of `key`, as the type of the same name in enum dump_value_type. */
void line_null(struct dump_line *line, enum dump_key key);
void line_unsigned(struct dump_line *line, enum dump_key key, uint64_t value);
void line_signed(struct dump_line *line, enum dump_key key, int64_t value);
void line_wide(struct dump_line *line, enum dump_key key, int64_t value);
void line_id(struct dump_line *line, enum dump_key key, uint64_t value);
void line_color(struct dump_line *line, enum dump_key key, uint32_t argb);
void line_double(struct dump_line *line, enum dump_key key, double value);
/* Appends `word` to the value of the key `flags`, if `set` is true. */
void line_flag(struct dump_line *line, const char *word, bool set);
/* Sets the value to null if `text` is not known. The bytes must outlive the line. */
void line_text(struct dump_line *line, enum dump_key key, struct trace_text text);
/* `string` must outlive the line. */
void line_string(struct dump_line *line, enum dump_key key, const char *string);
void line_triple(struct dump_line *line, enum dump_key key, const uint32_t triple[3]);
void line_frames(struct dump_line *line, enum dump_key key, struct dump_frames frames);

void line_write_json(struct output *out, const struct dump_line *line);
void line_write_csv(struct output *out, const struct dump_line *line);
void line_write_text(struct output *out, const struct dump_line *line);
/* Writes the header line of CSV. */
void line_write_header(struct output *out);

#endif
