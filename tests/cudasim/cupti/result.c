/*
 * Names and texts of CUPTI's result codes.
 */
#include "cupti/parts.h"

struct text {
	CUptiResult code;
	const char *name;
	const char *message; /* NULL: the name says it */
};

#define PLAIN(code_)                          \
	{                                     \
		.code = code_, .name = #code_ \
	}
#define SAID(code_, message_)                                      \
	{                                                          \
		.code = code_, .name = #code_, .message = message_ \
	}

static const struct text texts[] = {
	PLAIN(CUPTI_SUCCESS),
	PLAIN(CUPTI_ERROR_INVALID_PARAMETER),
	SAID(CUPTI_ERROR_INVALID_DEVICE, "The device is not a valid CUDA device."),
	PLAIN(CUPTI_ERROR_INVALID_CONTEXT),
	PLAIN(CUPTI_ERROR_INVALID_OPERATION),
	PLAIN(CUPTI_ERROR_OUT_OF_MEMORY),
	PLAIN(CUPTI_ERROR_HARDWARE),
	PLAIN(CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT),
	PLAIN(CUPTI_ERROR_API_NOT_IMPLEMENTED),
	PLAIN(CUPTI_ERROR_MAX_LIMIT_REACHED),
	PLAIN(CUPTI_ERROR_NOT_READY),
	PLAIN(CUPTI_ERROR_NOT_COMPATIBLE),
	PLAIN(CUPTI_ERROR_NOT_INITIALIZED),
	PLAIN(CUPTI_ERROR_QUEUE_EMPTY),
	PLAIN(CUPTI_ERROR_INVALID_HANDLE),
	PLAIN(CUPTI_ERROR_INVALID_STREAM),
	PLAIN(CUPTI_ERROR_INVALID_KIND),
	PLAIN(CUPTI_ERROR_DISABLED),
	PLAIN(CUPTI_ERROR_INVALID_MODULE),
	PLAIN(CUPTI_ERROR_HARDWARE_BUSY),
	PLAIN(CUPTI_ERROR_NOT_SUPPORTED),
	PLAIN(CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED),
	SAID(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "The user does not have the privileges that are "
						  "needed to start a profiling session."),
	PLAIN(CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED),
	PLAIN(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED),
	PLAIN(CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED),
	PLAIN(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED),
	PLAIN(CUPTI_ERROR_UNKNOWN),
};

static const struct text *find(CUptiResult code)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		if (texts[i].code == code)
			return &texts[i];
	return NULL;
}

SIM_EXPORT CUptiResult cuptiGetResultString(CUptiResult result, const char **str)
{
	const struct text *text = find(result);

	entry_pure(__func__);
	if (!str)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*str = text ? text->name : "<unknown>";
	return text ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

static CUptiResult get_error_message(CUptiResult result, const char **str)
{
	const struct text *text = find(result);

	entry_pure("cuptiGetErrorMessage");
	if (!str)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*str = !text ? "<unknown>" : text->message ? text->message : text->name;
	return CUPTI_SUCCESS;
}
CUPTI_SINCE(CUPTI_12_2, cuptiGetErrorMessage, get_error_message)
