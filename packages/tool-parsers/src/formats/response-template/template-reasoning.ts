import { type PyDict, toPyValue } from "../../../../python-values/src/index.ts";
import { beamTemplate } from "./beam-template.ts";
import { templateOfModel } from "./template-of-model.ts";
import { walkTurn } from "./vllm-calls.ts";
import { defineReasoning, type ReasoningContext } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult } from "../../reasoning/reasoning-parser.ts";

/**
 * SGLang's reasoning by a response template: its field `thinking`. Calls keep their markers for the
 * tool-call parser.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/parser/response_template.py`.
 */
function split(
  sampled: string,
  { responseTemplate, isForced }: ReasoningContext,
  fallback?: PyDict,
): ReasoningResult {
  const template = templateOfModel(responseTemplate ?? fallback, "sglang");
  const { thinking, toolCalls } = template;
  const [opening = ""] = isForced ? (thinking?.open?.literals ?? []) : [];
  const { text, regions } = walkTurn(opening + sampled, template);
  const reasoning: string[] = [];
  const normal: string[] = [];
  for (const { field, start, bodyStart, body, closeStart, end } of regions) {
    if (field === thinking) reasoning.push(body);
    else if (field !== toolCalls) normal.push(body);
    else normal.push(text.slice(start, bodyStart), body, text.slice(closeStart, end));
  }
  return { reasoning: reasoning.join(""), normalText: normal.join("") };
}

/** Splits a turn as the model's own response template describes it. */
export const responseTemplateReasoning = defineReasoning({
  name: "response_template",
  aliases: ["hf"],
  markers: [],
  split: (text, context) => split(text, context),
});

const beamSpec = toPyValue(beamTemplate) as PyDict;

/** Beam: the analysis channel. */
export const beamReasoning = defineReasoning({
  name: "beam",
  markers: ["<|channel|>analysis<|message|>"],
  split: (text, context) => split(text, context, beamSpec),
});
