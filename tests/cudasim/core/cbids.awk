# Makes CUPTI's callback ids a table of { "name", id } lines from cupti_runtime_cbid.h or
# cupti_driver_cbid.h of CUDA 13:  awk -v major=12 -f cbids.awk HEADER | LC_ALL=C sort
#
# The runtime's ids carry the version that brought them (cudaMalloc_v3020). The library's symbol is the
# newest version of a name; where CUDA 12 still had the older one beside it, that has the plain name and
# the newer one a suffix. CUDA 12 also lacks what came with 13 and what its headers left unnamed.

BEGIN {
	suffix12["cudaGetDeviceProperties_v12000"] = "cudaGetDeviceProperties_v2"
	suffix12["cudaMemAdvise_v12020"] = "cudaMemAdvise_v2"
	suffix12["cudaMemPrefetchAsync_v12020"] = "cudaMemPrefetchAsync_v2"
	suffix12["cudaMemPrefetchAsync_ptsz_v12020"] = "cudaMemPrefetchAsync_v2_ptsz"
	suffix12["cudaGraphGetEdges_v12030"] = "cudaGraphGetEdges_v2"
	suffix12["cudaGraphNodeGetDependencies_v12030"] = "cudaGraphNodeGetDependencies_v2"
	suffix12["cudaGraphNodeGetDependentNodes_v12030"] = "cudaGraphNodeGetDependentNodes_v2"
	suffix12["cudaGraphAddDependencies_v12030"] = "cudaGraphAddDependencies_v2"
	suffix12["cudaGraphRemoveDependencies_v12030"] = "cudaGraphRemoveDependencies_v2"
	suffix12["cudaGraphAddNode_v12030"] = "cudaGraphAddNode_v2"
	suffix12["cudaStreamGetCaptureInfo_v12030"] = "cudaStreamGetCaptureInfo_v3"
	suffix12["cudaStreamGetCaptureInfo_ptsz_v12030"] = "cudaStreamGetCaptureInfo_v3_ptsz"
	suffix12["cudaStreamUpdateCaptureDependencies_v12030"] = \
		"cudaStreamUpdateCaptureDependencies_v2"
	suffix12["cudaStreamUpdateCaptureDependencies_ptsz_v12030"] = \
		"cudaStreamUpdateCaptureDependencies_v2_ptsz"
	suffix12["cudaSignalExternalSemaphoresAsync_v11020"] = "cudaSignalExternalSemaphoresAsync_v2"
	suffix12["cudaSignalExternalSemaphoresAsync_ptsz_v11020"] = \
		"cudaSignalExternalSemaphoresAsync_v2_ptsz"
	suffix12["cudaWaitExternalSemaphoresAsync_v11020"] = "cudaWaitExternalSemaphoresAsync_v2"
	suffix12["cudaWaitExternalSemaphoresAsync_ptsz_v11020"] = \
		"cudaWaitExternalSemaphoresAsync_v2_ptsz"
	suffix12["cudaEventElapsedTime_v12080"] = "cudaEventElapsedTime_v2"
	last_driver12 = 781	# cuTensorMapEncodeIm2colWide, the last of 12.8
}

function keep(name, id) {
	if (!(name in ids) || id > ids[name])
		ids[name] = id
}

function runtime(name, id) {
	if (major == 12) {
		if (name ~ /_v13[0-9][0-9][0-9]$/ || id >= 470 && id <= 479)
			return
		if (name in suffix12) {
			keep(suffix12[name], id)
			return
		}
	}
	sub(/_v[0-9]+$/, "", name)
	keep(name, id)
}

/CUPTI_(RUNTIME|DRIVER)_TRACE_CBID_(__)?cu[A-Za-z0-9_]+ *=/ {
	id = $0
	sub(/^[^=]*= */, "", id)
	id = id + 0
	driver = $0 ~ /CUPTI_DRIVER/
	name = $0
	sub(/ *=.*/, "", name)
	sub(/.*_TRACE_CBID_/, "", name)
	if (!driver)
		runtime(name, id)
	else if (major != 12 || id <= last_driver12)
		keep(name, id)
}

END {
	# The driver's symbol has no suffix here, its newest id has.
	if ("cuMemHostAlloc_v2" in ids)
		ids["cuMemHostAlloc"] = ids["cuMemHostAlloc_v2"]
	for (name in ids)
		printf "{ \"%s\", %d },\n", name, ids[name]
}
