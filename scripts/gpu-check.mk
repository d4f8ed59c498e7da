#: make gpu-check    checks the claims about CUDA and CUPTI on a real GPU (exit status 77: no GPU); gpu-check-simulated: tests the check itself
gpu-check: $(BUILD)/libpperf.so
	@$(MAKE) --no-print-directory --silent cudasim-libraries || echo 'gpu-check: goes on without the simulated device'
	CUDA_INCLUDE='$(CUDA_INCLUDE)' scripts/gpu-check.sh $(BUILD)
gpu-check-simulated: $(BUILD)/libpperf.so cudasim
	CUDA_INCLUDE='$(CUDA_INCLUDE)' scripts/gpu-check.sh $(BUILD) --simulated

.PHONY: gpu-check gpu-check-simulated
