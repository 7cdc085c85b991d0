import { defineParser } from "../../grammar.ts";
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
  readings: { vllm: hermesReading(open, close) },
  json: { open, close, closesAtEnd: true },
});
