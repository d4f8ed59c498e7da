/* CUDA arrays: an opaque handle, and behind it rows in linear memory. */
#include <stdlib.h>

#include "core/core.h"
#include "core/entry.h"

#define ARRAY_MAGIC 0x59415252u
#define PITCH_UNIT 512 /* bytes: the texture alignment */

size_t array_element(CUarray_format format, unsigned channels)
{
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return (size_t)2 * channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return (size_t)4 * channels;
	default:
		return 0;
	}
}

static size_t at_least_one(size_t n)
{
	return n ? n : 1;
}

/* One level; its memory is a block of its own. */
static CUresult level_init(struct array *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	size_t element = array_element(shape->Format, shape->NumChannels);

	if (element == 0 || shape->Width == 0)
		return CUDA_ERROR_INVALID_VALUE;
	array->width = shape->Width;
	array->height = shape->Height;
	array->depth = shape->Depth;
	array->format = shape->Format;
	array->channels = shape->NumChannels;
	array->flags = shape->Flags;
	array->pitch = (shape->Width * element + PITCH_UNIT - 1) / PITCH_UNIT * PITCH_UNIT;
	TRY(memory_alloc(&array->memory,
		array->pitch * at_least_one(shape->Height) * at_least_one(shape->Depth),
		BLOCK_ARRAY));
	array->magic = ARRAY_MAGIC;
	return CUDA_SUCCESS;
}

static size_t half(size_t n)
{
	return n > 1 ? n / 2 : n;
}

static CUresult levels_init(struct array *array, CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels)
{
	array->levels = zalloc(levels * sizeof(*array->levels));
	array->magic = ARRAY_MAGIC;
	for (; array->level_count < levels; array->level_count++) {
		TRY(level_init(&array->levels[array->level_count], &shape));
		shape.Width = half(shape.Width);
		shape.Height = half(shape.Height);
		shape.Depth = half(shape.Depth);
	}
	return CUDA_SUCCESS;
}

CUresult array_create(struct array **array, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned levels)
{
	struct array *made = zalloc(sizeof(*made));
	CUresult result = levels ? levels_init(made, *shape, levels) : level_init(made, shape);

	if (result != CUDA_SUCCESS) {
		made->magic = ARRAY_MAGIC;
		array_destroy(made);
		return result;
	}
	*array = made;
	return CUDA_SUCCESS;
}

bool array_valid(const struct array *array)
{
	return array && array->magic == ARRAY_MAGIC;
}

CUresult array_destroy(struct array *array)
{
	if (!array_valid(array))
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; i < array->level_count; i++)
		memory_free(array->levels[i].memory, BLOCK_ARRAY);
	memory_free(array->memory, BLOCK_ARRAY);
	array->magic = 0;
	free(array->levels);
	free(array);
	return CUDA_SUCCESS;
}
