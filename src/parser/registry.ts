import { expectedName } from "../values/nearest-name.ts";
import { UsageError } from "../errors.ts";
import { apertus2509 } from "./sglang/apertus2509.ts";
import { cohereCommand4 } from "./sglang/cohere-command4.ts";
import { deepseekV3, deepseekV31 } from "./sglang/deepseek-v3.ts";
import { deepseekV32, deepseekV4, deepseekV41 } from "./sglang/dsml.ts";
import { dots } from "./sglang/dots.ts";
import { gemma4 } from "./sglang/gemma4.ts";
import { gigachat3 } from "./sglang/gigachat3.ts";
import { gigachat35 } from "./sglang/gigachat35.ts";
import { glm45, glm47, ling3 } from "./sglang/glm.ts";
import { gptOss } from "./sglang/gpt-oss.ts";
import { hermes } from "./sglang/hermes.ts";
import { hunyuan } from "./sglang/hunyuan.ts";
import { inkling } from "./sglang/inkling.ts";
import { interns1 } from "./sglang/interns1.ts";
import { iquestQ1 } from "./sglang/iquest-q1.ts";
import { k2Horizon } from "./sglang/k2-horizon.ts";
import { kimiK2 } from "./sglang/kimi-k2.ts";
import { kimiK3 } from "./sglang/kimi-k3.ts";
import { lfm2 } from "./sglang/lfm2.ts";
import { llama3 } from "./sglang/llama3.ts";
import { mimo } from "./sglang/mimo.ts";
import { minicpm5 } from "./sglang/minicpm5.ts";
import { minimaxM2 } from "./sglang/minimax-m2.ts";
import { minimaxM3 } from "./sglang/minimax-m3.ts";
import { mistral } from "./sglang/mistral.ts";
import { muse, museGlimmer } from "./sglang/muse.ts";
import { poolsideV1 } from "./sglang/poolside-v1.ts";
import { llama4Pythonic, pythonic } from "./sglang/pythonic.ts";
import { qwen25 } from "./sglang/qwen25.ts";
import { qwen3Coder, step3p5 } from "./sglang/qwen3-coder.ts";
import { beam, responseTemplate } from "./sglang/response-template.ts";
import { spark25 } from "./sglang/spark25.ts";
import { step3 } from "./sglang/step3.ts";
import { trinity } from "./sglang/trinity.ts";
import type { ToolCallParser } from "./tool-call-parser.ts";

import { cohereCommand3 } from "./vllm/cohere-command.ts";
import { ernie45 } from "./vllm/ernie45.ts";
import { functiongemma } from "./vllm/functiongemma.ts";
import { granite } from "./vllm/granite.ts";
import { granite20bFc } from "./vllm/granite-20b-fc.ts";
import { granite4 } from "./vllm/granite4.ts";
import { hunyuanA13b } from "./vllm/hunyuan-a13b.ts";
import { internlm } from "./vllm/internlm.ts";
import { jamba } from "./vllm/jamba.ts";
import { longcat } from "./vllm/longcat.ts";
import { olmo3 } from "./vllm/olmo3.ts";
import { openai } from "./vllm/openai.ts";
import { phi4MiniJson } from "./vllm/phi4-mini.ts";
import { hyV4 } from "./vllm/hy-v4.ts";
import { plamo3 } from "./vllm/plamo3.ts";
import { seedOss } from "./vllm/seed-oss.ts";
import { step5 } from "./vllm/step5.ts";
import { xlam } from "./vllm/xlam.ts";

const parsers: readonly ToolCallParser[] = [
  apertus2509,
  beam,
  cohereCommand3,
  cohereCommand4,
  deepseekV3,
  deepseekV31,
  deepseekV32,
  deepseekV4,
  deepseekV41,
  dots,
  gemma4,
  gigachat3,
  gigachat35,
  glm45,
  glm47,
  gptOss,
  hermes,
  hunyuan,
  inkling,
  interns1,
  iquestQ1,
  k2Horizon,
  kimiK2,
  kimiK3,
  lfm2,
  ling3,
  llama3,
  mimo,
  minicpm5,
  minimaxM2,
  minimaxM3,
  mistral,
  muse,
  museGlimmer,
  poolsideV1,
  pythonic,
  llama4Pythonic,
  qwen25,
  qwen3Coder,
  responseTemplate,
  step3p5,
  spark25,
  step3,
  trinity,
  ernie45,
  functiongemma,
  granite,
  granite20bFc,
  granite4,
  hunyuanA13b,
  internlm,
  jamba,
  longcat,
  olmo3,
  openai,
  phi4MiniJson,
  hyV4,
  plamo3,
  seedOss,
  step5,
  xlam,
];

/** Every tool-call parser, by name. */
export function listToolCallParsers(): readonly ToolCallParser[] {
  return parsers;
}

/**
 * Finds a tool-call parser by its name or an alias, such as `qwen25` or `qwen`.
 *
 * @throws UsageError naming the known parsers where there is none of that name.
 */
export function findToolCallParser(name: string): ToolCallParser {
  const found = parsers.find((parser) => parser.name === name || parser.aliases.includes(name));
  if (found !== undefined) return found;
  const known = parsers.flatMap((parser) => [parser.name, ...parser.aliases]).toSorted();
  throw new UsageError(
    `Cannot find tool-call parser ${JSON.stringify(name)}: ${expectedName(name, known)}`,
  );
}
