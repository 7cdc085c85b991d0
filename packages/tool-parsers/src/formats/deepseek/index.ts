import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, think, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { deepseekV3, deepseekV31 } from "./deepseek-v3.ts";
import { deepseekV32, deepseekV4, deepseekV41 } from "./dsml.ts";

/** The parsers of DeepSeek. */
export const deepseekFamily: ModelFamily = {
  toolCallParsers: [deepseekV3, deepseekV31, deepseekV32, deepseekV4, deepseekV41],
  reasoningParsers: [
    defineTagReasoning({
      name: "deepseek-r1",
      aliases: ["gigachat35"],
      ...think,
      forced: "always",
    }),
    defineTagReasoning({ name: "deepseek-v3", ...thinkOrCall }),
    defineTagReasoning({
      name: "deepseek-v4",
      aliases: ["deepseek-v41"],
      ...think,
      toolOpen: "<｜DSML｜",
      toolSince: "2026-08",
      toolUntil: "0.5.23",
    }),
  ],
};
