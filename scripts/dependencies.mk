# Where the foreign headers and libraries are. CUDA's headers: $CUDA_HOME, the usual prefixes, else the wheels that scripts/setup.sh unpacks into the build folder.
CUDA_HOME ?= $(firstword $(wildcard /usr/local/cuda /opt/cuda $(BUILD)/cuda build/cuda))
CUDA_INCLUDE ?= $(CUDA_HOME)/include
NVTX_CFLAGS = -isystem $(CUDA_INCLUDE)
REPORT_LIBS = -ljansson -lelf -lm
