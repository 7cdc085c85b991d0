import {
  isPyList,
  parsePythonJson,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser } from "../../grammar.ts";
import { blocksOfPayload, readJson } from "../../shared/json/json-payload.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { unclosed } from "../../shared/tags/tag-blocks.ts";
import { callsOfList } from "../../vllm/json-entry.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";
import { findClosed } from "../../shared/tags/between-tags.ts";

const thinkClose = "</think>";
const fenceHead = unicodePattern(String.raw`^(?:json)?\s*`, "");

/** A part of the text that may contain the calls. */
interface Piece {
  readonly json: string;
  readonly jsonStart: number;
  readonly span: readonly [start: number, end: number];
}

/** Functions that find the text between fences, from `[TOOL_CALLS]` to the end of the line, and between tags. */
const finders: readonly ((text: string) => Piece[])[] = [
  (text) =>
    findPieces(text, "```", "```").map((piece) => {
      const skipped = fenceHead.exec(piece.json)?.[0].length ?? 0;
      return { ...piece, json: piece.json.slice(skipped), jsonStart: piece.jsonStart + skipped };
    }),
  (text) => findPieces(`${text}\n`, "[TOOL_CALLS]", "\n").map((piece) => dropBreak(piece)),
  (text) => findPieces(text, "<tool_call>", "</tool_call>"),
];

function dropBreak(piece: Piece): Piece {
  return { ...piece, span: [piece.span[0], piece.span[1] - 1] };
}

function findPieces(text: string, open: string, close: string): Piece[] {
  return findClosed(text, open, close).map(({ inner, start, end }) => ({
    json: inner,
    jsonStart: start + open.length,
    span: [start, end],
  }));
}

/** The calls, and the text around them. */
interface Found {
  readonly piece: Piece;
  readonly value: PyValue;
  readonly content: string;
}

/**
 * Finds the calls.
 *
 * @throws PythonError if the engine raises, which it does for numbers with too many digits.
 */
function findCalls(text: string): Found | undefined {
  const thinkEnd = text.indexOf(thinkClose);
  if (thinkEnd !== -1) {
    const restStart = thinkEnd + thinkClose.length;
    const content = pythonStrip(text.slice(0, restStart));
    const rest = text.slice(restStart);
    const json = pythonStrip(rest);
    const jsonStart = restStart + rest.indexOf(json);
    const whole: Piece = { json, jsonStart, span: [jsonStart, jsonStart + json.length] };
    const piece = firstJson([
      whole,
      ...shift(
        finders.flatMap((find) => find(json)),
        jsonStart,
      ),
    ]);
    if (piece !== undefined) return { ...piece, content };
  }
  for (const find of finders) {
    const pieces = find(text);
    const piece = firstJson(pieces);
    if (piece === undefined) continue;
    return { ...piece, content: pythonStrip(without(text, pieces)) };
  }
  if (!pythonStrip(text).startsWith("[")) return undefined;
  const whole = firstJson([{ json: text, jsonStart: 0, span: [0, text.length] }]);
  return whole === undefined ? undefined : { ...whole, content: "" };
}

function shift(pieces: readonly Piece[], by: number): Piece[] {
  return pieces.map(({ json, jsonStart, span }) => ({
    json,
    jsonStart: jsonStart + by,
    span: [span[0] + by, span[1] + by],
  }));
}

function firstJson(pieces: readonly Piece[]): { piece: Piece; value: PyValue } | undefined {
  for (const piece of pieces) {
    const value = catchPython(() => parsePythonJson(piece.json), "JSONDecodeError");
    if (value !== undefined) return { piece, value };
  }
  return undefined;
}

function without(text: string, pieces: readonly Piece[]): string {
  let position = 0;
  const kept = pieces.map(({ span }) => {
    const part = text.slice(position, span[0]);
    position = span[1];
    return part;
  });
  return kept.join("") + text.slice(position);
}

function extract(text: string): VllmExtraction | undefined {
  const found = findCalls(text);
  if (found === undefined) return undefined;
  const { value, content } = found;
  if (!isPyList(value)) return { content: content === "" ? text : content, calls: [] };
  return { content, calls: callsOfList(value) };
}

function findBlocks(text: string): Block[] {
  const found = catchPython(() => findCalls(text));
  if (found === undefined) {
    const start = text.indexOf("[{");
    const json = start === -1 ? undefined : readJson(text.slice(start));
    return json?.type === "problem" ? [{ span: [start, text.length], problem: unclosed("]") }] : [];
  }
  const { piece, value } = found;
  const payload = { span: piece.span, value, json: piece.json, jsonStart: piece.jsonStart };
  if (!isPyList(value)) return [];
  return blocksOfPayload(payload);
}

/**
 * xLAM: a JSON list of calls: alone, after the reasoning, or in a fence, a line or tags.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/xlam_tool_parser.py`.
 */
export const xlam = defineParser({
  name: "xlam",
  markers: ["[TOOL_CALLS]", "<tool_call>", "```"],
  readings: {
    vllm: vllmReading({
      release: holdsAll,
      catchesAll: true,
      extract,
    }),
  },
  findBlocks,
});
