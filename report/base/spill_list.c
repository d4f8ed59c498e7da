/* SPDX-License-Identifier: MIT
 * tape.c: see tape.h. The last entries are in memory, all before them in the file, in pieces of as many.
 */
#include "report/base/spill_list.h"

#include "report/base/alloc.h"
#include "report/base/error.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct tape {
	size_t bytes, most; /* of an entry; entries of a piece */
	const char *of;
	unsigned char *held;  /* the piece that is written, later the one that is read */
	size_t at, count;     /* of `held`: what was read; what is there */
	size_t pieces, piece; /* in the file; that were read */
	size_t last;          /* entries of the last piece */
	bool is_read;
	FILE *file;           /* NULL: all of it fits */
};

struct tape *tape_new(size_t bytes, const char *of)
{
	struct tape *tape = need(sizeof *tape);

	*tape = (struct tape){ .bytes = bytes, .most = TAPE_HELD / bytes, .of = of };
	tape->held = need(tape->most * bytes);
	return tape;
}

void tape_free(struct tape *tape)
{
	if (!tape)
		return;
	if (tape->file)
		fclose(tape->file);
	free(tape->held);
	free(tape);
}

static void put_away(struct tape *tape)
{
	if (!tape->file && !(tape->file = tmpfile()))
		fatal(STATUS_UNREADABLE, "no temporary file for %s; set TMPDIR to a folder with room:", tape->of);
	if (fwrite(tape->held, tape->bytes, tape->count, tape->file) != tape->count)
		fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be written:", tape->of);
	tape->pieces++;
	tape->last = tape->count;
	tape->count = 0;
}

void *tape_add(struct tape *tape)
{
	if (tape->count == tape->most)
		put_away(tape);
	return tape->held + tape->count++ * tape->bytes;
}

void tape_rewind(struct tape *tape)
{
	tape->at = 0;
	if (!tape->file)
		return;
	if (!tape->is_read && tape->count)
		put_away(tape);
	tape->is_read = true;
	if (fflush(tape->file) || fseek(tape->file, 0, SEEK_SET))
		fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be read:", tape->of);
	tape->piece = tape->count = 0;
}

/* The next piece from the file; false: there is none. */
static bool fetch(struct tape *tape)
{
	if (tape->piece == tape->pieces)
		return false;
	tape->count = ++tape->piece == tape->pieces ? tape->last : tape->most;
	tape->at = 0;
	if (fread(tape->held, tape->bytes, tape->count, tape->file) != tape->count)
		fatal(STATUS_UNREADABLE, "the temporary file for %s cannot be read:", tape->of);
	return true;
}

const void *tape_next(struct tape *tape)
{
	if (tape->at == tape->count && !fetch(tape))
		return NULL;
	return tape->held + tape->at++ * tape->bytes;
}
