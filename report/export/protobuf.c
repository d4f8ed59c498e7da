/* SPDX-License-Identifier: MIT */
#include "report/export/protobuf.h"
#include "report/base/alloc.h"
#include <stdlib.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

#define VARINT_BYTES_MAX 10u

void protobuf_clear(struct protobuf *message)
{
	message->bytes.used = 0;
}

void protobuf_free(struct protobuf *message)
{
	free(message->bytes.text);
	*message = (struct protobuf){ { NULL, 0, 0 } };
}

/* Writes seven bits in each byte, the lowest first. Returns where the number ends. */
static char *put_varint(char *at, uint64_t value)
{
	while (value > 0x7f) {
		*at++ = (char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (char)value;
	return at;
}

/* Returns the end of the message, behind which there is room for `bytes` bytes. */
static char *reserve(struct protobuf *message, size_t bytes)
{
	if (message->bytes.room - message->bytes.used < bytes)
		ARRAY_GROW(message->bytes.text, message->bytes.room, message->bytes.used + bytes);
	return message->bytes.text + message->bytes.used;
}

static void end_at(struct protobuf *message, const char *end)
{
	message->bytes.used = (size_t)(end - message->bytes.text);
}

static uint64_t key_of(unsigned field, enum wire_type type)
{
	return (uint64_t)field << 3 | type;
}

void protobuf_packed(struct protobuf *message, uint64_t value)
{
	end_at(message, put_varint(reserve(message, VARINT_BYTES_MAX), value));
}

void protobuf_number(struct protobuf *message, unsigned field, uint64_t value)
{
	char *at = put_varint(reserve(message, 2 * VARINT_BYTES_MAX), key_of(field, WIRE_VARINT));

	end_at(message, put_varint(at, value));
}

void protobuf_fixed64(struct protobuf *message, unsigned field, uint64_t value)
{
	char *at = put_varint(reserve(message, VARINT_BYTES_MAX + 8), key_of(field, WIRE_FIXED64));

	for (unsigned i = 0; i < 8; i++)
		*at++ = (char)(value >> 8 * i);
	end_at(message, at);
}

void protobuf_double(struct protobuf *message, unsigned field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	protobuf_fixed64(message, field, bits);
}

static void add_bytes(struct protobuf *message, unsigned field, const char *bytes, size_t count)
{
	char *at = put_varint(
		reserve(message, 2 * VARINT_BYTES_MAX + count), key_of(field, WIRE_BYTES));

	at = put_varint(at, count);
	if (count)
		memcpy(at, bytes, count);
	end_at(message, at + count);
}

void protobuf_text(struct protobuf *message, unsigned field, struct string_view text)
{
	add_bytes(message, field, text.bytes, text.length);
}

void protobuf_message(struct protobuf *message, unsigned field, const struct protobuf *inner)
{
	add_bytes(message, field, inner->bytes.text, inner->bytes.used);
}

void protobuf_write(struct output *out, unsigned field, const struct protobuf *message)
{
	char head[2 * VARINT_BYTES_MAX];
	const char *end = put_varint(
		put_varint(head, key_of(field, WIRE_BYTES)), message->bytes.used);

	output_bytes(out, head, (size_t)(end - head));
	output_bytes(out, message->bytes.text, message->bytes.used);
}
