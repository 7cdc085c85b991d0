import { defineParser } from "../../grammar.ts";
import { qwen3CoderBlocks } from "./qwen3-coder.ts";
import { vllmSeedOss } from "./vllm-qwen3-coder.ts";

const open = "<seed:tool_call>";

/**
 * Seed-OSS: Qwen3-Coder's calls between tags of its own.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/seed_oss.py`.
 */
export const seedOss = defineParser({
  name: "seed_oss",
  readings: { vllm: vllmSeedOss },
  blocks: qwen3CoderBlocks({ open, close: "</seed:tool_call>" }),
});
