/* SPDX-License-Identifier: MIT
 * Puts the samples of a payload in the order of the moments at which they were taken.
 *
 * The sampler writes a SAMPLE a while after it was taken (`ago` ticks), so the records of its
 * stream are in the order in which they were written. The reader returns each of them when it was
 * taken, between the events of the other threads.
 */
#ifndef PPERF_REPORT_TRACE_SAMPLE_ORDER_H
#define PPERF_REPORT_TRACE_SAMPLE_ORDER_H

#include "report/trace/trace_blocks.h"

/* A copy of a payload in another order. Initialise it with zeros. */
struct ordered_payload {
	unsigned char *bytes; /* NULL: no payload had a reason for a copy so far */
	size_t room;
	struct moved_record *records; /* private: memory for the next payload */
	size_t record_room;
};

/* If the payload has samples, sorts its records, and makes `payload` refer to the copy in
 * `ordered`. In the copy, `stamp` of a SAMPLE is when it was taken, and stamp + ago when it was
 * written. No record comes before the stamp `floor`, with which the payload before ended. A payload
 * without samples, or with records that depend on those before them, stays as it is. Samples with a
 * node below `left_out_nodes` are left out, except where the copy begins or ends with one, so that
 * it ends at the same moment. */
void sample_order(struct block_payload *payload, struct ordered_payload *ordered, uint64_t floor,
	uint32_t left_out_nodes);
void ordered_payload_free(struct ordered_payload *ordered);

#endif
