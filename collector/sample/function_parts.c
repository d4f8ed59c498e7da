/* SPDX-License-Identifier: MIT
 * The code is searched for the bytes of direct jumps at every address, as instructions are not
 * decoded. So some of what is found is no jump. That goes anywhere, and a second part needs several
 * jumps in both directions.
 */
#include "collector/sample/function_parts.h"

#include "collector/sample/process_memory.h"

#include <string.h>

#define JUMP_BYTES_MAX 6u
#define CODE_AT_ONCE 4096u
#define PART_BYTES_MAX (1u << 20)
#define CANDIDATES_MAX 32u
#define JUMPS_MIN 4u /* in each direction */

/* A function or part that code jumps to the middle of. */
struct candidate {
	struct code_range range;
	uint32_t jumps;
};

struct candidates {
	uint32_t count;
	struct candidate all[CANDIDATES_MAX];
};

static bool is_in(const struct code_range *range, uint64_t address)
{
	return address >= range->begin && address < range->end;
}

/* Returns where a jump with a distance of 32 bits at `address` goes to, if `code` has the bytes of
 * one: jmp (e9), or a conditional one (0f 80 to 0f 8f). Else returns 0. */
static uint64_t jump_target(const uint8_t code[JUMP_BYTES_MAX], uint64_t address)
{
	const size_t opcode_bytes = code[0] == 0xe9                               ? 1
				    : code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2
										  : 0;
	int32_t distance;

	if (!opcode_bytes)
		return 0;
	memcpy(&distance, code + opcode_bytes, sizeof distance);
	return address + opcode_bytes + sizeof distance + (uint64_t)(int64_t)distance;
}

/* Counts a jump to `target`. */
static void count_jump(struct unwinder *u, struct candidates *found, uint64_t target)
{
	struct code_range range;
	uint32_t i;

	for (i = 0; i < found->count; i++)
		if (is_in(&found->all[i].range, target))
			break;
	if (i == found->count) {
		if (i == CANDIDATES_MAX ||
			!unwinder_find_function(u, target, &range.begin, &range.end))
			return;
		found->all[found->count++] = (struct candidate){ .range = range };
	}
	found->all[i].jumps += target != found->all[i].range.begin;
}

/* Counts the jumps from the code of `part` to other functions. */
static void count_jumps(struct unwinder *u, const struct code_range *part, struct candidates *found)
{
	uint8_t code[CODE_AT_ONCE];
	size_t bytes;
	uint64_t target;

	for (uint64_t at = part->begin; at + JUMP_BYTES_MAX <= part->end;
		at += bytes - JUMP_BYTES_MAX + 1) {
		bytes = part->end - at < CODE_AT_ONCE ? part->end - at : CODE_AT_ONCE;
		if (process_memory_copy(code, at, bytes) != bytes)
			return;
		for (size_t i = 0; i + JUMP_BYTES_MAX <= bytes; i++) {
			target = jump_target(code + i, at + i);
			if (target && !is_in(part, target))
				count_jump(u, found, target);
		}
	}
}

/* Returns whether the code of `part` jumps to the middle of `other` often enough. */
static bool jumps_to(
	struct unwinder *u, const struct code_range *part, const struct code_range *other)
{
	struct candidates found = { .count = 1, .all = { { .range = *other } } };

	count_jumps(u, part, &found);
	return found.all[0].jumps >= JUMPS_MIN;
}

bool function_parts_find(struct unwinder *u, uint64_t entry, struct function_parts *parts)
{
	struct candidates found = { .count = 0 };
	struct code_range *const first = &parts->all[0];

	memset(parts, 0, sizeof *parts);
	if (!unwinder_find_function(u, entry, &first->begin, &first->end) ||
		first->begin != entry || first->end - entry > PART_BYTES_MAX)
		return false;
	count_jumps(u, first, &found);
	for (uint32_t i = 0; i < found.count; i++)
		if (found.all[i].jumps >= JUMPS_MIN &&
			found.all[i].range.end - found.all[i].range.begin <= PART_BYTES_MAX &&
			jumps_to(u, &found.all[i].range, first)) {
			parts->all[1] = found.all[i].range;
			break;
		}
	return true;
}

bool function_parts_has_frame(
	const struct function_parts *parts, const struct unwind_stack *stack, uint32_t i)
{
	const uint64_t address = stack->address[i] - (i > 0);

	return is_in(&parts->all[0], address) || is_in(&parts->all[1], address);
}

uint32_t function_parts_count_frames(
	const struct function_parts *parts, const struct unwind_stack *stack, uint32_t inner)
{
	uint32_t count = 0;

	for (uint32_t i = inner; i < stack->frames; i++)
		count += function_parts_has_frame(parts, stack, i);
	return count;
}
