import { UsageError } from "../../errors.ts";
import { apertusReasoning } from "../formats/apertus/apertus-reasoning.ts";
import {
  cohereCommand3Reasoning,
  cohereCommand4Reasoning,
} from "../formats/cohere/cohere-reasoning.ts";
import { gptOssReasoning } from "../formats/harmony/gpt-oss-reasoning.ts";
import { graniteReasoning } from "../formats/granite/granite-reasoning.ts";
import { inklingReasoning } from "../formats/inkling/inkling-reasoning.ts";
import { k2HorizonReasoning } from "../formats/k2-horizon/k2-horizon-reasoning.ts";
import { kimiK3Reasoning } from "../formats/kimi/kimi-k3-reasoning.ts";
import { minimaxAppendThink, minimaxM3Reasoning } from "../formats/minimax/minimax-reasoning.ts";
import { museReasoning } from "../formats/muse/muse-reasoning.ts";
import type { ReasoningParser } from "./reasoning-parser.ts";
import {
  beamReasoning,
  responseTemplateReasoning,
} from "../formats/response-template/template-reasoning.ts";
import { thinkTagParsers } from "./think-tags.ts";

const parsers: readonly ReasoningParser[] = [
  ...thinkTagParsers,
  apertusReasoning,
  beamReasoning,
  cohereCommand3Reasoning,
  cohereCommand4Reasoning,
  gptOssReasoning,
  graniteReasoning,
  inklingReasoning,
  k2HorizonReasoning,
  kimiK3Reasoning,
  minimaxAppendThink,
  minimaxM3Reasoning,
  museReasoning,
  responseTemplateReasoning,
].toSorted((left, right) => (left.name < right.name ? -1 : 1));

/** Every reasoning parser, by name. */
export function listReasoningParsers(): readonly ReasoningParser[] {
  return parsers;
}

/**
 * Finds a reasoning parser by its name, such as `qwen3`; capitals do not matter.
 *
 * @throws UsageError naming the known parsers where there is none of that name.
 */
export function findReasoningParser(name: string): ReasoningParser {
  const wanted = name.toLowerCase();
  const found = parsers.find((parser) => [parser.name, ...parser.aliases].includes(wanted));
  if (found !== undefined) return found;
  const known = parsers.flatMap((parser) => [parser.name, ...parser.aliases]).toSorted();
  throw new UsageError(
    `Cannot find reasoning parser ${JSON.stringify(name)}: expected one of ${known.join(", ")}`,
  );
}
