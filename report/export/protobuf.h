/* SPDX-License-Identifier: MIT
 *
 * Writes protobuf messages (https://protobuf.dev/programming-guides/encoding): a message is built
 * in memory, and then written as a field of the one around it.
 */
#ifndef PPERF_REPORT_EXPORT_PROTOBUF_H
#define PPERF_REPORT_EXPORT_PROTOBUF_H

#include "report/base/text_builder.h"
#include "report/text/output.h"
#include "report/text/string_table.h"

/* A message that is built. Cleared by protobuf_clear, which keeps its memory. */
struct protobuf {
	struct text_builder bytes;
};

void protobuf_clear(struct protobuf *message);
void protobuf_free(struct protobuf *message);

/* Each adds a field. Zero is written as well, because repeated fields need it. */
void protobuf_number(struct protobuf *message, unsigned field, uint64_t value);
void protobuf_fixed64(struct protobuf *message, unsigned field, uint64_t value);
void protobuf_double(struct protobuf *message, unsigned field, double value);
void protobuf_text(struct protobuf *message, unsigned field, struct string_view text);
void protobuf_message(struct protobuf *message, unsigned field, const struct protobuf *inner);
/* Adds a number of a packed field, which protobuf_message then adds as a whole. */
void protobuf_packed(struct protobuf *message, uint64_t value);

/* Writes the message as a field of the outermost one. */
void protobuf_write(struct output *out, unsigned field, const struct protobuf *message);

#endif
