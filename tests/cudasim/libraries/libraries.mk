# SPDX-License-Identifier: MIT
# What PyTorch calls beside CUDA itself, on the simulated device: cuBLAS, cuBLASLt, cuDNN, NCCL, NVML, cuFFT, cuSOLVER, NVRTC. Included by cudasim.mk.
# The library's file, the files that it is made of, and the node that its symbols carry (-: none).
SIM_BLAS = blas_handle blas_gemm blas_vector blas_kernel
SIM_BLASLT = blaslt blas_kernel
SIM_DNN = dnn_handle dnn_descriptor dnn_norm dnn_convolution dnn_graph dnn_backend dnn_rnn dnn_rnn_v8
SIM_NCCL = nccl_channel nccl_operation nccl_reduce nccl_collective nccl_comm
SIM_SOLVER = solver_handle solver_factor solver_eigen
SIM_FFT_12 = libcufft.so.11
SIM_FFT_13 = libcufft.so.12
SIM_SOLVER_12 = libcusolver.so.11
SIM_SOLVER_13 = libcusolver.so.12

# $(call sim_library,MAJOR,FILE,SOURCES,NODE)
define sim_library
$$(SIM)/$(1)/$(2): $$(addprefix $$(SIM)/$(1)/obj/,$$(addprefix libraries/,$$(addsuffix .o,library $(3)))) $$(SIM)/$(1)/libcuda.so.1
	$(if $(filter-out -,$(4)),echo '$(4) { global: *; };' > $$(@D)/obj/$(2).map)
	$$(CC) $$(SIM_LDFLAGS) -Wl,-z,defs -Wl,-soname,$(2) $(if $(filter-out -,$(4)),-Xlinker --version-script=$$(@D)/obj/$(2).map) \
		-o $$@ $$^ -lpthread -ldl
SIM_LIBRARY_FILES += $$(SIM)/$(1)/$(2)
PROGRAMS += $$(SIM)/$(1)/$(2)
endef
$(foreach m,12 13,$(eval $(call sim_library,$(m),libcublas.so.$(m),$(SIM_BLAS),libcublas.so.$(m))))
$(foreach m,12 13,$(eval $(call sim_library,$(m),libcublasLt.so.$(m),$(SIM_BLASLT),libcublasLt.so.$(m))))
$(foreach m,12 13,$(eval $(call sim_library,$(m),libcudnn.so.9,$(SIM_DNN),libcudnn.so.9)))
# What is not the same in cuDNN 8: its version, and an older interface.
$(eval $(call sim_library,12,libcudnn.so.8,dnn8_handle $(filter-out dnn_handle,$(SIM_DNN)) dnn_rnn_v6,libcudnn.so.8))
# PyTorch 2.1 looks for it, and asks nothing of it.
$(eval $(call sim_library,12,libcudnn_cnn_infer.so.8,,-))
$(SIM)/12/obj/libraries/dnn8_handle.o: tests/cudasim/libraries/dnn_handle.c
	@mkdir -p $(@D)
	$(CC) $(SIM_CFLAGS) -DSIM_MAJOR=12 -DDNN_MAJOR=8 -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<
$(foreach m,12 13,$(eval $(call sim_library,$(m),libnccl.so.2,$(SIM_NCCL),-)))
$(foreach m,12 13,$(eval $(call sim_library,$(m),libnvidia-ml.so.1,nvml,-)))
$(foreach m,12 13,$(eval $(call sim_library,$(m),libnvrtc.so.$(m),nvrtc,libnvrtc.so.$(m))))
$(foreach m,12 13,$(eval $(call sim_library,$(m),$(SIM_FFT_$(m)),fft,$(SIM_FFT_$(m)))))
$(foreach m,12 13,$(eval $(call sim_library,$(m),$(SIM_SOLVER_$(m)),$(SIM_SOLVER),$(SIM_SOLVER_$(m)))))
$(foreach m,12 13,$(addprefix $(SIM)/$(m)/obj/libraries/,library.o nccl_collective.o nccl_comm.o)): SIM_MODE = -D__CUDA_API_VERSION_INTERNAL

# The suites that are linked with one of them.
SIM_TESTED_test_nccl = libnccl.so.2
SIM_TESTED_test_nvml = libnvidia-ml.so.1
$(foreach m,12 13,$(foreach s,nccl nvml,$(eval $(SIM)/$(m)/test_$(s): $(SIM)/$(m)/$(SIM_TESTED_test_$(s)))))

# Where the libraries' own headers are, the compiler compares what is written out here with them.
# $(call sim_headers,HEADER,FOLDER,SOURCES): CUDA's folder, or that of NVIDIA's wheels
define sim_headers
sim-headers: sim-headers-$(2)
sim-headers-$(2): SIM_FOUND = $$(firstword $$(wildcard $$(addsuffix /$(1),$$(CUDA_INCLUDE) build/torch/lib/python3*/site-packages/nvidia/$(2)/include)))
sim-headers-$(2):
	$$(if $$(SIM_FOUND),for f in $(3); do $$(CC) $$(SIM_CFLAGS) -D__CUDA_API_VERSION_INTERNAL -DSIM_REAL_HEADERS -isystem $$(dir $$(SIM_FOUND)) \
		-fsyntax-only tests/cudasim/libraries/$$$$f.c || exit 1; done,@echo '$(1) is not here: nothing to compare with')
.PHONY: sim-headers sim-headers-$(2)
endef
$(eval $(call sim_headers,cublasLt.h,cublas,$(SIM_BLAS) blaslt))
$(eval $(call sim_headers,cudnn.h,cudnn,$(SIM_DNN)))
$(eval $(call sim_headers,nccl.h,nccl,$(SIM_NCCL)))
$(eval $(call sim_headers,cufftXt.h,cufft,fft))
$(eval $(call sim_headers,cusolverDn.h,cusolver,$(SIM_SOLVER)))
