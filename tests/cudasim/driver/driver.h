/* What the driver_*.c files share: the API's types, its generated parameter structs, and its
 * macros. */
#ifndef DRIVER_H
#define DRIVER_H

#include <cuda.h>
#include <generated_cuda_meta.h>

#include "core/core.h"
#include "driver/table.h"
#include "core/entry.h"

/* The API's handles are pointers to the core's objects. */
#define HANDLE(type, handle) ((struct type *)(void *)(handle))

/* A plain copy of `bytes`. */
struct op copy_op(void *target, const void *source, size_t bytes, bool async);
/* A box, as the API describes it. */
CUresult box_op(const CUDA_MEMCPY3D *box, bool async, struct op *op);
struct op set_op(CUdeviceptr target, size_t pitch, uint32_t value, unsigned element, size_t width,
	size_t rows);
/* Submits it; a synchronous one, or one into pageable memory, waits for its end as the real one
 * does. */
CUresult copy_submit(const struct op *op, CUstream stream);

#endif
