/* SPDX-License-Identifier: MIT
 * cuDNN: the backend interface. Every descriptor is a bag that remembers what it is told and can be
 * asked for it; what decides about kernels goes into its `graph`. What was never set and must have
 * an answer is in `answer`.
 */
#include <stdlib.h>
#include <string.h>

#include "libraries/dnn_graph.h"

#define ENGINE_TEXT "{}"
#define SHARED_BYTES 49152 /* of a block of every kernel, as an engine says it */

struct attribute {
	int name, type;
	int64_t count;
	struct attribute *next;
	unsigned char value[];
};

struct bag {
	int type;
	struct attribute *attributes;
	struct dnn_graph graph;
};

/* Bytes of one value. */
static size_t width(int type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
	case CUDNN_TYPE_CHAR:
		return 1;
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_DOUBLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	case CUDNN_TYPE_FRACTION:
		return 16;
	default:
		return 4;
	}
}

static bool is_operation(int type)
{
	switch (type) {
	case 10: /* convolutions, pointwise, statistics */
	case 11:
	case 12:
	case 13:
	case 14:
	case 19: /* matmul */
	case 20:
	case 22:
	case 23:
	case 25: /* resampling, joining, signals, norms, reshape */
	case 26:
	case 27:
	case 28:
	case 29:
	case 30:
	case 31:
	case 33:
	case 35: /* paged caches, block scales */
	case 36:
	case 37:
		return true;
	default:
		return type >= 39; /* bands, attention, experts */
	}
}

DNN_API(cudnnBackendCreateDescriptor,
	(cudnnBackendDescriptorType_t descriptorType, cudnnBackendDescriptor_t *descriptor),
	(descriptorType, descriptor))
{
	cudnnStatus_t status = dnn_create(descriptor, sizeof(struct bag));
	struct bag *bag = *descriptor;

	if (status != CUDNN_STATUS_SUCCESS)
		return status;
	bag->type = (int)descriptorType;
	bag->graph.operation = is_operation(bag->type) ? bag->type : 0;
	bag->graph.matmuls = bag->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnBackendDestroyDescriptor, (cudnnBackendDescriptor_t descriptor), (descriptor))
{
	struct bag *bag = descriptor;

	for (struct attribute *next, *a = bag ? bag->attributes : NULL; a; a = next) {
		next = a->next;
		free(a);
	}
	return dnn_destroy(descriptor);
}

DNN_API(cudnnBackendInitialize, (cudnnBackendDescriptor_t descriptor), (descriptor))
{
	return descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

DNN_API(cudnnBackendFinalize, (cudnnBackendDescriptor_t descriptor), (descriptor))
{
	return descriptor ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* The shape of a tensor, from its attributes. */
static void take_shape(struct bag *bag, int name, int64_t count, const void *value)
{
	const int64_t *numbers = value;

	if (name == CUDNN_ATTR_TENSOR_DIMENSIONS) {
		bag->graph.elements = 1;
		for (int64_t i = 0; i < count; i++)
			bag->graph.elements *= numbers[i] > 0 ? (uint64_t)numbers[i] : 1;
	}
	if (name == CUDNN_ATTR_TENSOR_STRIDES)
		bag->graph.channels_first = count >= 4 && numbers[1] != 1;
	if (name == CUDNN_ATTR_TENSOR_DATA_TYPE)
		bag->graph.type = *(const cudnnDataType_t *)value;
	if (name == CUDNN_ATTR_TENSOR_IS_VIRTUAL)
		bag->graph.is_virtual = *(const bool *)value;
}

static void take(struct bag *bag, int name, int type, int64_t count, const void *value)
{
	struct bag *const *parts = value;

	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		for (int64_t i = 0; i < count; i++)
			if (parts[i])
				dnn_graph_merge(&bag->graph, &parts[i]->graph);
	if (bag->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR && type != CUDNN_TYPE_BACKEND_DESCRIPTOR)
		take_shape(bag, name, count, value);
}

DNN_API(cudnnBackendSetAttribute,
	(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t attributeName,
		cudnnBackendAttributeType_t attributeType, int64_t elementCount,
		const void *arrayOfElements),
	(descriptor, attributeName, attributeType, elementCount, arrayOfElements))
{
	struct bag *bag = descriptor;
	size_t bytes = (size_t)elementCount * width((int)attributeType);
	struct attribute *attribute;

	if (!bag || elementCount < 0 || (elementCount > 0 && !arrayOfElements))
		return CUDNN_STATUS_BAD_PARAM;
	attribute = library_new(sizeof(*attribute) + bytes);
	if (!attribute)
		return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	attribute->name = (int)attributeName;
	attribute->type = (int)attributeType;
	attribute->count = elementCount;
	attribute->next = bag->attributes; /* found before what it replaces */
	bag->attributes = attribute;
	if (elementCount == 0)
		return CUDNN_STATUS_SUCCESS;
	memcpy(attribute->value, arrayOfElements, bytes);
	take(bag, attribute->name, attribute->type, elementCount, arrayOfElements);
	return CUDNN_STATUS_SUCCESS;
}

/* Descriptors that the caller made are filled. Every graph has one engine: which of two would win a
 * measurement is not the same in every run. */
static int64_t fill(const struct bag *bag, int name, int64_t room, void *array)
{
	struct bag **parts = array;

	if (name != CUDNN_ATTR_ENGINEHEUR_RESULTS && name != CUDNN_ATTR_ENGINECFG_ENGINE)
		return 0;
	if (parts && room > 0 && parts[0])
		parts[0]->graph = bag->graph;
	return 1;
}

static int64_t give(const void *value, size_t bytes, int64_t count, int64_t room, void *array)
{
	if (array && room > 0)
		memcpy(array, value, bytes * (size_t)(room < count ? room : count));
	return count;
}

static int64_t answer(int name, int type, int64_t room, void *array)
{
	int64_t number = 0;

	switch (name) {
	case CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
		number = 1;
		break;
	case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
		number = SHARED_BYTES;
		break;
	case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
	case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
	case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
		break;
	case CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION:
		return give(ENGINE_TEXT, 1, sizeof(ENGINE_TEXT), room, array);
	default:
		return 0;
	}
	/* The low bytes come first, so a narrower number is in place too. */
	return give(&number, width(type), 1, room, array);
}

DNN_API(cudnnBackendGetAttribute,
	(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t attributeName,
		cudnnBackendAttributeType_t attributeType, int64_t requestedElementCount,
		int64_t *elementCount, void *arrayOfElements),
	(descriptor, attributeName, attributeType, requestedElementCount, elementCount,
		arrayOfElements))
{
	const struct bag *bag = descriptor;
	int name = (int)attributeName, type = (int)attributeType;
	const struct attribute *a = bag ? bag->attributes : NULL;
	int64_t count;

	if (!bag)
		return CUDNN_STATUS_BAD_PARAM;
	while (a && (a->name != name || a->type != type))
		a = a->next;
	if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		count = fill(bag, name, requestedElementCount, arrayOfElements);
	else if (a)
		count = give(
			a->value, width(type), a->count, requestedElementCount, arrayOfElements);
	else
		count = answer(name, type, requestedElementCount, arrayOfElements);
	if (elementCount)
		*elementCount = count;
	return CUDNN_STATUS_SUCCESS;
}

DNN_API(cudnnBackendExecute,
	(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
		cudnnBackendDescriptor_t variantPack),
	(handle, executionPlan, variantPack))
{
	const struct bag *plan = executionPlan;

	return plan && variantPack ? dnn_graph_run(&plan->graph, handle) : CUDNN_STATUS_BAD_PARAM;
}
