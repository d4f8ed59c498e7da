/* SPDX-License-Identifier: MIT
 * info_json.c: see info_json.h.
 */
#include "report/views/info_json.h"

#include "report/text/json_writer.h"
#include "report/trace/record_check.h"

#include <string.h>

static void put_meta(struct emit *emit, const struct info *info, const char *name, const char *key)
{
	emit_put_text(emit, name, trace_text_or_null(reader_meta(info->reader, key)));
}

static void put_id(struct emit *emit, const char *key, uint64_t id)
{
	emit_key(emit, key);
	emit_id(emit, id);
}

/* META as they stand; JSON needs their keys to be texts. */
static void put_metas(struct emit *emit, const struct info *info)
{
	emit_key(emit, "meta");
	emit_begin(emit, '{');
	for (uint32_t i = 0; i < reader_metas(info->reader); i++) {
		struct trace_text key, value;

		reader_meta_at(info->reader, i, &key, &value);
		emit_text(emit, trace_text_or_null(key));
		out_char(emit->out, ':');
		emit->filled = false;
		emit_text(emit, trace_text_or_null(value));
	}
	emit_end(emit, '}');
}

static void put_clock(struct emit *emit, const struct info *info)
{
	bool tsc = reader_header(info->reader)->clock_kind == TRACE_CLOCK_TSC;

	emit_key(emit, "clock");
	emit_begin(emit, '{');
	emit_put_string(emit, "kind", tsc ? "tsc" : "monotonic");
	emit_key(emit, "ticks_per_second");
	emit_double(emit, reader_ticks_per_second(info->reader));
	emit_put_unsigned(emit, "steps", info->integrity.clock_steps);
	emit_put_unsigned(emit, "samples_refused", info->integrity.clock_samples_refused);
	emit_end(emit, '}');
}

static void put_build_id(struct emit *emit, const uint8_t *id, size_t bytes)
{
	char text[64];

	for (size_t i = 0; i < bytes && i < 20; i++) {
		text[2 * i] = "0123456789abcdef"[id[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	text[bytes < 20 ? 2 * bytes : 40] = '\0';
	emit_put_string(emit, "build_id", text);
}

static void put_file(struct emit *emit, const struct info *info)
{
	const struct trace_header *header = reader_header(info->reader);
	const struct trace_layout *layout = reader_layout(info->reader);

	emit_key(emit, "file");
	emit_begin(emit, '{');
	emit_put_unsigned(emit, "bytes", layout->file_bytes);
	emit_put_unsigned(emit, "format", header->version);
	put_build_id(emit, header->build_id, sizeof header->build_id);
	emit_put_unsigned(emit, "chunks", layout->chunks);
	emit_put_unsigned(emit, "chunk_bytes", layout->chunk_bytes);
	emit_put_unsigned(emit, "slots", layout->slots);
	emit_put_unsigned(emit, "slot_bytes", layout->slot_bytes);
	emit_put_unsigned(emit, "dictionary_blocks", layout->dictionary);
	emit_put_unsigned(emit, "dictionary_bytes", layout->dictionary_bytes);
	emit_put_unsigned(emit, "totals_blocks", layout->totals);
	emit_put_unsigned(emit, "totals_bytes", layout->totals_bytes);
	emit_put_unsigned(emit, "limit_bytes", header->limit_bytes);
	emit_key(emit, "bytes_per_record");
	if (info->recorded)
		emit_double(emit, (double)(layout->chunk_bytes + layout->slot_bytes) / (double)info->recorded);
	else
		emit_null(emit);
	emit_end(emit, '}');
}

static void put_records(struct emit *emit, const struct info *info)
{
	emit_put_unsigned(emit, "recorded", info->recorded);
	emit_key(emit, "records");
	emit_begin(emit, '{');
	for (uint32_t kind = 0; kind < EVENT_KINDS; kind++)
		if (info->records[kind] && event_word(kind))
			emit_put_unsigned(emit, event_word(kind), info->records[kind]);
	emit_end(emit, '}');
}

/* What is in no record. */
static void put_counted(struct emit *emit, const struct info *info)
{
	uint32_t places;
	const struct trace_counted *counted = reader_counted(info->reader, &places);
	uint64_t calls = 0;

	for (uint32_t i = 0; i < places; i++)
		calls += counted[i].calls;
	emit_key(emit, "counted");
	emit_begin(emit, '{');
	emit_put_unsigned(emit, "calls", calls);
	emit_put_unsigned(emit, "places", places);
	emit_end(emit, '}');
}

static void put_dictionary(struct emit *emit, const struct info *info)
{
	static const struct {
		const char *key;
		enum trace_kind kind;
	} lists[] = { { "counters", TRACE_COUNTER }, { "modules", TRACE_MODULE }, { "stacks", TRACE_STACK },
		{ "python_stacks", TRACE_PYTHON_STACK }, { "sources", TRACE_SOURCE },
		{ "devices", TRACE_DEVICE }, { "contexts", TRACE_CONTEXT }, { "graph_nodes", TRACE_GRAPH_NODE },
		{ "graph_execs", TRACE_GRAPH_EXEC } };

	emit_key(emit, "dictionary");
	emit_begin(emit, '{');
	emit_put_unsigned(emit, "nodes", reader_nodes(info->reader) - 2u);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		emit_put_unsigned(emit, lists[i].key, reader_dictionary_count(info->reader, lists[i].kind));
	emit_end(emit, '}');
}

static void put_counters(struct emit *emit, const struct info *info)
{
	const struct trace_counter *counter;

	emit_key(emit, "counters");
	emit_begin(emit, '[');
	for (uint32_t i = 0; (counter = reader_dictionary(info->reader, TRACE_COUNTER, i)); i++) {
		emit_begin(emit, '{');
		emit_put_text(emit, "name", trace_text_or_null(reader_name(info->reader, counter->name)));
		emit_put_text(emit, "domain", trace_text_or_null(reader_name(info->reader, counter->domain)));
		emit_put_text(emit, "unit", trace_text_or_null(reader_name(info->reader, counter->unit)));
		emit_end(emit, '}');
	}
	emit_end(emit, ']');
}

static void put_away(struct emit *emit, const struct away *away)
{
	emit_key(emit, "away");
	emit_begin(emit, '[');
	for (size_t i = 0; away && i < away->count; i++) {
		const struct away_span *span = &away->spans[AWAY_TRACE][i];

		emit_begin(emit, '{');
		emit_put_unsigned(emit, "begin_ns", span->begin_ns);
		if (span->end_ns != UINT64_MAX)
			emit_put_unsigned(emit, "end_ns", span->end_ns);
		emit_end(emit, '}');
	}
	emit_end(emit, ']');
}

static void put_losses(struct emit *emit, const struct info *info)
{
	const struct trace_integrity *all = &info->integrity;

	emit_key(emit, "losses");
	emit_begin(emit, '{');
#define X(name, text) emit_put_unsigned(emit, #name, all->lost[TRACE_LOST_##name]);
	TRACE_LOSSES(X)
#undef X
#define PUT(name) emit_put_unsigned(emit, #name, all->name)
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
	emit_end(emit, '}');
}

void info_write_json(struct out *out, const struct info *info)
{
	const struct trace_header *header = reader_header(info->reader);
	struct emit emitter = { out, false }, *emit = &emitter;

	emit_begin(emit, '{');
	emit_put_string(emit, "kind", "process");
	emit_put_string(emit, "name", reader_path(info->reader));
	emit_put_unsigned(emit, "pid", header->pid);
	emit_put_unsigned(emit, "parent_pid", header->parent_pid);
	put_id(emit, "run_id", header->run_id);
	put_meta(emit, info, "exe", "exe");
	put_meta(emit, info, "command", "command");
	put_meta(emit, info, "directory", "directory");
	put_meta(emit, info, "host", "host");
	emit_put_unsigned(emit, "start_unix_ns", reader_start_unix_ns(info->reader));
	emit_put_unsigned(emit, "duration_ns", reader_duration_ns(info->reader));
	emit_put_bool(emit, "ended", info->integrity.ended);
	emit_put_bool(emit, "forked", header->flags & TRACE_FORKED);
	emit_put_bool(emit, "tail_at_risk", info->integrity.tail_at_risk);
	emit_put_bool(emit, "complete", info->integrity.complete);
	emit_put_unsigned(emit, "threads", reader_layout(info->reader)->streams);
	put_metas(emit, info);
	put_away(emit, info->away);
	put_clock(emit, info);
	put_file(emit, info);
	put_records(emit, info);
	put_counted(emit, info);
	put_dictionary(emit, info);
	put_counters(emit, info);
	put_losses(emit, info);
	emit_end(emit, '}');
}
