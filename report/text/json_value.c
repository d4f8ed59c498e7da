/* SPDX-License-Identifier: MIT
 * Converts the text of a JSON value: a string without its escapes, a number as an integer.
 */
#include "report/text/json_digits.h"

/* Converts eight digit values, one per byte, with the first digit in the lowest byte. */
static inline uint64_t parse_eight_digits(uint64_t digits)
{
	digits = digits * 10 + (digits >> 8);
	return ((digits & 0x000000ff000000ff) * 0x000f424000000064 +
		       (digits >> 16 & 0x000000ff000000ff) * 0x0000271000000001) >>
	       32;
}

/* Converts up to 16 digits, with JSON_SLACK readable bytes from `at` on. */
static inline uint64_t parse_up_to_16_digits(const char *at, unsigned count)
{
	uint64_t first, last, sum = 0;

	if (count == 0)
		return 0;
	if (count > 8) {
		memcpy(&first, at, sizeof first);
		sum = parse_eight_digits((first ^ 0x3030303030303030) << 8 * (16 - count)) *
		      100000000;
		memcpy(&last, at + count - 8, sizeof last);
		return sum + parse_eight_digits(last ^ 0x3030303030303030);
	}
	memcpy(&last, at, sizeof last);
	return parse_eight_digits((last ^ 0x3030303030303030) << 8 * (8 - count));
}

static int hex_digit(char byte)
{
	if (json_is_digit(byte))
		return byte - '0';
	byte |= 0x20;
	return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

/* Returns the value of the four digits after \u, or a negative number if they are not digits. */
static int32_t parse_hex_four(const char *at, const char *end)
{
	int32_t value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		const int digit = hex_digit(at[i]);

		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static char *put_code_point(char *out, uint32_t code)
{
	if (code < 0x80) {
		*out++ = (char)code;
		return out;
	}
	if (code < 0x800) {
		*out++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*out++ = (char)(0xe0 | code >> 12);
		} else {
			*out++ = (char)(0xf0 | code >> 18);
			*out++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*out++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*out++ = (char)(0x80 | (code & 0x3f));
	return out;
}

/* Skips the digits after \u, and a second surrogate that forms a pair with `*code`, which is
 * then combined. `at`: after \u. `*code`: the value of its four digits. */
static const char *join_surrogates(const char *at, const char *end, uint32_t *code)
{
	int32_t low;

	at += 4;
	if ((*code & 0xfc00) != 0xd800 || end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return at;
	low = parse_hex_four(at + 2, end);
	if (low < 0 || (low & 0xfc00) != 0xdc00)
		return at;
	*code = 0x10000 + ((*code & 0x3ff) << 10) + ((uint32_t)low & 0x3ff);
	return at + 6;
}

/* Sets `code` to the number of the \uXXXX at `at`. Returns false if there is none. */
static bool parse_unicode_escape(const char *at, const char *end, uint32_t *code)
{
	int32_t four = -1;

	if (*at == '\\' && at + 1 < end && at[1] == 'u')
		four = parse_hex_four(at + 2, end);
	*code = (uint32_t)four;
	return four >= 0;
}

size_t json_unescape(const struct json_text *text, char *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = text->bytes, *end = at + text->length, *known;
	char *begin = out;
	uint32_t code;

	while (at < end) {
		if (parse_unicode_escape(at, end, &code)) {
			at = join_surrogates(at + 2, end, &code);
			out = put_code_point(out, code);
		} else if (*at == '\\' && at + 1 < end && at[1] && (known = strchr(from, at[1]))) {
			*out++ = to[known - from];
			at += 2;
		} else {
			*out++ = *at++;
		}
	}
	return (size_t)(out - begin);
}

static bool parse_hexadecimal(const char *at, const char *end, uint64_t *value)
{
	*value = 0;
	if (at == end || end - at > 16)
		return false;
	for (; at < end; at++) {
		const int digit = hex_digit(*at);

		if (digit < 0)
			return false;
		*value = *value << 4 | (uint64_t)digit;
	}
	return true;
}

bool json_unsigned(const struct json_text *text, uint64_t *value)
{
	const char *at = text->bytes, *end = at + text->length;
	uint64_t sum = 0;

	if ((text->form != JSON_NUMBER && text->form != JSON_STRING) || at == end)
		return false;
	if (text->length > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		return parse_hexadecimal(at + 2, end, value);
	if (text->form == JSON_NUMBER && text->length <= 15 && skip_up_to_16_digits(at) == end) {
		*value = parse_up_to_16_digits(at, (unsigned)text->length);
		return true;
	}
	if (text->length <= 19) { /* any 19 digits fit */
		for (; at < end && json_is_digit(*at); at++)
			sum = sum * 10 + (uint64_t)(*at - '0');
		if (at == end)
			*value = sum;
		return at == end;
	}
	for (; at < end; at++)
		if (!json_is_digit(*at) || __builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
			__builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum))
			return false;
	*value = sum;
	return true;
}

bool json_signed(const struct json_text *text, int64_t *value)
{
	struct json_text plain = *text;
	const bool negative = text->length && *text->bytes == '-';
	uint64_t size = 0;

	plain.bytes += negative;
	plain.length -= negative;
	if (!json_unsigned(&plain, &size) || size > INT64_MAX)
		return false;
	*value = negative ? -(int64_t)size : (int64_t)size;
	return true;
}

static const uint64_t tens[] = { 1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
	1000000000 };

/* Converts a number such as 1414456661852.962, which has few digits and at most `power`
 * decimals. Returns false if it has another form. */
static inline bool scale_short_number(const struct json_text *text, int power, int64_t *value)
{
	const char *const end = text->bytes + text->length;
	const char *const point = skip_up_to_16_digits(text->bytes);
	uint64_t sum;
	int decimals = 0;

	if (text->length > 18 || power < 0 || power > 9 || point == text->bytes || point > end ||
		point - text->bytes > 16)
		return false;
	sum = parse_up_to_16_digits(text->bytes, (unsigned)(point - text->bytes));
	if (point < end) {
		decimals = (int)(end - point) - 1;
		if (*point != '.' || skip_up_to_16_digits(point + 1) != end || decimals > power)
			return false;
		sum = sum * tens[decimals] + parse_up_to_16_digits(point + 1, (unsigned)decimals);
	}
	power -= decimals;
	if (power > 0 && text->length > 18 - (size_t)power)
		return false;
	*value = (int64_t)(sum * tens[power]);
	return true;
}

/* The digits of a number. A decimal point may be among them. */
struct decimal_digits {
	const char *at, *end;
	int64_t scale; /* of the last digit: a power of ten */
	bool negative;
};

/* Reads a sign and the digits up to `end`. Returns false if there is anything else. Digits are
 * ignored once the exponent has reached a million: the number is 0 or too large then. */
static bool read_exponent(const char *at, const char *end, int64_t *exponent)
{
	const bool negative = at < end && *at == '-';

	at += at < end && (*at == '-' || *at == '+');
	*exponent = 0;
	if (at == end)
		return false;
	for (; at < end; at++) {
		if (!json_is_digit(*at))
			return false;
		if (*exponent < 1000000)
			*exponent = *exponent * 10 + (*at - '0');
	}
	if (negative)
		*exponent = -*exponent;
	return true;
}

static bool read_digits(const struct json_text *text, struct decimal_digits *digits)
{
	const char *end = text->bytes + text->length, *point = NULL, *at;
	int64_t exponent = 0;

	digits->negative = text->length && *text->bytes == '-';
	digits->at = at = text->bytes + digits->negative;
	for (; at < end && (json_is_digit(*at) || (*at == '.' && !point)); at++)
		if (*at == '.')
			point = at;
	digits->end = at;
	if (at == digits->at || (at < end && (*at | 0x20) != 'e') ||
		(at < end && !read_exponent(at + 1, end, &exponent)))
		return false;
	digits->scale = exponent - (point ? digits->end - point - 1 : 0);
	return true;
}

/* Rounds half to even. `first`: the first digit that is cut off. `more`: a later one is not 0. */
static void round_off(uint64_t *sum, int first, bool more)
{
	if (first > 5 || (first == 5 && (more || *sum & 1)))
		++*sum;
}

bool json_scaled(const struct json_text *text, int power, int64_t *value)
{
	struct decimal_digits digits;
	uint64_t sum = 0;
	int64_t left; /* digits of the result that are still to come, from the text or as zeros */
	int cut = 0;
	bool more = false;

	if (text->form != JSON_NUMBER && text->form != JSON_STRING)
		return false;
	if (scale_short_number(text, power, value))
		return true;
	if (!read_digits(text, &digits))
		return false;
	left = digits.scale + power;
	for (const char *at = digits.at; at < digits.end; at++)
		left += *at != '.';
	for (const char *at = digits.at; at < digits.end; at++) {
		if (*at == '.')
			continue;
		if (left > 0) {
			if (sum > (INT64_MAX - 9) / 10)
				return false;
			sum = sum * 10 + (uint64_t)(*at - '0');
		} else if (left == 0) {
			cut = *at - '0';
		} else {
			more |= *at != '0';
		}
		left--;
	}
	for (; left > 0; left--) {
		if (!sum)
			break;
		if (sum > (INT64_MAX - 9) / 10)
			return false;
		sum *= 10;
	}
	round_off(&sum, cut, more);
	*value = digits.negative ? -(int64_t)sum : (int64_t)sum;
	return true;
}
