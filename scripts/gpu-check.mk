#: make gpu-check    the claims about CUDA and CUPTI on a real GPU (77: there is none); gpu-check-simulated: tries the check itself
gpu-check: $(BUILD)/libpperf.so
	@$(MAKE) --no-print-directory --silent cudasim-libraries || echo 'gpu-check: goes on without the simulated device'
	CUDA_INCLUDE='$(CUDA_INCLUDE)' scripts/gpu-check.sh $(BUILD)
gpu-check-simulated: $(BUILD)/libpperf.so cudasim
	CUDA_INCLUDE='$(CUDA_INCLUDE)' scripts/gpu-check.sh $(BUILD) --simulated

.PHONY: gpu-check gpu-check-simulated
