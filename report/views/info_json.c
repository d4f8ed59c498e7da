/* SPDX-License-Identifier: MIT */
#include "report/views/info_json.h"

#include "report/text/json_writer.h"
#include "report/trace/record_check.h"

static void json_meta(struct json_writer *json, const struct info *info, const char *key)
{
	json_put_text(json, key, trace_text_or_null(reader_meta(info->reader, key)));
}

static void json_name(
	struct json_writer *json, const struct info *info, const char *key, uint32_t name)
{
	json_put_text(json, key, trace_text_or_null(reader_name(info->reader, name)));
}

/* Writes all META values, with their own keys. A key is a text that may need escapes. */
static void json_metas(struct json_writer *json, const struct info *info)
{
	json_put_begin(json, "meta", '{');
	for (uint32_t i = 0; i < reader_meta_count(info->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(info->reader, i, &key, &value);
		json_write_text(json, trace_text_or_null(key));
		output_char(json->out, ':');
		json->needs_comma = false;
		json_write_text(json, trace_text_or_null(value));
	}
	json_write_end(json, '}');
}

static void json_clock(struct json_writer *json, const struct info *info)
{
	bool tsc = reader_header(info->reader)->clock_kind == TRACE_CLOCK_TSC;

	json_put_begin(json, "clock", '{');
	json_put_string(json, "kind", tsc ? "tsc" : "monotonic");
	json_put_double(json, "ticks_per_second", reader_ticks_per_second(info->reader));
	json_put_unsigned(json, "steps", info->integrity.clock_steps);
	json_put_unsigned(json, "samples_refused", info->integrity.clock_samples_refused);
	json_write_end(json, '}');
}

static void json_build_id(struct json_writer *json, const uint8_t *id, size_t bytes)
{
	char text[64];

	for (size_t i = 0; i < bytes && i < 20; i++) {
		text[2 * i] = "0123456789abcdef"[id[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	text[bytes < 20 ? 2 * bytes : 40] = '\0';
	json_put_string(json, "build_id", text);
}

static void json_bytes_per_record(struct json_writer *json, const struct info *info)
{
	const struct trace_layout *layout = reader_layout(info->reader);
	const double bytes = (double)(layout->chunk_bytes + layout->slot_bytes);

	json_put_known_double(
		json, "bytes_per_record", bytes / (double)info->recorded, info->recorded);
}

static void json_file(struct json_writer *json, const struct info *info)
{
	const struct trace_header *header = reader_header(info->reader);
	const struct trace_layout *layout = reader_layout(info->reader);

	json_put_begin(json, "file", '{');
	json_put_unsigned(json, "bytes", layout->file_bytes);
	json_put_unsigned(json, "format", header->version);
	json_build_id(json, header->build_id, sizeof header->build_id);
	json_put_unsigned(json, "chunks", layout->chunks);
	json_put_unsigned(json, "chunk_bytes", layout->chunk_bytes);
	json_put_unsigned(json, "slots", layout->slots);
	json_put_unsigned(json, "slot_bytes", layout->slot_bytes);
	json_put_unsigned(json, "dictionary_blocks", layout->dictionary);
	json_put_unsigned(json, "dictionary_bytes", layout->dictionary_bytes);
	json_put_unsigned(json, "totals_blocks", layout->totals);
	json_put_unsigned(json, "totals_bytes", layout->totals_bytes);
	json_put_unsigned(json, "limit_bytes", header->limit_bytes);
	json_bytes_per_record(json, info);
	json_write_end(json, '}');
}

static void json_records(struct json_writer *json, const struct info *info)
{
	json_put_unsigned(json, "recorded", info->recorded);
	json_put_begin(json, "records", '{');
	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		if (info->records[kind] && event_kind_name(kind))
			json_put_unsigned(json, event_kind_name(kind), info->records[kind]);
	json_write_end(json, '}');
}

/* Writes the number of calls that were only counted. */
static void json_counted(struct json_writer *json, const struct info *info)
{
	uint32_t node_count;
	const uint64_t calls = reader_counted_calls(info->reader, &node_count);

	json_put_begin(json, "counted", '{');
	json_put_unsigned(json, "calls", calls);
	json_put_unsigned(json, "places", node_count);
	json_write_end(json, '}');
}

static void json_dictionary(struct json_writer *json, const struct info *info)
{
	static const struct {
		const char *key;
		enum trace_kind kind;
	} lists[] = { { "counters", TRACE_COUNTER }, { "modules", TRACE_MODULE },
		{ "stacks", TRACE_STACK }, { "python_stacks", TRACE_PYTHON_STACK },
		{ "sources", TRACE_SOURCE }, { "devices", TRACE_DEVICE },
		{ "contexts", TRACE_CONTEXT }, { "graph_nodes", TRACE_GRAPH_NODE },
		{ "graph_execs", TRACE_GRAPH_EXEC } };

	json_put_begin(json, "dictionary", '{');
	json_put_unsigned(json, "nodes", reader_node_count(info->reader) - 2u);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		json_put_unsigned(
			json, lists[i].key, reader_dictionary_count(info->reader, lists[i].kind));
	json_write_end(json, '}');
}

static void json_counters(struct json_writer *json, const struct info *info)
{
	const struct trace_counter *counter;

	json_put_begin(json, "counters", '[');
	for (uint32_t i = 0; (counter = reader_dictionary(info->reader, TRACE_COUNTER, i)); i++) {
		json_write_begin(json, '{');
		json_name(json, info, "name", counter->name);
		json_name(json, info, "domain", counter->domain);
		json_name(json, info, "unit", counter->unit);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void json_handover(struct json_writer *json, const struct handover_list *handovers)
{
	json_put_begin(json, "away", '[');
	for (size_t i = 0; handovers && i < handovers->count; i++) {
		const struct handover_span *span = &handovers->spans[HANDOVER_TRACE_TIME][i];

		json_write_begin(json, '{');
		json_put_unsigned(json, "begin_ns", span->begin_ns);
		if (span->end_ns != UINT64_MAX)
			json_put_unsigned(json, "end_ns", span->end_ns);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void json_flushes(struct json_writer *json, const struct info *info)
{
	json_put_begin(json, "flushes", '[');
	for (unsigned i = 0; i < INFO_PARTS; i++) {
		const struct info_flushes *flushes = &info->flushes[i];

		json_write_begin(json, '{');
		json_put_unsigned(json, "count", flushes->count);
		json_put_unsigned(json, "total_ns", flushes->total_ns);
		if (flushes->peak_memory_bytes)
			json_put_unsigned(json, "peak_memory_bytes", flushes->peak_memory_bytes);
		json_write_end(json, '}');
	}
	json_write_end(json, ']');
}

static void json_losses(struct json_writer *json, const struct info *info)
{
	const struct trace_integrity *all = &info->integrity;

	json_put_begin(json, "losses", '{');
#define X(name, text) json_put_unsigned(json, #name, all->lost[TRACE_LOST_##name]);
	TRACE_LOSSES(X)
#undef X
#define PUT(name) json_put_unsigned(json, #name, all->name)
	PUT(missing_chunks);
	PUT(torn_chunks);
	PUT(damaged_payloads);
	PUT(damaged_blocks);
	PUT(cut_blocks);
	PUT(cut_bytes);
	PUT(skipped_bytes);
	PUT(duplicate_chunks);
	PUT(unmatched_ends);
	PUT(unended);
	PUT(resumed);
	PUT(unknown_kinds);
	PUT(unknown_nodes);
	PUT(unknown_names);
	PUT(clock_violations);
#undef PUT
	json_write_end(json, '}');
}

void info_write_json(struct output *out, const struct info *info)
{
	const struct trace_header *header = reader_header(info->reader);
	struct json_writer writer = { .out = out }, *json = &writer;

	json_write_begin(json, '{');
	json_put_string(json, "kind", "process");
	json_put_string(json, "name", reader_path(info->reader));
	json_put_unsigned(json, "pid", header->pid);
	json_put_unsigned(json, "parent_pid", header->parent_pid);
	json_write_key(json, "run_id");
	json_write_id(json, header->run_id);
	json_meta(json, info, "exe");
	json_meta(json, info, "command");
	json_meta(json, info, "directory");
	json_meta(json, info, "host");
	json_put_unsigned(json, "start_unix_ns", reader_start_unix_ns(info->reader));
	json_put_unsigned(json, "duration_ns", reader_duration_ns(info->reader));
	json_put_bool(json, "ended", info->integrity.ended);
	json_put_bool(json, "forked", header->flags & TRACE_FORKED);
	json_put_bool(json, "tail_at_risk", info->integrity.tail_at_risk);
	json_put_bool(json, "complete", info->integrity.complete);
	json_put_unsigned(json, "threads", reader_layout(info->reader)->streams);
	json_metas(json, info);
	json_handover(json, info->handovers);
	json_flushes(json, info);
	json_clock(json, info);
	json_file(json, info);
	json_records(json, info);
	json_counted(json, info);
	json_dictionary(json, info);
	json_counters(json, info);
	json_losses(json, info);
	json_write_end(json, '}');
}
