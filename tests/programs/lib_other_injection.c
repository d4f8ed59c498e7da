/* SPDX-License-Identifier: MIT
 * Another tool that has set NVTX_INJECTION64_PATH for itself. Writes to the file $OTHER_TOOL what
 * it was called with, in order of the calls; its ranges' levels begin at 100. With $OTHER_TOOL_SLOW
 * it takes its time to start.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <nvtx3/nvToolsExt.h>

static __thread int level = 100;
static FILE *output;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
	va_list arguments;

	if (!output)
		return;
	va_start(arguments, format);
	vfprintf(output, format, arguments);
	va_end(arguments);
}

static int NVTX_API push(const char *message)
{
	note("push %s\n", message);
	return level++;
}

static int NVTX_API pop(void)
{
	note("pop\n");
	return --level;
}

static void NVTX_API mark(const char *message)
{
	note("mark %s\n", message);
}

static nvtxRangeId_t NVTX_API start(const char *message)
{
	note("start %s\n", message);
	return 4711;
}

static void NVTX_API end(nvtxRangeId_t id)
{
	note("end %llu\n", (unsigned long long)id);
}

static nvtxDomainHandle_t NVTX_API create(const char *name)
{
	note("domain %s\n", name);
	return (nvtxDomainHandle_t)(void *)&output;
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *string)
{
	static char handles[1000];
	static int count;

	(void)domain;
	note("register %s\n", string);
	return (nvtxStringHandle_t)(void *)&handles[count++ % 1000];
}

static nvtxStringHandle_t NVTX_API register_wide(nvtxDomainHandle_t domain, const wchar_t *string)
{
	(void)string;
	return register_string(domain, "a wide string");
}

static int NVTX_API domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes)
{
	int type = attributes->messageType;

	note("%s push, message type %d: %s\n",
		(void *)domain == (void *)&output ? "its domain's" : "a foreign domain's", type,
		type == NVTX_MESSAGE_TYPE_ASCII ? attributes->message.ascii : "");
	return 200;
}

static int NVTX_API domain_pop(nvtxDomainHandle_t domain)
{
	note("%s pop\n", (void *)domain == (void *)&output ? "its domain's" : "a foreign domain's");
	return 200;
}

__attribute__((visibility("default"))) int NVTX_API InitializeInjectionNvtx2(
	NvtxGetExportTableFunc_t get);

int NVTX_API InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable core, core2;
	unsigned core_size, core2_size;

	if (!output)
		output = fopen(getenv("OTHER_TOOL"), "we");
	if (getenv("OTHER_TOOL_SLOW"))
		usleep(200000);
	if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core, &core_size) ||
		!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &core2, &core2_size))
		return 0;
	*core[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*core[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	*core[NVTX_CBID_CORE_MarkA] = (NvtxFunctionPointer)mark;
	*core[NVTX_CBID_CORE_RangeStartA] = (NvtxFunctionPointer)start;
	*core[NVTX_CBID_CORE_RangeEnd] = (NvtxFunctionPointer)end;
	*core2[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
	*core2[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
	*core2[NVTX_CBID_CORE2_DomainRegisterStringW] = (NvtxFunctionPointer)register_wide;
	*core2[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)domain_push;
	*core2[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)domain_pop;
	return 1;
}
