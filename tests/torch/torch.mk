# Python's own callers of NVTX, from PyPI: the nvtx package and a CUDA build of PyTorch. About 7 GB in build/torch.
TORCH_PACKAGES = nvtx==0.2.16 torch==2.9.1 numpy==2.2.6

#: make test-torch   the nvtx package and PyTorch under the library, without a GPU (downloads 3 GB once)
test-torch:
	@scripts/setup.sh build test torch
	@$(MAKE) --no-print-directory -j$$(nproc) programs build/torch/.installed
	@$(RUN) torch
build/torch/.installed: tests/torch/torch.mk
	rm -rf build/torch && $(PYTHON) -m venv build/torch
	build/torch/bin/pip install --quiet --no-cache-dir $(TORCH_PACKAGES)
	@touch $@

.PHONY: test-torch
