/* SPDX-License-Identifier: MIT
 * Skips decimal digits, 16 at a time. For json_scanner.c and json_value.c only. JSON_SLACK bytes
 * from `at` on must be readable.
 */
#ifndef PPERF_REPORT_TEXT_JSON_DIGITS_H
#define PPERF_REPORT_TEXT_JSON_DIGITS_H

#include "report/text/json_scanner.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline bool json_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static inline const char *skip_digits(const char *at)
{
	while (json_is_digit(*at))
		at++;
	return at;
}

/* Skips up to 16 digits. */
static inline const char *skip_up_to_16_digits(const char *at)
{
#if defined(__SSE2__)
	const __m128i values = _mm_sub_epi8(
		_mm_loadu_si128((const __m128i *)(const void *)at), _mm_set1_epi8('0'));
	const __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);

	return at + __builtin_ctz(~(unsigned)_mm_movemask_epi8(digits));
#else
	return skip_digits(at);
#endif
}

#endif
