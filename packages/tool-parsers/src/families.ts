import { apertusFamily } from "./formats/apertus/index.ts";
import { cohereFamily } from "./formats/cohere/index.ts";
import { deepseekFamily } from "./formats/deepseek/index.ts";
import { dotsFamily } from "./formats/dots/index.ts";
import { ernieFamily } from "./formats/ernie/index.ts";
import { gemmaFamily } from "./formats/gemma/index.ts";
import { gigachatFamily } from "./formats/gigachat/index.ts";
import { glmFamily } from "./formats/glm/index.ts";
import { graniteFamily } from "./formats/granite/index.ts";
import { harmonyFamily } from "./formats/harmony/index.ts";
import { hermesFamily } from "./formats/hermes/index.ts";
import { hunyuanFamily } from "./formats/hunyuan/index.ts";
import { inklingFamily } from "./formats/inkling/index.ts";
import { internlmFamily } from "./formats/internlm/index.ts";
import { iquestFamily } from "./formats/iquest/index.ts";
import { jambaFamily } from "./formats/jamba/index.ts";
import { k2HorizonFamily } from "./formats/k2-horizon/index.ts";
import { kimiFamily } from "./formats/kimi/index.ts";
import { lfm2Family } from "./formats/lfm2/index.ts";
import { llamaFamily } from "./formats/llama/index.ts";
import { minicpmFamily } from "./formats/minicpm/index.ts";
import { minimaxFamily } from "./formats/minimax/index.ts";
import { mistralFamily } from "./formats/mistral/index.ts";
import { museFamily } from "./formats/muse/index.ts";
import { nemotronFamily } from "./formats/nemotron/index.ts";
import { olmoFamily } from "./formats/olmo/index.ts";
import { phiFamily } from "./formats/phi/index.ts";
import { plamoFamily } from "./formats/plamo/index.ts";
import { poolsideFamily } from "./formats/poolside/index.ts";
import { qwenFamily } from "./formats/qwen/index.ts";
import { qwen3CoderFamily } from "./formats/qwen3-coder/index.ts";
import { responseTemplateFamily } from "./formats/response-template/index.ts";
import { sparkFamily } from "./formats/spark/index.ts";
import { stepFamily } from "./formats/step/index.ts";
import { xlamFamily } from "./formats/xlam/index.ts";
import type { ModelFamily } from "./model-family.ts";

/** Every family of models. A new family is a folder in `formats/` and a line here. */
export const families: readonly ModelFamily[] = [
  apertusFamily,
  cohereFamily,
  deepseekFamily,
  dotsFamily,
  ernieFamily,
  gemmaFamily,
  gigachatFamily,
  glmFamily,
  graniteFamily,
  harmonyFamily,
  hermesFamily,
  hunyuanFamily,
  inklingFamily,
  internlmFamily,
  iquestFamily,
  jambaFamily,
  k2HorizonFamily,
  kimiFamily,
  lfm2Family,
  llamaFamily,
  minicpmFamily,
  minimaxFamily,
  mistralFamily,
  museFamily,
  nemotronFamily,
  olmoFamily,
  phiFamily,
  plamoFamily,
  poolsideFamily,
  qwenFamily,
  qwen3CoderFamily,
  responseTemplateFamily,
  sparkFamily,
  stepFamily,
  xlamFamily,
];
