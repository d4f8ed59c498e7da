#: make gpu-check    the claims about CUDA and CUPTI on a real GPU (77: there is none); gpu-check-simulated: tries the check itself
gpu-check: $(BUILD)/libpperf.so
	scripts/gpu-check.sh $(BUILD)
gpu-check-simulated: $(BUILD)/libpperf.so cudasim
	scripts/gpu-check.sh $(BUILD) --simulated

.PHONY: gpu-check gpu-check-simulated
