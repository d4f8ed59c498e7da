/*
 * Asserts cupti_layout.h against the real headers: every field on the structs of CUDA 12.0 and on
 * the newest that the headers know, every length on its own struct. Nothing is compiled into the
 * library.
 */
#include "cupti/layout.h"

/* The structs of CUDA 12.0, which newer headers keep. */
#define OLD_Kernel CUpti_ActivityKernel9
#define OLD_Memcpy CUpti_ActivityMemcpy5
#define OLD_MemcpyPtoP CUpti_ActivityMemcpyPtoP4
#define OLD_Memset CUpti_ActivityMemset4
#define OLD_Memory CUpti_ActivityMemory3
#define OLD_API CUpti_ActivityAPI
#define OLD_ExternalCorrelation CUpti_ActivityExternalCorrelation
#define OLD_Overhead CUpti_ActivityOverhead
#define OLD_Synchronization CUpti_ActivitySynchronization
#define OLD_CudaEvent CUpti_ActivityCudaEvent
#define OLD_GraphTrace CUpti_ActivityGraphTrace
#define OLD_Device CUpti_ActivityDevice4
#define OLD_Context CUpti_ActivityContext
#define OLD_Stream CUpti_ActivityStream

#define SAME(type, member, offset, field_type)                                                    \
	static_assert(offsetof(type, member) == (offset), #type "." #member " moved");            \
	static_assert(sizeof(((type *)0)->member) == sizeof(field_type), #type "." #member " gre" \
									       "w");
#define SAME_OLD(record, member, offset, type) SAME(OLD_##record, member, offset, type)
#define SAME_OLD_NESTED(record, name, member, offset, type) SAME(OLD_##record, member, offset, type)
CUPTI_FIELDS_19(SAME_OLD)
CUPTI_NESTED_19(SAME_OLD_NESTED)

#define SAME_LENGTH(kind, record, struct_, bytes, since)                                      \
	static_assert(sizeof(CUpti_Activity##struct_) == (bytes), "the length of " #struct_); \
	static_assert((bytes) <= CUPTI_RECORD_MAX && (bytes) % 8 == 0, "record buffers hold it");
CUPTI_LENGTHS_12(SAME_LENGTH)

#if CUPTI_API_VERSION >= 130000
#define NEW_Kernel CUpti_ActivityKernel10
#define NEW_Memcpy CUpti_ActivityMemcpy6
#define NEW_MemcpyPtoP CUpti_ActivityMemcpyPtoP4
#define NEW_Memset CUpti_ActivityMemset4
#define NEW_Memory CUpti_ActivityMemory4
#define NEW_API CUpti_ActivityAPI
#define NEW_ExternalCorrelation CUpti_ActivityExternalCorrelation
#define NEW_Overhead CUpti_ActivityOverhead3
#define NEW_Synchronization CUpti_ActivitySynchronization2
#define NEW_CudaEvent CUpti_ActivityCudaEvent2
#define NEW_GraphTrace CUpti_ActivityGraphTrace2
#define NEW_Device CUpti_ActivityDevice5
#define NEW_Context CUpti_ActivityContext3
#define NEW_Stream CUpti_ActivityStream
#define SAME_NEW(record, member, offset, type) SAME(NEW_##record, member, offset, type)
#define SAME_NEW_NESTED(record, name, member, offset, type) SAME(NEW_##record, member, offset, type)
CUPTI_FIELDS(SAME_NEW)
CUPTI_NESTED_19(SAME_NEW_NESTED)
CUPTI_LENGTHS(SAME_LENGTH)
#endif
