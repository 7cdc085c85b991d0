import { UsageError } from "../../../../python-values/src/support/index.ts";
import { type PyDict, toPyValue } from "../../../../python-values/src/index.ts";
import { defineParser, type Grammar } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { beamTemplate } from "./beam-template.ts";
import { findTemplateBlocks } from "./blocks.ts";
import type { ResponseTemplate } from "./response-template.ts";
import { detectTemplateCalls, walkCalls } from "./sglang-calls.ts";
import { templateOfModel } from "./template-of-model.ts";
import { extractTemplateCalls } from "./vllm-calls.ts";
import type { ToolCallParser } from "../../tool-call-parser.ts";
import { sinceVllm033, vllmReading } from "../../vllm/vllm-reading.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";

interface TemplateParser extends Pick<Grammar, "name" | "aliases" | "markers" | "closingStops"> {
  /** The template for a model that has none. */
  readonly fallback?: PyDict;
}

/**
 * Defines a parser that reads by a response template. The text that ends a call may end the turn as
 * well, so a stream releases nothing before the end.
 */
function defineTemplateParser({ fallback, ...parser }: TemplateParser): ToolCallParser {
  const templateOf = ({ responseTemplate, dialect }: ParseContext): ResponseTemplate => {
    const template = templateOfModel(responseTemplate ?? fallback, dialect);
    if (template.toolCalls !== undefined) return template;
    throw new UsageError("Cannot parse with the response template: it has no field tool_calls");
  };
  return defineParser({
    ...parser,
    readings: {
      sglang: sglangReading({
        release: holdsAll,
        hasToolCall: (text, context) => {
          const template = templateOf(context);
          return walkCalls(text, template).regions.some(
            ({ field }) => field === template.toolCalls,
          );
        },
        detect: (text, context) => detectTemplateCalls(text, templateOf(context), context),
      }),
      vllm: sinceVllm033(
        vllmReading({
          release: holdsAll,
          extract: (text, context) => extractTemplateCalls(text, templateOf(context), context),
        }),
      ),
    },
    findBlocks: (text, context) => findTemplateBlocks(text, templateOf(context), context),
  });
}

/** Reads calls as the model's own response template describes them. */
export const responseTemplate = defineTemplateParser({
  name: "response_template",
  aliases: ["hf"],
  markers: [],
});

/**
 * Beam: `to=NAME<|channel|>analysis <|constrain|>xml<|message|>`, then
 * `<rfl:parameter name="…">` elements.
 */
export const beam = defineTemplateParser({
  name: "beam",
  markers: ["<|constrain|>xml<|message|>"],
  closingStops: ["<|call|>"],
  fallback: toPyValue(beamTemplate) as PyDict,
});
