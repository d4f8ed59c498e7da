/* SPDX-License-Identifier: MIT */
#include "report/export/protobuf.h"
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

/* Returns the number of bytes: seven bits in each, the lowest first. */
static size_t encode_varint(uint64_t value, char out[VARINT_BYTES_MAX])
{
	size_t count = 0;

	while (value > 0x7f) {
		out[count++] = (char)(value | 0x80);
		value >>= 7;
	}
	out[count++] = (char)value;
	return count;
}

void protobuf_packed(struct protobuf *message, uint64_t value)
{
	char bytes[VARINT_BYTES_MAX];

	text_add_bytes(&message->bytes, bytes, encode_varint(value, bytes));
}

static void add_key(struct protobuf *message, unsigned field, enum wire_type type)
{
	protobuf_packed(message, (uint64_t)field << 3 | type);
}

void protobuf_number(struct protobuf *message, unsigned field, uint64_t value)
{
	add_key(message, field, WIRE_VARINT);
	protobuf_packed(message, value);
}

void protobuf_fixed64(struct protobuf *message, unsigned field, uint64_t value)
{
	char bytes[8];

	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (char)(value >> 8 * i);
	add_key(message, field, WIRE_FIXED64);
	text_add_bytes(&message->bytes, bytes, sizeof bytes);
}

void protobuf_double(struct protobuf *message, unsigned field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	protobuf_fixed64(message, field, bits);
}

void protobuf_text(struct protobuf *message, unsigned field, struct string_view text)
{
	add_key(message, field, WIRE_BYTES);
	protobuf_packed(message, text.length);
	text_add_bytes(&message->bytes, text.bytes, text.length);
}

void protobuf_message(struct protobuf *message, unsigned field, const struct protobuf *inner)
{
	add_key(message, field, WIRE_BYTES);
	protobuf_packed(message, inner->bytes.used);
	text_add_bytes(&message->bytes, inner->bytes.text, inner->bytes.used);
}

void protobuf_write(struct output *out, unsigned field, const struct protobuf *message)
{
	char bytes[VARINT_BYTES_MAX];

	output_bytes(out, bytes, encode_varint((uint64_t)field << 3 | WIRE_BYTES, bytes));
	output_bytes(out, bytes, encode_varint(message->bytes.used, bytes));
	output_bytes(out, message->bytes.text, message->bytes.used);
}
