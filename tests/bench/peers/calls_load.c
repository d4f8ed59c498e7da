/* SPDX-License-Identifier: MIT
 * The load (load.h) as calls of 1000 functions, which is what uftrace records: each calls the next,
 * five deep. Built with
 * -finstrument-functions, from which chain() itself is left out.
 */
__attribute__((no_instrument_function)) static inline void chain(unsigned first);

#include "tests/bench/load.h"

static void (*const functions[NAMES])(unsigned deeper);
static __thread volatile unsigned reached;

/* The names differ in their last three digits; the 1 keeps those from being octal. */
#define ONE(hundred, ten, one)                                                            \
	static void transformer_layer_##hundred##ten##_attention_##one(unsigned deeper)   \
	{                                                                                 \
		if (deeper)                                                               \
			functions[(1##hundred##ten##one - 1000 + 1) % NAMES](deeper - 1); \
		reached = deeper;                                                         \
	}
#define TEN(hundred, ten)                                                                   \
	ONE(hundred, ten, 0)                                                                \
	ONE(hundred, ten, 1)                                                                \
	ONE(hundred, ten, 2)                                                                \
	ONE(hundred, ten, 3)                                                                \
	ONE(hundred, ten, 4) ONE(hundred, ten, 5) ONE(hundred, ten, 6) ONE(hundred, ten, 7) \
		ONE(hundred, ten, 8) ONE(hundred, ten, 9)
#define HUNDRED(hundred)                                                                \
	TEN(hundred, 0)                                                                 \
	TEN(hundred, 1)                                                                 \
	TEN(hundred, 2)                                                                 \
	TEN(hundred, 3)                                                                 \
	TEN(hundred, 4) TEN(hundred, 5) TEN(hundred, 6) TEN(hundred, 7) TEN(hundred, 8) \
		TEN(hundred, 9)
#define THOUSAND   \
	HUNDRED(0) \
	HUNDRED(1) \
	HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5) HUNDRED(6) HUNDRED(7) HUNDRED(8) HUNDRED(9)

THOUSAND

#undef ONE
#define ONE(hundred, ten, one) transformer_layer_##hundred##ten##_attention_##one,

static void (*const functions[NAMES])(unsigned deeper) = { THOUSAND };

static inline void chain(unsigned first)
{
	functions[first](DEPTH - 1);
}
