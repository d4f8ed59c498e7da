/* SPDX-License-Identifier: MIT */
#include "report/text/format_number.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

static const struct scale time_scales[] = { { 1000000000, "s" }, { 1000000, "ms" },
	{ 1000, "\xc2\xb5s" }, { 1, "ns" } };
static const struct scale byte_scales[] = { { 1000000000000, "TB" }, { 1000000000, "GB" },
	{ 1000000, "MB" }, { 1000, "kB" }, { 1, "B" } };
static const struct scale iec_scales[] = { { UINT64_C(1) << 40, "TiB" }, { 1 << 30, "GiB" },
	{ 1 << 20, "MiB" }, { 1 << 10, "KiB" }, { 1, "B" } };

static const struct scale flop_scales[] = { { 1000000000000000, "PFLOP" },
	{ 1000000000000, "TFLOP" }, { 1000000000, "GFLOP" }, { 1000000, "MFLOP" },
	{ 1000, "kFLOP" }, { 1, "FLOP" } };
static const struct scale flop_rates[] = { { 1000000000000000, "PFLOP/s" },
	{ 1000000000000, "TFLOP/s" }, { 1000000000, "GFLOP/s" }, { 1000000, "MFLOP/s" },
	{ 1000, "kFLOP/s" }, { 1, "FLOP/s" } };
static const struct scale byte_rates[] = { { 1000000000000, "TB/s" }, { 1000000000, "GB/s" },
	{ 1000000, "MB/s" }, { 1000, "kB/s" }, { 1, "B/s" } };

/* Returns NULL if figures of this unit are printed without a scale. */
static const struct scale *unit_scales(enum unit unit, bool iec)
{
	switch (unit) {
	case UNIT_TIME:
		return time_scales;
	case UNIT_BYTES:
		return iec ? iec_scales : byte_scales;
	case UNIT_FLOPS:
		return flop_scales;
	case UNIT_FLOP_RATE:
		return flop_rates;
	case UNIT_BYTE_RATE:
		return byte_rates;
	default:
		return NULL;
	}
}

struct scale scale_for(enum unit unit, uint64_t largest, bool iec, bool ascii)
{
	const struct scale *scale = unit_scales(unit, iec);

	if (!scale)
		return (struct scale){ 1, "" };
	while (scale->divisor > 1 && scale->divisor > largest)
		scale++;
	if (ascii && scale->name[0] == '\xc2')
		return (struct scale){ scale->divisor, "us" };
	return *scale;
}

static size_t format_digits(char *out, uint128 value, unsigned decimals)
{
	char reversed[FORMAT_NUMBER_BYTES];
	size_t count = 0, length = 0;

	do {
		reversed[count++] = (char)('0' + (int)(value % 10));
		value /= 10;
		if (count == decimals)
			reversed[count++] = '.';
	} while (value || count <= decimals + (decimals > 0));
	while (count)
		out[length++] = reversed[--count];
	out[length] = '\0';
	return length;
}

size_t format_unsigned(char *out, uint64_t value, uint64_t divisor, unsigned decimals)
{
	uint128 scaled = value, rest;

	assert(decimals <= 9 && divisor > 0);
	for (unsigned i = 0; i < decimals; i++)
		scaled *= 10;
	rest = scaled % divisor;
	scaled /= divisor;
	if (rest * 2 > divisor || (rest * 2 == divisor && scaled % 2))
		scaled++;
	return format_digits(out, scaled, decimals);
}

size_t format_fixed(char *out, int64_t value, uint64_t divisor, unsigned decimals)
{
	size_t length;

	if (value >= 0)
		return format_unsigned(out, (uint64_t)value, divisor, decimals);
	length = 1 + format_unsigned(out + 1, 0 - (uint64_t)value, divisor, decimals);
	out[0] = '-';
	if (strspn(out + 1, "0.") == length - 1) { /* removes the sign of -0.00 */
		memmove(out, out + 1, length);
		length--;
	}
	return length;
}

uint64_t clamp_to_u64(long double value)
{
	return value >= 0x1p64L ? UINT64_MAX : value >= 0 ? (uint64_t)value : 0;
}

int64_t clamp_to_i64(long double value)
{
	if (isnan(value))
		return 0;
	return value >= 0x1p63L ? INT64_MAX : value <= -0x1p63L ? INT64_MIN : (int64_t)value;
}

size_t format_real(char *out, long double value, unsigned decimals)
{
	const long double size = value < 0 ? -value : value;
	const int length = snprintf(out, FORMAT_NUMBER_BYTES, size < 1e15L ? "%.*Lf" : "%.*Lg",
		size < 1e15L ? (int)decimals : 9, value);

	if (out[0] == '-' && strspn(out + 1, "0.") == (size_t)length - 1) {
		memmove(out, out + 1, (size_t)length);
		return (size_t)length - 1;
	}
	return (size_t)length;
}

size_t format_percent(char *out, int64_t part, int64_t whole)
{
	const bool negative = (part < 0) != (whole < 0) && part != 0;
	uint128 share = part < 0 ? 0 - (uint64_t)part : (uint64_t)part;
	const uint128 of = whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole;
	uint128 rest;

	if (of == 0)
		return (size_t)snprintf(out, FORMAT_NUMBER_BYTES, "0 %%");
	share *= 1000;
	rest = share % of;
	share /= of;
	if (rest * 2 > of || (rest * 2 == of && share % 2))
		share++;
	if (share == 1000)
		return (size_t)snprintf(out, FORMAT_NUMBER_BYTES, "%s100 %%", negative ? "-" : "");
	return (size_t)snprintf(out, FORMAT_NUMBER_BYTES, "%s%llu.%u %%", negative ? "-" : "",
		(unsigned long long)(share / 10), (unsigned)(share % 10));
}

static size_t format_count(char *out, int64_t value)
{
	char plain[FORMAT_NUMBER_BYTES];
	const size_t length = format_fixed(plain, value, 1, 0), sign = value < 0;
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		if (i > sign && (length - i) % 3 == 0)
			out[used++] = ',';
		out[used++] = plain[i];
	}
	out[used] = '\0';
	return used;
}

size_t format_with_unit(char *out, enum unit unit, int64_t value, bool iec, bool ascii)
{
	const uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	const struct scale scale = scale_for(unit, size, iec, ascii);
	size_t length;

	if (unit == UNIT_ID)
		return (size_t)snprintf(out, FORMAT_NUMBER_BYTES, "%lld", (long long)value);
	if (!unit_scales(unit, iec))
		return format_count(out, value);
	length = format_fixed(out, value, scale.divisor, scale.divisor == 1 ? 0 : 2);
	return length +
	       (size_t)snprintf(out + length, FORMAT_NUMBER_BYTES - length, " %s", scale.name);
}
