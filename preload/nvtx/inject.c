/* SPDX-License-Identifier: MIT
 * Entry points for NVTX clients. Every executable or library with NVTX in it is a client of its
 * own. It initialises itself at its first call, on any thread. NVTX has loaded us by
 * NVTX_INJECTION64_PATH, or has found us loaded already.
 */
#include "preload/nvtx/nvtx.h"

#include "collector/file/dictionary.h"
#include "preload/nvtx/chained_tool.h"
#include "collector/stream/schedule.h"

static bool enabled;

void nvtx_configure(bool on)
{
	enabled = on;
	nvtx_v2_configure(on);
}

static void write_nvtx_version(NvtxGetExportTableFunc_t get_table)
{
	const NvtxExportTableVersionInfo *info = get_table(NVTX_ETID_VERSIONINFO);

	if (info &&
		info->struct_size >= offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion) +
					     sizeof info->SetInjectionNvtxVersion)
		info->SetInjectionNvtxVersion(3);
}

/* The slots of a client before it is initialised. They hold functions of NVTX itself, in which
 * threads that call meanwhile wait. They are noted, so that they are not taken for another tool's
 * functions. */
typedef NvtxFunctionPointer slots_before[NVTX_SLOTS];

static void note_module(
	const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module, slots_before before)
{
	NvtxFunctionTable table;
	unsigned slots = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &slots) || !table)
		return;
	for (unsigned i = 1; i < slots && i < NVTX_SLOTS; i++)
		before[i] = table[i] ? *table[i] : NULL;
}

/* Stores our functions in the slots of one module that the client has and that we know. Leaves out
 * slots for which nvtx_chain_store cannot store another chained function. NVTX disables slots that
 * still hold its own functions. */
static void fill_module(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module,
	const slots_before before)
{
	NvtxFunctionTable table;
	unsigned slots = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &slots) || !table)
		return;
	for (unsigned i = 0; i < nvtx_entry_count; i++) {
		const struct nvtx_entry *entry = &nvtx_entries[i];

		if (entry->module == (unsigned)module && entry->id < slots && table[entry->id] &&
			nvtx_chain_store(
				entry->module, entry->id, *table[entry->id], before[entry->id]))
			*table[entry->id] = nvtx_chained() || schedule_has_marker
						    ? entry->function
						    : entry->fast_function;
	}
}

/* Initialises one client. Another tool is started first, if there is one. */
static int start_client(NvtxGetExportTableFunc_t get_table)
{
	static const NvtxCallbackModule modules[] = { NVTX_CB_MODULE_CORE, NVTX_CB_MODULE_CORE2,
		NVTX_CB_MODULE_CUDA, NVTX_CB_MODULE_CUDART, NVTX_CB_MODULE_SYNC };
	enum { count = sizeof modules / sizeof modules[0] };
	const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
	slots_before before[count] = { { NULL } };

	if (!callbacks || callbacks->struct_size < sizeof *callbacks)
		return 0;
	for (unsigned i = 0; i < count; i++)
		note_module(callbacks, modules[i], before[i]);
	nvtx_chain_start(get_table);
	write_nvtx_version(get_table);
	for (unsigned i = 0; i < count; i++)
		fill_module(callbacks, modules[i], before[i]);
	meta_set("source.nvtx", "on");
	return 1;
}

/* The chained tool may start the tool in NVTX_INJECTION64_PATH too, which names us. A call from
 * inside it returns 0. */
static __thread bool in_start __attribute__((tls_model("initial-exec")));

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
	NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
	int started;

	if (!enabled || in_start)
		return 0;
	in_start = true;
	started = start_client(get_table);
	in_start = false;
	return started;
}

static void fill_extension(const nvtxExtModuleSegment_t *segment,
	const struct nvtx_extension_entry *entries, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (entries[i].id < segment->slotCount &&
			!(nvtx_chained() && segment->functionSlots[entries[i].id] > 2))
			segment->functionSlots[entries[i].id] = entries[i].function;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
	nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
	/* Early headers end before extInfo. */
	if (!enabled || in_start || !module ||
		module->structSize <
			offsetof(nvtxExtModuleInfo_t, segments) + sizeof module->segments ||
		!module->segmentsCount || !module->segments)
		return 0;
	in_start = true;
	nvtx_chain_start_extension(module);
	in_start = false;
	if (module->moduleId == NVTX_EXT_PAYLOAD_MODULEID)
		fill_extension(
			&module->segments[0], nvtx_payload_entries, nvtx_payload_entry_count);
	else if (module->moduleId == NVTX_EXT_COUNTERS_MODULEID)
		fill_extension(
			&module->segments[0], nvtx_counter_entries, nvtx_counter_entry_count);
	return 1;
}
