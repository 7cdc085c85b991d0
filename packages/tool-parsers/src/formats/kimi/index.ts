import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, think } from "../../reasoning/tag-reasoning.ts";
import { kimiK2 } from "./kimi-k2.ts";
import { kimiK3 } from "./kimi-k3.ts";
import { kimiK3Reasoning } from "./kimi-k3-reasoning.ts";

/** The parsers of Kimi. */
export const kimiFamily: ModelFamily = {
  toolCallParsers: [kimiK2, kimiK3],
  reasoningParsers: [
    defineTagReasoning({ name: "kimi", open: "◁think▷", close: "◁/think▷", forced: "never" }),
    defineTagReasoning({
      name: "kimi_k2",
      ...think,
      toolOpen: "<|tool_calls_section_begin|>",
      wasForced: true,
    }),
    kimiK3Reasoning,
  ],
};
