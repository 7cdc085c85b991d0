import { parsePythonJson } from "../../python/json-parse.ts";
import { stringifyPythonJson } from "../../python/json-stringify.ts";
import { pythonStrip } from "../../python/strip.ts";
import type { PyValue } from "../../python/value.ts";
import type { Block } from "../attempt.ts";
import type { EngineResult } from "../grammar.ts";
import { defineParser } from "../grammar.ts";
import { parseHarmony } from "../harmony/harmony.ts";
import { readJson } from "../json-payload.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../python-catch.ts";
import { pythonPattern } from "../python-pattern.ts";
import { malformed, unclosed } from "../tag-blocks.ts";
import type { CompatCall } from "../tool-call-parser.ts";
import { forwardsUnknown } from "./base-json.ts";
import { sglangReading } from "./sglang-reading.ts";

const marker = "<|start|>assistant<|channel|>commentary";
const callEnd = "<|call|>";
const headPattern = pythonPattern(
  String.raw`to=([a-zA-Z_][a-zA-Z0-9_.-]*)\s*<\|constrain\|>json<\|message\|>`,
  "",
);

/**
 * SGLang's detector for gpt-oss. Calls need the whole header, with the constraint; analysis is dropped.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gpt_oss_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  if (!text.includes(marker)) return { normalText: text, calls: [] };
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  for (const event of parseHarmony(text)) {
    if (event.type === "normal") normal.push(event.content);
    if (event.type !== "tool-call") continue;
    const call = readCall(event.raw ?? event.content, context, calls.length);
    if (call !== undefined) calls.push(call);
  }
  return { normalText: pythonStrip(normal.join(" ")), calls };
}

function readCall(raw: string, context: ParseContext, toolIndex: number): CompatCall | undefined {
  const head = headPattern.exec(raw);
  if (head === null) return undefined;
  const name = (head[1] ?? "").split(".").at(-1) ?? "";
  if (!context.toolPositions.has(name) && !forwardsUnknown(context)) return undefined;
  const jsonStart = head.index + head[0].length;
  const end = raw.indexOf(callEnd, jsonStart);
  const json = raw.slice(jsonStart, end === -1 ? raw.length : end);
  const value =
    pythonStrip(json) === ""
      ? new Map<string, PyValue>()
      : catchPython(() => parsePythonJson(json), "JSONDecodeError");
  if (value === undefined) return undefined;
  return { name, argumentsText: stringifyPythonJson(value, { ensureAscii: false }), toolIndex };
}

/** A call's header: from its first marker to its message marker, with a recipient in it. */
const callHead =
  /(?:<\|start\|>[^<]*)?<\|channel\|>[^<]*?\bto=([^\s<]+)[^<]*(?:<\|constrain\|>([^<]*))?<\|message\|>/g;

function findBlocks(text: string): Block[] {
  const heads = [...text.matchAll(callHead)];
  return heads.map((head, index) => {
    const jsonStart = head.index + head[0].length;
    const next = heads[index + 1]?.index ?? text.length;
    const end = text.indexOf(callEnd, jsonStart);
    const closed = end !== -1 && end < next;
    const span = [head.index, closed ? end + callEnd.length : next] as const;
    const name = (head[1] ?? "").split(".").at(-1) ?? "";
    if (!closed) return { span, name, problem: unclosed(callEnd) };
    return readBlock({ span, name }, text.slice(jsonStart, end), checkHead(head));
  });
}

function checkHead(head: RegExpExecArray): Block["problem"] {
  if (!head[0].startsWith(marker)) return malformed(`expected ${marker}`);
  return head[2] === "json" ? undefined : malformed("expected <|constrain|>json");
}

function readBlock(
  base: Pick<Block, "span"> & { readonly name: string },
  text: string,
  problem: Block["problem"],
): Block {
  const json = text.trim() === "" ? undefined : readJson(text);
  if (json?.type === "problem") {
    return { ...base, problem: { status: "invalid-json", detail: json.detail } };
  }
  const argumentValue = json === undefined ? new Map<string, PyValue>() : json.value;
  return { ...base, argumentValue, ...(problem === undefined ? {} : { problem }) };
}

/** gpt-oss: calls in the commentary channel of the Harmony format. */
export const gptOss = defineParser({
  name: "gpt-oss",
  aliases: [],
  markers: ["<|channel|>commentary"],
  closingStops: [callEnd],
  readings: {
    sglang: sglangReading({
      release: { stops: ["<|"], strips: true },
      hasToolCall: (text) => text.includes(marker),
      detect,
    }),
  },
  findBlocks,
});
