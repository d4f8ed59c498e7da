/* SPDX-License-Identifier: MIT
 * Reads a Python pickle of plain data: dictionaries, lists, tuples, texts, numbers, True, False and
 * None. Nothing is executed: an opcode that names or calls a class or a function is refused, and so
 * is every other opcode that plain data do not need.
 *
 *	struct pickle *pickle = pickle_read(bytes, length, problem, sizeof problem);
 *	uint32_t segments = pickle_member(pickle, pickle_root(pickle), "segments");
 *
 *	for (uint32_t i = 0; i < pickle_count(pickle, segments); i++)
 *		pickle_member(pickle, pickle_item(pickle, segments, i), "address") ...
 *
 * A value is a number from 1. 0 is no value, and every function may be called with it. Values may
 * be shared, and a list may contain itself: a caller must not follow values without a limit.
 *
 * Memory: 32 bytes for each opcode that makes a value, and 4 to 16 for each entry of a list or a
 * dictionary. The bytes must outlive the pickle, which refers to their texts.
 */
#ifndef PPERF_REPORT_TEXT_PICKLE_READER_H
#define PPERF_REPORT_TEXT_PICKLE_READER_H

#include "report/text/string_table.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pickle;

/* Returns NULL with the end of a sentence that begins with "it" in `problem` if the bytes are no
 * such pickle, or more than 2 GiB. */
struct pickle *pickle_read(
	const unsigned char *bytes, size_t length, char *problem, size_t problem_bytes);
void pickle_free(struct pickle *pickle);

uint32_t pickle_root(const struct pickle *pickle);
/* Returns the number of items of a list or tuple, or of entries of a dictionary; else 0. */
uint32_t pickle_count(const struct pickle *pickle, uint32_t value);
/* Returns an item of a list or tuple; 0: there is none. */
uint32_t pickle_item(const struct pickle *pickle, uint32_t value, uint32_t index);
/* Returns the value of the last entry with this key; 0: there is none, or 256 others follow. */
uint32_t pickle_member(const struct pickle *pickle, uint32_t value, const char *key);
/* Returns false if the value is no integer, or no integer of 64 bits. True and False are 1 and 0.
 * An unsigned integer above INT64_MAX, such as an address, wraps around. */
bool pickle_integer(const struct pickle *pickle, uint32_t value, int64_t *integer);
/* Returns the text; of any other value an empty one, whose `bytes` are NULL. */
struct string_view pickle_text(const struct pickle *pickle, uint32_t value);

#endif
