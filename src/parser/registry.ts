import { expectedName } from "../values/nearest-name.ts";
import { UsageError } from "../errors.ts";
import { apertus2509 } from "./formats/apertus/apertus.ts";
import { cohereCommand4 } from "./formats/cohere/cohere-command4.ts";
import { deepseekV3, deepseekV31 } from "./formats/deepseek/deepseek-v3.ts";
import { deepseekV32, deepseekV4, deepseekV41 } from "./formats/deepseek/dsml.ts";
import { dots } from "./formats/dots/dots.ts";
import { gemma4 } from "./formats/gemma/gemma4.ts";
import { gigachat3 } from "./formats/gigachat/gigachat3.ts";
import { gigachat35 } from "./formats/gigachat/gigachat35.ts";
import { glm45, glm47, ling3 } from "./formats/glm/glm.ts";
import { gptOss } from "./formats/harmony/gpt-oss.ts";
import { hermes } from "./formats/hermes/hermes.ts";
import { hunyuan } from "./formats/hunyuan/hunyuan.ts";
import { inkling } from "./formats/inkling/inkling.ts";
import { interns1 } from "./formats/internlm/interns1.ts";
import { iquestQ1 } from "./formats/iquest/iquest-q1.ts";
import { k2Horizon } from "./formats/k2-horizon/k2-horizon.ts";
import { kimiK2 } from "./formats/kimi/kimi-k2.ts";
import { kimiK3 } from "./formats/kimi/kimi-k3.ts";
import { lfm2 } from "./formats/lfm2/lfm2.ts";
import { llama3 } from "./formats/llama/llama3.ts";
import { mimo } from "./formats/qwen3-coder/mimo.ts";
import { minicpm5 } from "./formats/minicpm/minicpm5.ts";
import { minimaxM2 } from "./formats/minimax/minimax-m2.ts";
import { minimaxM3 } from "./formats/minimax/minimax-m3.ts";
import { mistral } from "./formats/mistral/mistral.ts";
import { muse, museGlimmer } from "./formats/muse/muse.ts";
import { poolsideV1 } from "./formats/poolside/poolside-v1.ts";
import { llama4Pythonic, pythonic } from "./formats/llama/pythonic.ts";
import { qwen25 } from "./formats/qwen/qwen25.ts";
import { qwen3Coder, step3p5 } from "./formats/qwen3-coder/qwen3-coder.ts";
import { beam, responseTemplate } from "./formats/response-template/template-parsers.ts";
import { spark25 } from "./formats/spark/spark25.ts";
import { step3 } from "./formats/step/step3.ts";
import { trinity } from "./formats/qwen/trinity.ts";
import type { ToolCallParser } from "./tool-call-parser.ts";

import { cohereCommand3 } from "./formats/cohere/vllm-cohere.ts";
import { ernie45 } from "./formats/ernie/ernie45.ts";
import { functiongemma } from "./formats/gemma/functiongemma.ts";
import { granite } from "./formats/granite/granite.ts";
import { granite20bFc } from "./formats/granite/granite-20b-fc.ts";
import { granite4 } from "./formats/granite/granite4.ts";
import { hunyuanA13b } from "./formats/hunyuan/hunyuan-a13b.ts";
import { internlm } from "./formats/internlm/internlm.ts";
import { jamba } from "./formats/jamba/jamba.ts";
import { longcat } from "./formats/hermes/longcat.ts";
import { olmo3 } from "./formats/olmo/olmo3.ts";
import { openai } from "./formats/harmony/openai.ts";
import { phi4MiniJson } from "./formats/phi/phi4-mini.ts";
import { hyV4 } from "./formats/hunyuan/hy-v4.ts";
import { plamo3 } from "./formats/plamo/plamo3.ts";
import { seedOss } from "./formats/qwen3-coder/seed-oss.ts";
import { step5 } from "./formats/qwen3-coder/step5.ts";
import { xlam } from "./formats/xlam/xlam.ts";

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
