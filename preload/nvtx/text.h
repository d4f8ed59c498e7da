/* SPDX-License-Identifier: MIT
 * nvtx_text.h: the texts and attributes of an NVTX call, as the collector wants them.
 */
#ifndef PPERF_PRELOAD_NVTX_TEXT_H
#define PPERF_PRELOAD_NVTX_TEXT_H

#include "collector/stream/ranges.h"
#include "preload/nvtx/api.h"

/* A text for the length of one call. Wide ones are turned into UTF-8 (surrogates standing alone as three bytes, as in WTF-8;
 * what is no code point as U+FFFD). */
struct nvtx_text {
	const char *chars; /* terminated; never NULL */
	char *fetched;     /* memory to give back */
	size_t fetched_bytes;
	char small[256];
};

void nvtx_text_narrow(struct nvtx_text *text, const char *chars);
void nvtx_text_wide(struct nvtx_text *text, const wchar_t *chars);
void nvtx_text_message(struct nvtx_text *text, int32_t type, nvtxMessageValue_t message);
void nvtx_text_free(struct nvtx_text *text);

/* An event's text and attributes; fields beyond attributes->size are not read. The result is `attributes` filled, or NULL if the event has none. */
const struct range_attributes *nvtx_event_read(const nvtxEventAttributes_t *event,
	struct nvtx_text *text, struct range_attributes *attributes);

#endif
