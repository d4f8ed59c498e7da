/* SPDX-License-Identifier: MIT */
#include "preload/python/peer_code.h"

#include "collector/file/dictionary.h"
#include "collector/process/fork_wiped_memory.h"
#include "collector/sample/frame_tree.h"
#include "preload/python/peer_frames.h"
#include "preload/python/peer_memory.h"
#include "preload/python/python.h"
#include "preload/python/str.h"

#include <string.h>

#define CODES 8192u /* entries of the tables; powers of two */
#define LINES 16384u
#define HEAD_BYTES 152u /* of a code object: all members that are read */
#define STR_HEAD_BYTES 40u
#define STR_HASH 24
#define TEXT_BYTES (4u << 10)
#define TABLE_BYTES (64u << 10) /* longest line table that is read */

/* What identifies a code object at an address. */
struct code_parts {
	uintptr_t type, file, name, lines;
	uint32_t line, version;
	uint64_t name_length, name_hash; /* 0 where there is a version */
};

struct known_code {
	uintptr_t code; /* 0: free */
	struct code_parts parts;
	uint32_t function, file; /* name ids */
	uint64_t sample;         /* the last sample in which it was compared */
};

struct known_line {
	uintptr_t code, lines;
	int64_t offset;
	uint32_t version, function, line;
};

/* Allocated once; a forked child keeps it, as it keeps the ids of names. */
static struct peer_codes {
	struct known_code codes[CODES];
	struct known_line lines[LINES];
	uint64_t sample; /* number of this sample */
	uint8_t table[TABLE_BYTES];
	uint8_t characters[TEXT_BYTES];
	uint8_t heads[PEER_READ_MANY_MAX][HEAD_BYTES];
	uint8_t names[PEER_READ_MANY_MAX][STR_HEAD_BYTES];
	struct trace_python_frame named[PEER_FRAMES_MAX];
} * cache;

static size_t hash_address(uintptr_t address, int64_t offset)
{
	const uint64_t value = (address ^ (uint64_t)offset << 40) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)(value >> 40);
}

static struct known_code *find_code(uintptr_t code)
{
	return &cache->codes[hash_address(code, 0) & (CODES - 1)];
}

/* ---- comparing what is known ---- */

static void copy_member(void *to, const uint8_t *head, size_t offset, size_t bytes)
{
	memcpy(to, head + offset, bytes);
}

/* Whether a copy of an object's head shows references to it. Its first word is the reference count,
 * below 2^32; 3.14 and later have flags in the highest 16 bits. In freed memory the allocator has
 * an address there, or 0. So it is noticed that a code object was freed while its texts were read.
 */
static bool is_alive(const uint8_t *head)
{
	uint64_t count;

	copy_member(&count, head, 0, sizeof count);
	return (uint32_t)count && !(count >> 32 & 0xffff);
}

static struct code_parts parts_of(const struct python_layout *l, const uint8_t head[HEAD_BYTES])
{
	struct code_parts parts;

	memset(&parts, 0, sizeof parts);
	if (is_alive(head))
		copy_member(&parts.type, head, PYTHON_TYPE, sizeof parts.type);
	copy_member(&parts.file, head, l->code_file, sizeof parts.file);
	copy_member(&parts.name, head, l->code_name, sizeof parts.name);
	copy_member(&parts.lines, head, l->code_lines, sizeof parts.lines);
	copy_member(&parts.line, head, l->code_line, sizeof parts.line);
	if (l->code_version)
		copy_member(&parts.version, head, l->code_version, sizeof parts.version);
	return parts;
}

/* Completes the parts of `count` code objects that have no version by the lengths and hashes of
 * their names. Returns how many could be read. */
static size_t read_name_heads(struct code_parts *parts, size_t count)
{
	uintptr_t names[PEER_READ_MANY_MAX];
	size_t got;

	for (size_t i = 0; i < count; i++)
		names[i] = parts[i].name;
	got = peer_read_many(cache->names, names, count, STR_HEAD_BYTES);
	for (size_t i = 0; i < got; i++) {
		copy_member(&parts[i].name_length, cache->names[i], PYTHON_STR_LENGTH, 8);
		copy_member(&parts[i].name_hash, cache->names[i], STR_HASH, 8);
	}
	return got;
}

/* Reads what identifies `count` code objects. Returns how many could be read. */
static size_t read_parts(const struct python_layout *l, const uintptr_t *codes, size_t count,
	struct code_parts *parts)
{
	const size_t got = peer_read_many(cache->heads, codes, count, HEAD_BYTES);

	for (size_t i = 0; i < got; i++)
		parts[i] = parts_of(l, cache->heads[i]);
	return l->code_version ? got : read_name_heads(parts, got);
}

/* ---- reading what is new ---- */

/* Reads a str. Returns its name id; 0: it is no str. */
static uint32_t read_text(const struct python_layout *l, uintptr_t text)
{
	uint8_t head[STR_HEAD_BYTES];
	char room[PYTHON_STR_ROOM];
	uint64_t length;
	uint32_t state;
	uintptr_t type;
	unsigned width;
	bool ascii;

	if (!peer_read(head, text, sizeof head) || !is_alive(head))
		return 0;
	copy_member(&type, head, PYTHON_TYPE, sizeof type);
	if (type != (uintptr_t)python.str_type)
		return 0;
	copy_member(&length, head, PYTHON_STR_LENGTH, sizeof length);
	copy_member(&state, head, PYTHON_STR_STATE, sizeof state);
	if (!python_str_state(state, &width, &ascii) || !length)
		return 0;
	length = length * width < TEXT_BYTES ? length : TEXT_BYTES / width;
	if (!peer_read(cache->characters, text + (ascii ? l->str_ascii : l->str_other),
		    (size_t)length * width))
		return 0;
	return name_id_always(room, python_str_encode(room, cache->characters, width, length));
}

/* Reads the texts of a code object, and then its parts again. Returns whether they are the same. */
static bool read_code(
	const struct python_layout *l, struct known_code *known, const struct code_parts *parts)
{
	struct code_parts again;

	known->function = read_text(l, parts->name);
	known->file = read_text(l, parts->file);
	return known->function && known->file && read_parts(l, &known->code, 1, &again) == 1 &&
	       !memcmp(&again, parts, sizeof again);
}

/* Compares a code object with what is known, and learns it if that is another one. */
static bool accept_code(
	const struct python_layout *l, uintptr_t code, const struct code_parts *parts)
{
	struct known_code *known = find_code(code);

	if (parts->type != (uintptr_t)python.code_type)
		return false;
	if (known->code != code || memcmp(&known->parts, parts, sizeof *parts) != 0) {
		known->code = code;
		known->parts = *parts;
		if (!read_code(l, known, parts)) {
			known->code = 0;
			return false;
		}
	}
	known->sample = cache->sample;
	return true;
}

static bool accept_codes(const struct python_layout *l, const uintptr_t *codes, size_t count)
{
	struct code_parts parts[PEER_READ_MANY_MAX];

	if (read_parts(l, codes, count, parts) < count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!accept_code(l, codes[i], &parts[i]))
			return false;
	return true;
}

/* Compares the code objects of all frames, each once. */
static bool accept_frames(
	const struct python_layout *l, const struct peer_frame *frames, size_t count)
{
	uintptr_t codes[PEER_READ_MANY_MAX];
	size_t waiting = 0;

	for (size_t i = 0; i < count; i++) {
		const struct known_code *known = find_code(frames[i].code);

		if ((known->code == frames[i].code && known->sample == cache->sample) ||
			(waiting && codes[waiting - 1] == frames[i].code))
			continue;
		codes[waiting++] = frames[i].code;
		if (waiting < PEER_READ_MANY_MAX)
			continue;
		if (!accept_codes(l, codes, waiting))
			return false;
		waiting = 0;
	}
	return !waiting || accept_codes(l, codes, waiting);
}

/* ---- frames ---- */

static uint32_t read_line(
	const struct python_layout *l, const struct known_code *known, int64_t offset)
{
	uint64_t bytes;

	if (!peer_read(&bytes, known->parts.lines + PYTHON_BYTES_SIZE, sizeof bytes) ||
		bytes > TABLE_BYTES ||
		(bytes && !peer_read(cache->table, known->parts.lines + PYTHON_BYTES_DATA,
				  (size_t)bytes)))
		return 0;
	return python_line(l->lines, cache->table, (size_t)bytes, known->parts.line, offset);
}

static uint32_t line_of(
	const struct python_layout *l, const struct known_code *known, int64_t offset)
{
	struct known_line *line = &cache->lines[hash_address(known->code, offset) & (LINES - 1)];

	if (line->code == known->code && line->offset == offset &&
		line->lines == known->parts.lines && line->version == known->parts.version &&
		line->function == known->function)
		return line->line;
	*line = (struct known_line){ known->code, known->parts.lines, offset, known->parts.version,
		known->function, read_line(l, known, offset) };
	return line->line;
}

/* Names frames whose code objects were accepted. Returns how many are named, which are at the end
 * of cache->named. */
static size_t name_frames(
	const struct python_layout *layout, const struct peer_frame *frames, size_t count)
{
	size_t from = PEER_FRAMES_MAX;

	for (size_t i = count; i-- > 0;) {
		const struct known_code *known = find_code(frames[i].code);

		/* Two code objects of this stack have the same entry of the table. */
		if (known->code != frames[i].code && !accept_codes(layout, &frames[i].code, 1))
			return 0;
		/* Code without a file, which 3.12 and later insert below some calls. Python does
		 * not show its frames. */
		if (known->function == known->file)
			continue;
		cache->named[--from] = (struct trace_python_frame){ known->function, known->file,
			line_of(layout, known, frames[i].offset), frames[i].is_entry };
	}
	return PEER_FRAMES_MAX - from;
}

uint32_t peer_frames_id(
	const struct python_layout *layout, const struct peer_frame *frames, size_t count)
{
	size_t named;

	if (!cache && !(cache = fork_kept_alloc(sizeof *cache)))
		return 0;
	cache->sample++;
	if (!accept_frames(layout, frames, count))
		return 0;
	named = name_frames(layout, frames, count);
	return frame_python_id(0, cache->named + PEER_FRAMES_MAX - named, (uint32_t)named);
}
