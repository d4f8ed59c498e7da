# Makes a stub for every function that a header of CUDA 13 declares and the objects lack:
#   nm -g --defined-only OBJECTS | awk -v domain=driver|runtime -v major=12|13 -f stubs.awk - HEADER...
# A stub answers "not supported"; with SIM_LOG it says who called. For programs that link against, or look
# up, more than the simulation has.

BEGIN {
	# What CUDA 13 brought to the runtime, and what it took away.
	split("cudaDeviceGetHostAtomicCapabilities cudaDeviceGetP2PAtomicCapabilities cudaLogsCurrent " \
		"cudaLogsDumpToFile cudaLogsDumpToMemory cudaLogsRegisterCallback " \
		"cudaLogsUnregisterCallback cudaMemDiscardAndPrefetchBatchAsync " \
		"cudaMemDiscardBatchAsync cudaMemGetDefaultMemPool cudaMemGetMemPool " \
		"cudaMemPrefetchBatchAsync cudaMemSetMemPool", list, " ")
	for (i in list)
		new13[list[i]] = 1
	split("cudaGraphAddNode_v2 cudaGraphGetEdges_v2 cudaGraphNodeGetDependencies_v2 " \
		"cudaGraphNodeGetDependentNodes_v2 cudaGraphRemoveDependencies_v2 cudaMemAdvise_v2 " \
		"cudaMemPrefetchAsync_v2 cudaSetDoubleForDevice cudaSetDoubleForHost " \
		"cudaSignalExternalSemaphoresAsync_v2 cudaWaitExternalSemaphoresAsync_v2 " \
		"cudaThreadExit cudaThreadGetCacheConfig cudaThreadGetLimit " \
		"cudaThreadSetCacheConfig cudaThreadSetLimit cudaThreadSynchronize", list, " ")
	if (domain == "runtime" && major == 12)
		for (i in list)
			want[list[i]] = 1
}

FILENAME == "-" || FILENAME == "" {
	have[$NF] = 1
	next
}

{
	while (match($0, /(^|[^A-Za-z0-9_])(CUDAAPI|CUDARTAPI)[ ]+cu[A-Za-z0-9_]+[ ]*\(/)) {
		name = substr($0, RSTART, RLENGTH)
		sub(/^[^A-Za-z0-9_]*(CUDAAPI|CUDARTAPI)[ ]+/, "", name)
		sub(/[ ]*\($/, "", name)
		if (!(domain == "runtime" && major == 12 && name in new13))
			want[name] = 1
		$0 = substr($0, RSTART + RLENGTH)
	}
}

# Twins that no header declares by default: } cudaMemcpy3DPeer_ptds_v7000_params;
/^} cuda[A-Za-z0-9_]+_pt[ds][sz]_v[0-9]+_params;/ {
	name = $2
	sub(/_v[0-9]+_params;$/, "", name)
	plain = name
	sub(/_pt[ds][sz]$/, "", plain)
	if (!(major == 12 && plain in new13))
		want[name] = 1
}

# Names that only a macro gives: #define cuMemAlloc cuMemAlloc_v2
domain == "driver" && /^#define +cu[A-Z][A-Za-z0-9_]* +cu[A-Z][A-Za-z0-9_]*_v[0-9]/ {
	want[$2] = want[$3] = 1
}

END {
	for (name in want)
		if (!(name in have))
			printf "SIM_STUB(%s)\n", name | "LC_ALL=C sort"
}
