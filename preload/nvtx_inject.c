/* SPDX-License-Identifier: MIT
 * nvtx_inject.c: where NVTX clients come in. Every executable and library with NVTX in it does so by itself, at its first call, on any thread; NVTX
 * has loaded us by NVTX_INJECTION64_PATH, or found us loaded already.
 */
#include "nvtx.h"

#include "collector/dictionary.h"
#include "nvtx_chain.h"

static bool enabled;

void nvtx_configure(bool on)
{
	enabled = on;
	nvtx_v2_configure(on);
}

static void say_version(NvtxGetExportTableFunc_t get_table)
{
	const NvtxExportTableVersionInfo *info = get_table(NVTX_ETID_VERSIONINFO);

	if (info && info->struct_size >= offsetof(NvtxExportTableVersionInfo, SetInjectionNvtxVersion) + sizeof info->SetInjectionNvtxVersion)
		info->SetInjectionNvtxVersion(3);
}

/* One module of the client: each slot that we know and that it has. A slot that is left as it is stays without effect. */
static void fill_module(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module)
{
	NvtxFunctionTable table;
	unsigned slots = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &slots) || !table)
		return;
	for (unsigned i = 0; i < nvtx_entry_count; i++) {
		const struct nvtx_entry *entry = &nvtx_entries[i];

		if (entry->module == (unsigned)module && entry->id < slots && table[entry->id] &&
		    nvtx_chain_take(entry->module, entry->id, table[entry->id]))
			*table[entry->id] = entry->function;
	}
}

/* Each slot holds NVTX's own start-up function, which must not be taken for something that the other tool has put there. */
static void empty_module(const NvtxExportTableCallbacks *callbacks, NvtxCallbackModule module)
{
	NvtxFunctionTable table;
	unsigned slots = 0;

	if (!callbacks->GetModuleFunctionTable(module, &table, &slots) || !table)
		return;
	for (unsigned i = 1; i < slots; i++)
		if (table[i])
			*table[i] = NULL;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
	static const NvtxCallbackModule modules[] = {NVTX_CB_MODULE_CORE, NVTX_CB_MODULE_CORE2, NVTX_CB_MODULE_CUDA, NVTX_CB_MODULE_CUDART,
						     NVTX_CB_MODULE_SYNC};
	const NvtxExportTableCallbacks *callbacks;

	if (!enabled)
		return 0;
	callbacks = get_table(NVTX_ETID_CALLBACKS);
	if (!callbacks || callbacks->struct_size < sizeof *callbacks)
		return 0;
	for (unsigned i = 0; nvtx_chain_wanted() && i < sizeof modules / sizeof modules[0]; i++)
		empty_module(callbacks, modules[i]);
	nvtx_chain_start(get_table);
	say_version(get_table);
	for (unsigned i = 0; i < sizeof modules / sizeof modules[0]; i++)
		fill_module(callbacks, modules[i]);
	meta_set("source.nvtx", "on");
	return 1;
}

static void fill_extension(const nvtxExtModuleSegment_t *segment, const struct nvtx_extension_entry *entries, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (entries[i].id < segment->slotCount && !(nvtx_chained() && segment->functionSlots[entries[i].id] > 2))
			segment->functionSlots[entries[i].id] = entries[i].function;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);
int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
	if (!enabled || !module || module->structSize < sizeof *module || !module->segmentsCount || !module->segments)
		return 0;
	nvtx_chain_start_extension(module);
	if (module->moduleId == NVTX_EXT_PAYLOAD_MODULEID)
		fill_extension(&module->segments[0], nvtx_payload_entries, nvtx_payload_entry_count);
	else if (module->moduleId == NVTX_EXT_COUNTERS_MODULEID)
		fill_extension(&module->segments[0], nvtx_counter_entries, nvtx_counter_entry_count);
	return 1;
}
