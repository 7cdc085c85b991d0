import { defineParser } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import { hermesReading } from "./vllm-hermes.ts";

const open = "<longcat_tool_call>";
const close = "</longcat_tool_call>";

/**
 * LongCat: Hermes' JSON between tags of its own.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/longcat_tool_parser.py`.
 */
export const longcat = defineParser({
  name: "longcat",
  aliases: [],
  markers: [open],
  readings: { vllm: hermesReading(open, close) },
  findBlocks: (text) =>
    findJsonTagBlocks(text, {
      open,
      close,
      fields: { name: "name", readArguments: (entry) => entry.get("arguments") },
      closesAtEnd: true,
    }),
});
