/* SPDX-License-Identifier: MIT */
#include "tests/support/trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_BYTES 4096u
#define DICTIONARY_BYTES 65536u
#define SLOT_ROOM 64u /* unused bytes after the payload of a slot */

struct bytes {
	unsigned char *at;
	size_t count, room;
};

struct open_range {
	uint64_t stamp;
	uint32_t node;
};

struct built_stream {
	struct built_stream *next;
	struct bytes payload;
	struct trace_block head; /* of the payload being filled */
	uint64_t last;           /* stamp of the last record */
	struct open_range *open;
	uint32_t depth, room;
};

struct built_text {
	char *text;
	size_t bytes;
};

struct built_node {
	uint32_t parent, name, domain, kind, link, detail; /* what identifies a node */
};

struct trace_builder {
	struct trace_header header;
	struct bytes dictionary; /* whole blocks, then the payload of the last one */
	size_t dictionary_open;  /* offset at which that last payload begins */
	uint32_t dictionary_sequence;
	struct bytes blocks; /* chunks and holes */
	struct bytes slots;  /* slots of SEAL_AND_SLOT and SEAL_TORN_SLOT */
	struct bytes file;
	/* streams: ordered by id; recent: the one used last */
	struct built_stream *streams, *recent;
	struct built_text *names;
	struct built_node *nodes;
	uint32_t name_count, node_count;
	int64_t realtime_shift, wrong;
	uint64_t ns, ticks; /* the clock's rate */
};

static void misuse(const char *what)
{
	fprintf(stderr, "trace_builder: %s\n", what);
	abort();
}

static void *append(struct bytes *bytes, const void *from, size_t count)
{
	unsigned char *at;

	if (bytes->count + count >= bytes->room) {
		bytes->room = (bytes->count + count + 64) * 2;
		bytes->at = realloc(bytes->at, bytes->room);
		if (!bytes->at)
			misuse("no memory");
	}
	at = bytes->at + bytes->count;
	bytes->count += count;
	if (from)
		memcpy(at, from, count);
	else
		memset(at, 0, count);
	return at;
}

static void pad(struct bytes *bytes, size_t alignment)
{
	append(bytes, NULL, (alignment - bytes->count % alignment) % alignment);
}

static void append_block(
	struct bytes *to, struct trace_block head, const void *payload, size_t room)
{
	head.magic = TRACE_BLOCK_MAGIC;
	head.extent = (sizeof head + head.used + room + TRACE_ALIGN - 1) / TRACE_ALIGN *
		      TRACE_ALIGN;
	head.head_crc = trace_crc32c(0, &head, offsetof(struct trace_block, head_crc));
	append(to, &head, sizeof head);
	append(to, payload, (size_t)head.used);
	append(to, NULL, (size_t)(head.extent - sizeof head - head.used));
}

struct trace_builder *builder_new(void)
{
	struct trace_builder *builder = calloc(1, sizeof *builder);
	struct trace_header *header;

	if (!builder)
		misuse("no memory");
	header = &builder->header;
	memcpy(header->magic, TRACE_MAGIC, sizeof header->magic);
	header->version = TRACE_VERSION;
	header->endian = TRACE_ENDIAN;
	header->header_bytes = HEADER_BYTES;
	header->clock_kind = TRACE_CLOCK_MONOTONIC;
	header->run_id = 1;
	header->pid = 100;
	header->parent_pid = 99;
	header->flags = TRACE_ENDED;
	header->page_bytes = 4096;
	header->limit_bytes = UINT64_C(4) << 30;
	header->start = (struct trace_clock){ BUILDER_START, BUILDER_START, BUILDER_START_UNIX_NS };
	header->last = header->start;
	builder->ns = builder->ticks = 1;
	return builder;
}

void builder_free(struct trace_builder *builder)
{
	struct built_stream *next;

	for (struct built_stream *stream = builder->streams; stream; stream = next) {
		next = stream->next;
		free(stream->payload.at);
		free(stream->open);
		free(stream);
	}
	for (uint32_t i = 0; i < builder->name_count; i++)
		free(builder->names[i].text);
	free(builder->names);
	free(builder->nodes);
	free(builder->dictionary.at);
	free(builder->blocks.at);
	free(builder->slots.at);
	free(builder->file.at);
	free(builder);
}

struct trace_header *builder_header(struct trace_builder *builder)
{
	return &builder->header;
}

static struct trace_clock clock_at(const struct trace_builder *builder, uint64_t stamp)
{
	const struct trace_clock *start = &builder->header.start;
	uint64_t ticks = stamp - start->raw,
		 passed = ticks / builder->ticks * builder->ns +
			  ticks % builder->ticks * builder->ns / builder->ticks;

	return (struct trace_clock){ stamp, start->monotonic_ns + passed,
		start->realtime_ns + passed + (uint64_t)builder->realtime_shift };
}

static void *append_record(struct bytes *payload, enum trace_kind kind, size_t size, uint32_t node)
{
	struct trace_head *head;

	size = (size + 7) / 8 * 8;
	if (size > UINT16_MAX)
		misuse("a record of more than 65535 bytes");
	head = append(payload, NULL, size);
	head->size = (uint16_t)size;
	head->kind = (uint8_t)kind;
	head->node = node;
	return head;
}

static struct built_stream *find_stream(struct trace_builder *builder, uint32_t id)
{
	struct built_stream **at = &builder->streams;

	if (builder->recent && builder->recent->head.stream == id)
		return builder->recent;
	if (builder->recent && builder->recent->head.stream < id)
		at = &builder->recent->next;
	while (*at && (*at)->head.stream < id)
		at = &(*at)->next;
	if (!*at || (*at)->head.stream != id) {
		struct built_stream *stream = calloc(1, sizeof *stream);

		if (!stream)
			misuse("no memory");
		stream->head.stream = id;
		stream->head.tid = 1000 + id;
		stream->last = builder->header.start.raw;
		stream->next = *at;
		*at = stream;
	}
	builder->recent = *at;
	return *at;
}

static void begin_payload(
	struct trace_builder *builder, struct built_stream *stream, uint64_t stamp)
{
	struct trace_clock_record *clock;
	struct trace_clock now = clock_at(builder, stamp);

	if (stream->payload.count)
		return;
	stream->head.base_stamp = stamp;
	clock = append_record(&stream->payload, TRACE_CLOCK, sizeof *clock,
		stream->depth ? stream->open[stream->depth - 1].node : 0);
	clock->stamp = now.raw;
	clock->monotonic_ns = now.monotonic_ns + (uint64_t)builder->wrong;
	builder->wrong = 0;
	clock->realtime_ns = now.realtime_ns;
	for (uint32_t i = 0; i < stream->depth; i++) {
		struct trace_open *open = append_record(
			&stream->payload, TRACE_OPEN, sizeof *open, stream->open[i].node);

		open->begin_stamp = stream->open[i].stamp;
	}
	stream->last = stamp;
}

/* Returns the stream, ready for a record at `at`; `aligned`: for a struct. */
static struct built_stream *ready(
	struct trace_builder *builder, uint32_t id, uint64_t at, int aligned)
{
	struct built_stream *stream = find_stream(builder, id);
	uint64_t stamp = builder->header.start.raw + at;

	if (stamp < stream->last)
		misuse("records of a stream must be in order of time");
	begin_payload(builder, stream, stamp);
	if (aligned)
		pad(&stream->payload, 8);
	if (builder->header.last.raw < stamp)
		builder->header.last = clock_at(builder, stamp);
	return stream;
}

static int is_timed(enum trace_kind kind)
{
	static const char timed[TRACE_KINDS] = {
#define X(name, type, is, text) [TRACE_##name] = is,
		TRACE_RECORDS(X)
#undef X
	};

	return kind < TRACE_KINDS && timed[kind];
}

void *build_record(
	struct trace_builder *builder, uint32_t id, enum trace_kind kind, size_t size, uint64_t at)
{
	struct built_stream *stream = ready(builder, id, at, 1);
	void *record = append_record(&stream->payload, kind, size,
		stream->depth ? stream->open[stream->depth - 1].node : 0);

	if (is_timed(kind)) {
		stream->last = builder->header.start.raw + at;
		((struct trace_timed *)record)->stamp = stream->last;
	}
	return record;
}

void build_clock_record(struct trace_builder *builder, uint32_t id, uint64_t at)
{
	struct trace_clock_record *clock = build_record(
		builder, id, TRACE_CLOCK, sizeof *clock, at);
	struct trace_clock now = clock_at(builder, clock->stamp);

	clock->monotonic_ns = now.monotonic_ns;
	clock->realtime_ns = now.realtime_ns;
}

void build_raw(struct trace_builder *builder, uint32_t id, const void *bytes, size_t count)
{
	struct built_stream *stream = find_stream(builder, id);

	begin_payload(builder, stream, stream->last);
	append(&stream->payload, bytes, count);
}

void build_block(struct trace_builder *builder, uint32_t type, const void *payload, size_t bytes)
{
	const struct trace_block head = { .type = type, .used = bytes };

	append_block(&builder->blocks, head, payload, SLOT_ROOM);
}

void build_payload(
	struct trace_builder *builder, uint32_t id, uint64_t at, const void *bytes, size_t count)
{
	struct built_stream *stream = find_stream(builder, id);

	stream->payload.count = 0;
	stream->last = stream->head.base_stamp = builder->header.start.raw + at;
	append(&stream->payload, bytes, count);
}

static void open_range(struct built_stream *stream, uint64_t stamp, uint32_t node)
{
	if (stream->depth == stream->room) {
		stream->room = stream->room * 2 + 8;
		stream->open = realloc(stream->open, stream->room * sizeof stream->open[0]);
		if (!stream->open)
			misuse("no memory");
	}
	stream->open[stream->depth++] = (struct open_range){ stamp, node };
}

struct trace_range *build_push_record(
	struct trace_builder *builder, uint32_t id, uint64_t at, uint32_t node, size_t size)
{
	struct trace_range *range = build_record(builder, id, TRACE_PUSH, size, at);

	range->head.node = node;
	open_range(find_stream(builder, id), range->stamp, node);
	return range;
}

uint32_t build_push_node(struct trace_builder *builder, uint32_t id, uint64_t at, uint32_t node)
{
	struct built_stream *stream = ready(builder, id, at, 0);
	uint64_t stamp = builder->header.start.raw + at, ticks = stamp - stream->last;
	uint32_t words[2];

	if (ticks > UINT32_MAX || node >> 30) {
		build_push_record(builder, id, at, node, sizeof(struct trace_range));
		return node;
	}
	words[0] = ticks < 1u << 14 && node < 1u << 16 ? 1u | (uint32_t)ticks << 2 | node << 16
						       : 3u | node << 2;
	words[1] = (uint32_t)ticks;
	append(&stream->payload, words, (words[0] & 3) == 1 ? 4 : 8);
	stream->last = stamp;
	open_range(stream, stamp, node);
	return node;
}

uint32_t build_push(struct trace_builder *builder, uint32_t id, uint64_t at, const char *name)
{
	struct built_stream *stream = find_stream(builder, id);
	uint32_t parent = stream->depth ? stream->open[stream->depth - 1].node : 0;

	return build_push_node(
		builder, id, at, build_node(builder, parent, name, NULL, TRACE_NODE_RANGE));
}

void build_pop_at(struct trace_builder *builder, uint32_t id, uint64_t at, uint32_t index)
{
	struct built_stream *stream = find_stream(builder, id);
	struct trace_pop_at *pop = build_record(builder, id, TRACE_POP_AT, sizeof *pop, at);

	if (index >= stream->depth)
		misuse("no such open range");
	pop->index = index;
	pop->head.node = stream->open[index].node;
	memmove(&stream->open[index], &stream->open[index + 1],
		(--stream->depth - index) * sizeof stream->open[0]);
}

void build_pop_without_push(struct trace_builder *builder, uint32_t id, uint64_t at)
{
	struct trace_pop_at *pop = build_record(builder, id, TRACE_POP_AT, sizeof *pop, at);

	pop->index = UINT32_MAX;
}

void build_pop(struct trace_builder *builder, uint32_t id, uint64_t at)
{
	struct built_stream *stream = ready(builder, id, at, 0);
	uint64_t stamp = builder->header.start.raw + at, ticks = stamp - stream->last;
	uint32_t word = 2u | (uint32_t)ticks << 2;

	if (ticks >> 30 && stream->depth) {
		build_pop_at(builder, id, at, stream->depth - 1);
		return;
	}
	append(&stream->payload, &word, sizeof word);
	stream->last = stamp;
	if (stream->depth)
		stream->depth--;
}

static void append_chunk(struct bytes *to, struct built_stream *stream, int torn)
{
	struct trace_block head = stream->head;

	head.type = TRACE_CHUNK;
	head.used = stream->payload.count;
	head.crc = 0;
	head.crc = trace_block_crc(&head, stream->payload.at) + (uint32_t)torn;
	append_block(to, head, stream->payload.at, 0);
}

static void append_slot(struct bytes *to, const struct built_stream *stream)
{
	struct trace_block head = stream->head;

	head.type = TRACE_SLOT;
	head.used = stream->payload.count;
	append_block(to, head, stream->payload.at, SLOT_ROOM);
}

void build_seal(struct trace_builder *builder, uint32_t id, enum seal_kind how)
{
	struct built_stream *stream = find_stream(builder, id);
	struct bytes *blocks = &builder->blocks;

	begin_payload(builder, stream, stream->last);
	if (how == SEAL_HOLE)
		append(blocks, NULL,
			(sizeof stream->head + stream->payload.count + TRACE_ALIGN - 1) /
				TRACE_ALIGN * TRACE_ALIGN);
	else if (how != SEAL_MISSING)
		append_chunk(blocks, stream, how == SEAL_TORN || how == SEAL_TORN_SLOT);
	if (how == SEAL_TWICE)
		append_chunk(blocks, stream, 0);
	if (how == SEAL_AND_SLOT || how == SEAL_TORN_SLOT)
		append_slot(&builder->slots, stream);
	stream->payload.count = 0;
	stream->head.sequence++;
}

void build_lost(struct trace_builder *builder, uint32_t id, uint64_t events)
{
	find_stream(builder, id)->head.lost += events;
}

void build_tsc(struct trace_builder *builder, uint64_t ns, uint64_t ticks)
{
	builder->header.clock_kind = TRACE_CLOCK_TSC;
	builder->ns = ns;
	builder->ticks = ticks;
}

void build_wrong_clock(struct trace_builder *builder, int64_t ns)
{
	builder->wrong = ns;
}

void build_step_realtime(struct trace_builder *builder, int64_t ns)
{
	builder->realtime_shift += ns;
}

void build_dictionary_seal(struct trace_builder *builder)
{
	struct bytes *dictionary = &builder->dictionary;
	struct trace_block head = { .type = TRACE_DICT,
		.sequence = builder->dictionary_sequence++ };
	struct bytes payload = { 0 };

	head.used = dictionary->count - builder->dictionary_open;
	append(&payload, dictionary->at ? dictionary->at + builder->dictionary_open : NULL,
		(size_t)head.used);
	dictionary->count = builder->dictionary_open;
	head.crc = trace_block_crc(&head, payload.at);
	append_block(dictionary, head, payload.at, 0);
	builder->dictionary_open = dictionary->count;
	free(payload.at);
}

void *build_dictionary(struct trace_builder *builder, enum trace_kind kind, size_t size)
{
	if (builder->dictionary.count - builder->dictionary_open + size + 8 > DICTIONARY_BYTES)
		build_dictionary_seal(builder);
	return append_record(&builder->dictionary, kind, size, 0);
}

uint32_t build_name_bytes(struct trace_builder *builder, const void *text, size_t bytes)
{
	struct trace_name *name;
	struct built_text *kept;

	for (uint32_t i = 0; i < builder->name_count; i++)
		if (builder->names[i].bytes == bytes &&
			!memcmp(builder->names[i].text, text, bytes))
			return i + 1;
	builder->names = realloc(
		builder->names, (builder->name_count + 1) * sizeof *builder->names);
	if (!builder->names)
		misuse("no memory");
	kept = &builder->names[builder->name_count++];
	kept->bytes = bytes;
	kept->text = malloc(bytes + 1);
	if (!kept->text)
		misuse("no memory");
	memcpy(kept->text, text, bytes);
	name = build_dictionary(builder, TRACE_NAME, sizeof *name + bytes);
	name->name = builder->name_count;
	name->bytes = (uint32_t)bytes;
	memcpy(name + 1, text, bytes);
	return builder->name_count;
}

uint32_t build_name(struct trace_builder *builder, const char *text)
{
	return text ? build_name_bytes(builder, text, strlen(text)) : 0;
}

static uint32_t find_node(struct trace_builder *builder, const struct built_node *wanted)
{
	struct trace_node *node;

	for (uint32_t i = 0; i < builder->node_count; i++)
		if (!memcmp(&builder->nodes[i], wanted, sizeof *wanted))
			return i + 1;
	builder->nodes = realloc(
		builder->nodes, (builder->node_count + 1) * sizeof *builder->nodes);
	if (!builder->nodes)
		misuse("no memory");
	builder->nodes[builder->node_count++] = *wanted;
	node = build_dictionary(builder, TRACE_NODE, sizeof *node);
	node->head.node = builder->node_count;
	node->parent = wanted->parent;
	node->name = wanted->name;
	node->domain = wanted->domain;
	node->kind = wanted->kind;
	node->link = wanted->link;
	node->detail = wanted->detail;
	return builder->node_count;
}

uint32_t build_node(struct trace_builder *builder, uint32_t parent, const char *name,
	const char *domain, enum trace_node_kind kind)
{
	return find_node(builder, &(struct built_node){ .parent = parent,
					  .name = build_name(builder, name),
					  .domain = build_name(builder, domain),
					  .kind = (uint32_t)kind });
}

uint32_t build_linked_node(struct trace_builder *builder, uint32_t parent, const char *name,
	enum trace_node_kind kind, uint32_t link, const char *detail)
{
	return find_node(builder, &(struct built_node){ .parent = parent,
					  .name = build_name(builder, name),
					  .kind = (uint32_t)kind,
					  .link = link,
					  .detail = build_name(builder, detail) });
}

void build_meta(struct trace_builder *builder, const char *key, const char *value)
{
	size_t key_bytes = strlen(key), value_bytes = strlen(value);
	struct trace_meta *meta = build_dictionary(
		builder, TRACE_META, sizeof *meta + key_bytes + value_bytes);

	meta->key_bytes = (uint32_t)key_bytes;
	meta->value_bytes = (uint32_t)value_bytes;
	memcpy(meta + 1, key, key_bytes);
	memcpy((char *)(meta + 1) + key_bytes, value, value_bytes);
}

/* Writes the dictionary. Its last payload has no crc, as in a process that was killed. */
static void append_dictionary(struct trace_builder *builder, struct bytes *file)
{
	struct trace_block head = { .type = TRACE_DICT, .sequence = builder->dictionary_sequence };

	append(file, builder->dictionary.at, builder->dictionary_open);
	head.used = builder->dictionary.count - builder->dictionary_open;
	if (head.used)
		append_block(
			file, head, builder->dictionary.at + builder->dictionary_open, SLOT_ROOM);
}

const unsigned char *builder_bytes(struct trace_builder *builder, size_t *bytes)
{
	struct bytes *file = &builder->file;
	struct trace_header header = builder->header;

	file->count = 0;
	append(file, NULL, HEADER_BYTES);
	append_dictionary(builder, file);
	append(file, builder->slots.at, builder->slots.count);
	for (struct built_stream *stream = builder->streams; stream; stream = stream->next) {
		header.streams = header.streams < stream->head.stream ? stream->head.stream
								      : header.streams;
		if (stream->payload.count)
			append_slot(file, stream);
	}
	append(file, builder->blocks.at, builder->blocks.count);
	header.end = header.end ? header.end : file->count;
	memcpy(file->at, &header, sizeof header);
	*bytes = file->count;
	return file->at;
}

void builder_write(struct trace_builder *builder, const char *path)
{
	size_t bytes;
	const unsigned char *from = builder_bytes(builder, &bytes);
	FILE *file = fopen(path, "wb");

	if (!file || fwrite(from, 1, bytes, file) != bytes || fclose(file))
		misuse("the file could not be written");
}
