import { defineParser } from "../../grammar.ts";
import { byVersion } from "../../vllm/vllm-reading.ts";
import {
  qwen3CoderBlocks,
  qwen3CoderMarkers,
  sglangQwen3Coder,
} from "../qwen3-coder/qwen3-coder.ts";
import { vllmQwen3Coder } from "../qwen3-coder/vllm-qwen3-coder.ts";
import { vllmStep3p5 } from "./vllm-step3p5.ts";

/**
 * Step-3.5: writes calls as Qwen3-Coder does. SGLang reads them in the same way; vLLM does since
 * 0.33.
 */
export const step3p5 = defineParser({
  name: "step3p5",
  markers: qwen3CoderMarkers,
  readings: { sglang: sglangQwen3Coder, vllm: byVersion(vllmStep3p5, vllmQwen3Coder) },
  blocks: qwen3CoderBlocks({ open: "<tool_call>", close: "</tool_call>" }),
});
