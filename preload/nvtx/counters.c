/* SPDX-License-Identifier: MIT
 * The counter extension, for counters of one number. Samples of counter groups, which have a layout
 * of their own, are recorded without a value.
 */
#include "preload/nvtx/nvtx.h"

#include "collector/file/dictionary.h"
#include "collector/stream/held_records.h"
#include "collector/stream/stream.h"
#include "preload/nvtx/handles.h"

#include <string.h>

#define COUNTERS_MAX 4096u
#define FIRST_OWN_ID NVTX_COUNTER_ID_DYNAMIC_START

struct counter {
	uint64_t id; /* the program's id; stored last */
	uint32_t domain;
	uint32_t counter; /* the trace's id */
	uint64_t type;    /* an NVTX payload entry type, or the id of a schema */
};
#define TOO_MANY_COUNTERS \
	"more than 4096 NVTX counters were registered; the later ones are not recorded"
static struct counter counters[COUNTERS_MAX];
static uint32_t counter_count;

static const struct counter *find_counter(uint64_t id, uint32_t domain)
{
	uint32_t count = __atomic_load_n(&counter_count, __ATOMIC_ACQUIRE);

	if (id >= FIRST_OWN_ID)
		return id - FIRST_OWN_ID < count && id - FIRST_OWN_ID < COUNTERS_MAX
			       ? &counters[id - FIRST_OWN_ID]
			       : NULL;
	for (uint32_t i = 0; i < count && i < COUNTERS_MAX; i++)
		if (__atomic_load_n(&counters[i].id, __ATOMIC_ACQUIRE) == id &&
			counters[i].domain == domain)
			return &counters[i];
	return NULL;
}

static uint64_t choose_counter_id(const nvtxCounterAttr_t *attributes, uint32_t slot)
{
	return attributes->structSize >= sizeof *attributes && attributes->counterId
		       ? attributes->counterId
		       : FIRST_OWN_ID + slot;
}

static uint64_t NVTX_API counter_register(
	nvtxDomainHandle_t domain_handle, const nvtxCounterAttr_t *attributes)
{
	uint32_t domain = nvtx_domain_of(domain_handle), slot;
	const char *name = attributes && attributes->name ? attributes->name : "";
	uint64_t id;

	if (!attributes || !stream_enter_dictionary_only())
		return NVTX_COUNTER_ID_NONE;
	slot = __atomic_fetch_add(&counter_count, 1, __ATOMIC_ACQ_REL);
	if (slot >= COUNTERS_MAX) {
		meta_set("warning.nvtx_counters", TOO_MANY_COUNTERS);
		stream_leave();
		return NVTX_COUNTER_ID_NONE;
	}
	id = choose_counter_id(attributes, slot);
	counters[slot].domain = domain;
	counters[slot].type = attributes->schemaId;
	counters[slot].counter = counter_id(name_id_always(name, strlen(name)), domain, 0);
	__atomic_store_n(&counters[slot].id, id, __ATOMIC_RELEASE);
	stream_leave();
	return id;
}

static void record_sample(
	const struct counter *counter, enum trace_metric_type type, uint64_t value)
{
	struct trace_metric *record;
	struct signal_guard guard;

	if (!counter || !stream_enter())
		return;
	held_records_lock(&guard);
	record = stream_record(TRACE_METRIC, sizeof *record);
	if (record) {
		record->counter = counter->counter;
		record->type = (uint32_t)type;
		record->value = value;
		held_records_set(record->counter, record);
		stream_commit();
	}
	held_records_unlock(&guard);
	stream_leave();
}

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static void NVTX_API sample_int64(nvtxDomainHandle_t domain, uint64_t id, int64_t value)
{
	record_sample(find_counter(id, nvtx_domain_of(domain)), TRACE_METRIC_I64, (uint64_t)value);
}

static void NVTX_API sample_float64(nvtxDomainHandle_t domain, uint64_t id, double value)
{
	record_sample(
		find_counter(id, nvtx_domain_of(domain)), TRACE_METRIC_F64, double_bits(value));
}

static void NVTX_API sample_no_value(nvtxDomainHandle_t domain, uint64_t id, uint8_t reason)
{
	record_sample(find_counter(id, nvtx_domain_of(domain)), TRACE_METRIC_NONE, reason);
}

/* Returns the bits of an integer of `size` bytes, extended to 64 bits. */
static uint64_t integer_at(const void *value, size_t size, int is_signed)
{
	uint64_t bits = 0;

	memcpy(&bits, value, size);
	if (is_signed && size < 8 && bits >> (size * 8 - 1))
		bits |= ~(uint64_t)0 << (size * 8);
	return bits;
}

static int is_unsigned(uint64_t type)
{
	switch (type) {
	case NVTX_PAYLOAD_ENTRY_TYPE_UCHAR:
	case NVTX_PAYLOAD_ENTRY_TYPE_USHORT:
	case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
	case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
	case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
	case NVTX_PAYLOAD_ENTRY_TYPE_UINT8:
	case NVTX_PAYLOAD_ENTRY_TYPE_UINT16:
	case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
	case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
	case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
		return 1;
	}
	return 0;
}

static int is_integer(uint64_t type)
{
	return (type >= NVTX_PAYLOAD_ENTRY_TYPE_CHAR && type <= NVTX_PAYLOAD_ENTRY_TYPE_UINT64) ||
	       type == NVTX_PAYLOAD_ENTRY_TYPE_SIZE;
}

static bool is_float(uint64_t type)
{
	return type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT || type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32;
}

static bool is_double(uint64_t type)
{
	return type == NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE || type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64;
}

static void sample_at(const struct counter *counter, const void *value, size_t size)
{
	float narrow;
	double wide;

	if (!counter)
		return;
	if (value && is_integer(counter->type) && size >= 1 && size <= 8) {
		record_sample(counter, TRACE_METRIC_I64,
			integer_at(value, size, !is_unsigned(counter->type)));
	} else if (value && size == sizeof narrow && is_float(counter->type)) {
		memcpy(&narrow, value, sizeof narrow);
		record_sample(counter, TRACE_METRIC_F64, double_bits((double)narrow));
	} else if (value && size == sizeof wide && is_double(counter->type)) {
		memcpy(&wide, value, sizeof wide);
		record_sample(counter, TRACE_METRIC_F64, double_bits(wide));
	} else {
		meta_set("warning.nvtx_counters",
			"samples of NVTX counter groups are recorded without their values");
		record_sample(counter, TRACE_METRIC_NONE, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
	}
}

static void NVTX_API sample_value(
	nvtxDomainHandle_t domain, uint64_t id, const void *value, size_t size)
{
	sample_at(find_counter(id, nvtx_domain_of(domain)), value, size);
}

/* Samples with times of their own, which may be of any clock. One sample without a value is
 * recorded for the batch. */
static void NVTX_API batch_submit(nvtxDomainHandle_t domain, const nvtxCounterBatch_t *batch)
{
	if (batch)
		sample_at(find_counter(batch->counterId, nvtx_domain_of(domain)), NULL, 0);
}

const struct nvtx_extension_entry nvtx_counter_entries[] = {
	{ NVTX3EXT_CBID_nvtxCounterRegister, (intptr_t)counter_register },
	{ NVTX3EXT_CBID_nvtxCounterSampleInt64, (intptr_t)sample_int64 },
	{ NVTX3EXT_CBID_nvtxCounterSampleFloat64, (intptr_t)sample_float64 },
	{ NVTX3EXT_CBID_nvtxCounterSample, (intptr_t)sample_value },
	{ NVTX3EXT_CBID_nvtxCounterSampleNoValue, (intptr_t)sample_no_value },
	{ NVTX3EXT_CBID_nvtxCounterBatchSubmit, (intptr_t)batch_submit },
};
const unsigned nvtx_counter_entry_count = sizeof nvtx_counter_entries /
					  sizeof nvtx_counter_entries[0];
