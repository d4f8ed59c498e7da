# Where the foreign headers and libraries are. CUDA's headers, 13 or later: $CUDA_HOME, the usual prefixes, else what
# scripts/setup.sh unpacks into build/cuda. The programs that are traced may use any CUDA 12 or 13.
CUDA := $(shell CUDA_HOME='$(CUDA_HOME)' scripts/setup.sh --cuda)
CUDA_INCLUDE ?= $(CUDA)/include
NVTX_CFLAGS = -isystem $(CUDA_INCLUDE)
REPORT_LIBS = -lelf -liberty -lz -lsqlite3 -ljansson -lncursesw -lm
