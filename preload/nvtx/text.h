/* SPDX-License-Identifier: MIT
 * Converts the texts and attributes of an NVTX call to the collector's form.
 */
#ifndef PPERF_PRELOAD_NVTX_TEXT_H
#define PPERF_PRELOAD_NVTX_TEXT_H

#include "collector/stream/ranges.h"
#include "preload/nvtx/api.h"

/* A text that is valid during one call. Wide characters become UTF-8: lone surrogates three bytes,
 * as in WTF-8, and values that are no code point U+FFFD. */
struct nvtx_text {
	const char *chars; /* terminated; never NULL */
	char *allocated;   /* memory to free; NULL: none */
	size_t allocated_bytes;
	char inline_chars[256];
};

/* Each of the first three sets `text`, which nvtx_text_free() then frees. */
void nvtx_text_narrow(struct nvtx_text *text, const char *chars);
void nvtx_text_wide(struct nvtx_text *text, const wchar_t *chars);
void nvtx_text_message(struct nvtx_text *text, int32_t type, nvtxMessageValue_t message);
void nvtx_text_free(struct nvtx_text *text);

/* Reads an event's text and attributes. Fields beyond event->size are not read. Returns
 * `attributes`, or NULL if the event has none. */
const struct range_attributes *nvtx_event_read(const nvtxEventAttributes_t *event,
	struct nvtx_text *text, struct range_attributes *attributes);

#endif
