/* SPDX-License-Identifier: MIT */
#include "collector/sample/call_site.h"

#include "collector/sample/process_memory.h"

#include <string.h>

#define CALL_BYTES_MAX 7u

/* Whether `code` is an instruction `ff /2` (call by register or memory) of `bytes` bytes. */
static bool is_indirect_call(const uint8_t *code, size_t bytes)
{
	const unsigned mode = code[1] >> 6, low = code[1] & 7;
	size_t length = 2;

	if (code[0] != 0xff || (code[1] & 0x38) != 0x10)
		return false;
	length += mode != 3 && low == 4; /* SIB byte */
	if (mode == 1)
		length += 1;
	else if (mode == 2 || (mode == 0 && (low == 5 || (low == 4 && (code[2] & 7) == 5))))
		length += 4;
	return length == bytes;
}

bool call_site_ends_at(uint64_t address)
{
	uint8_t code[CALL_BYTES_MAX + 1] = { 0 };

	if (process_memory_copy(code, address - CALL_BYTES_MAX, CALL_BYTES_MAX) != CALL_BYTES_MAX)
		return false;
	if (code[CALL_BYTES_MAX - 5] == 0xe8)
		return true;
	for (size_t bytes = 2; bytes <= CALL_BYTES_MAX; bytes++)
		if (is_indirect_call(code + CALL_BYTES_MAX - bytes, bytes))
			return true;
	return false;
}

/* Returns `from` + the signed 32 bits at `offset`. */
static uint64_t relative(uint64_t from, const uint8_t *offset)
{
	int32_t distance;

	memcpy(&distance, offset, sizeof distance);
	return from + (uint64_t)(int64_t)distance;
}

static uint64_t read_pointer_at(uint64_t address)
{
	uint64_t pointer;

	return process_memory_copy(&pointer, address, sizeof pointer) == sizeof pointer ? pointer
											: 0;
}

/* Returns where `address` jumps to if that is the entry of a procedure linkage table: a jump by a
 * pointer, after an instruction endbr64 and a prefix bnd if these are there. Else returns
 * `address`. */
static uint64_t follow_linkage_table(struct object_memory *memory, uint64_t address)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t code[12];
	size_t at = 0;
	uint64_t pointer;

	if (object_memory_copy(memory, code, address, sizeof code) != sizeof code)
		return address;
	if (!memcmp(code, endbr64, sizeof endbr64))
		at += sizeof endbr64;
	at += code[at] == 0xf2;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return address;
	pointer = read_pointer_at(relative(address + at + 6, code + at + 2));
	return pointer ? pointer : address;
}

uint64_t call_site_target(struct object_memory *memory, uint64_t address)
{
	uint8_t code[CALL_BYTES_MAX];

	if (object_memory_copy(memory, code, address - sizeof code, sizeof code) != sizeof code)
		return 0;
	if (code[1] == 0xff && code[2] == 0x15) /* by a pointer at a fixed address */
		return read_pointer_at(relative(address, code + 3));
	if (code[2] != 0xe8)
		return 0;
	return follow_linkage_table(memory, relative(address, code + 3));
}
