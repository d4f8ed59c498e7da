# Makes of cupti_runtime_cbid.h or cupti_driver_cbid.h a table of names by callback id, as cuptiGetCallbackName gives them:
# the runtime's with the version that brought them ([211] = "cudaLaunchKernel_v7000",).
/CUPTI_(RUNTIME|DRIVER)_TRACE_CBID_[A-Za-z0-9_]+ *= *[0-9]+,/ {
	name = $1
	sub(/.*_TRACE_CBID_/, "", name)
	id = $3
	sub(/,.*/, "", id)
	if (name != "SIZE")
		printf "\t[%d] = \"%s\",\n", id, name
}
