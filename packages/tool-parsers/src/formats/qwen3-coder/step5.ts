import { defineParser } from "../../grammar.ts";
import { qwen3CoderBlocks } from "./qwen3-coder.ts";
import { vllmStep5 } from "./vllm-qwen3-coder.ts";

const open = "<tool_call>";

/**
 * Step 5: Qwen3-Coder's calls. White space beside them is kept.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/step5_tool_parser.py`.
 */
export const step5 = defineParser({
  name: "step5",
  readings: { vllm: vllmStep5 },
  blocks: qwen3CoderBlocks({ open, close: "</tool_call>" }),
});
