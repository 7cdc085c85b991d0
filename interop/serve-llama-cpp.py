"""Runs llama.cpp's own HTTP server, from the package xllamacpp.

python serve-llama-cpp.py GGUF PORT [exact]     (exact: attention and its cache in 32 bits)
"""

import sys
import time

import xllamacpp

SLOT_COUNT, SLOT_LENGTH = 8, 4096

gguf, port, *rest = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = gguf
parameters.port = int(port)
parameters.n_parallel = SLOT_COUNT
parameters.n_ctx = SLOT_COUNT * SLOT_LENGTH
parameters.n_gpu_layers = 0
# On a busy machine, two threads would spin and wait for each other.
parameters.cpuparams.n_threads = 1
parameters.cpuparams_batch.n_threads = 1
parameters.endpoint_slots = True
parameters.warmup = False
if rest == ["exact"]:
    parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = xllamacpp.Server(parameters)
print("listening at", server.listening_address, flush=True)
while True:
    time.sleep(3600)
