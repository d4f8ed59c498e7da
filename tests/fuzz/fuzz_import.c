/* SPDX-License-Identifier: MIT
 * fuzz_import.c: what torch.profiler wrote: JSON, plain and packed. What is made of it is read to
 * its end by the views.
 *
 * The input: a byte that chooses the view, then the file.
 */
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/target.h"

#include <stdlib.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	return target_import(data, bytes);
}

static int is_packed(const uint8_t *data, size_t bytes)
{
	return bytes > 20 && data[1] == 0x1f && data[2] == 0x8b;
}

static size_t mutate_inside(uint8_t *text, size_t bytes, size_t room, struct dice *dice)
{
	return dice_below(dice, 3) ? mutate_json(text, bytes, room, dice)
				   : LLVMFuzzerMutate(text, bytes, room);
}

/* What is inside is changed, then packed again: so the sum behind it is right. */
static size_t mutate_packed(uint8_t *data, size_t bytes, size_t room, struct dice *dice)
{
	const size_t most = 8 * room;
	uint8_t *inside = malloc(most);
	z_stream stream = { .next_in = data + 1,
		.avail_in = (unsigned)(bytes - 1),
		.next_out = inside,
		.avail_out = (unsigned)most / 2 };
	size_t count;

	if (!inside || inflateInit2(&stream, 15 + 16) != Z_OK) {
		free(inside);
		return LLVMFuzzerMutate(data, bytes, room);
	}
	inflate(&stream, Z_FINISH);
	count = stream.total_out;
	inflateEnd(&stream);
	count = mutate_inside(inside, count, most, dice);
	stream = (z_stream){ .next_in = inside,
		.avail_in = (unsigned)count,
		.next_out = data + 1,
		.avail_out = (unsigned)room - 1 };
	if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK) {
		if (deflate(&stream, Z_FINISH) == Z_STREAM_END)
			bytes = 1 + stream.total_out;
		deflateEnd(&stream);
	}
	free(inside);
	return bytes;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed)
{
	struct dice dice = { seed };

	if (bytes > 1 && !dice_below(&dice, 8))
		data[0] = (uint8_t)dice_below(&dice, 256);
	if (is_packed(data, bytes) && dice_below(&dice, 4))
		return mutate_packed(data, bytes, room, &dice);
	if (bytes < 2 || is_packed(data, bytes))
		return LLVMFuzzerMutate(data, bytes, room);
	return 1 + mutate_inside(data + 1, bytes - 1, room - 1, &dice);
}
