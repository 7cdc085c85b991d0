import { pythonLstrip, pythonRstrip } from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import {
  blocksOfPayload,
  mayBeginJson,
  readJson,
  readJsonPrefix,
  type CallFields,
  type JsonReading,
} from "./json-payload.ts";
import { indexesOf } from "../text/indexes-of.ts";
import { markerOnly, unclosed, invalidJson, type Frame } from "../tags/tag-blocks.ts";

/** A format with JSON between an opening and a closing tag. */
export interface JsonTagFormat extends CallFields {
  readonly open: string;
  /** The closing tag. Absent if the end of the JSON is the end of the call. */
  readonly close?: string;
  /** Returns the problem with the white space of a closed block, for formats that require some. */
  readonly checkFrame?: (inner: string) => Diagnostic | undefined;
  /** True if the end of the text also closes a block. */
  readonly closesAtEnd?: boolean;
}

/**
 * Finds every block of a JSON-between-tags format. A closing tag inside a JSON string does not end
 * a block. An unclosed block ends at the next opening tag or with the text.
 */
export function findJsonTagBlocks(text: string, format: JsonTagFormat): Block[] {
  const blocks: Block[] = [];
  const openings = indexesOf(text, format.open);
  if (openings.length === 0) return blocks;
  const closings = format.close === undefined ? [] : indexesOf(text, format.close);
  let position = 0;
  let closingIndex = 0;
  for (let index = 0; index < openings.length; index++) {
    const start = openings[index] as number;
    if (start < position) continue;
    const innerStart = start + format.open.length;
    while ((closings[closingIndex] ?? Infinity) < innerStart) closingIndex += 1;
    const frame = frameAt(text, {
      format,
      start,
      nextOpening: openings[index + 1] ?? text.length,
      nextClosing: closings[closingIndex],
    });
    for (const block of judgeFrame(frame, format)) blocks.push(block);
    position = frame.span[1];
  }
  return blocks;
}

/** A frame, with the reading of its JSON if the search for its end needed it. */
type JsonFrame = Frame & { readonly reading?: JsonReading };

function frameAt(
  text: string,
  facts: {
    readonly format: JsonTagFormat;
    readonly start: number;
    readonly nextOpening: number;
    readonly nextClosing: number | undefined;
  },
): JsonFrame {
  const { format, start, nextOpening, nextClosing } = facts;
  const { close } = format;
  const innerStart = start + format.open.length;
  const rest = text.slice(innerStart);
  const json = mayBeginJson(rest) ? readJsonPrefix(rest) : undefined;
  if (json?.type === "value" && close === undefined) {
    const end = innerStart + json.end;
    const inner = rest.slice(0, json.end);
    return { span: [start, end], inner, innerStart, closed: true, reading: json };
  }
  if (json?.type === "value" && close !== undefined) {
    const innerEnd = rest.length - pythonLstrip(rest.slice(json.end)).length;
    const atEnd = format.closesAtEnd === true && innerEnd === rest.length;
    if (atEnd || rest.startsWith(close, innerEnd)) {
      const end = Math.min(innerStart + innerEnd + close.length, text.length);
      const inner = rest.slice(0, innerEnd);
      return { span: [start, end], inner, innerStart, closed: true, reading: json };
    }
  }
  if (close !== undefined && nextClosing !== undefined && nextClosing < nextOpening) {
    const inner = text.slice(innerStart, nextClosing);
    return { span: [start, nextClosing + close.length], inner, innerStart, closed: true };
  }
  const end = Math.max(nextOpening, innerStart);
  return { span: [start, end], inner: text.slice(innerStart, end), innerStart, closed: false };
}

function judgeFrame(frame: JsonFrame, format: JsonTagFormat): Block[] {
  const { span, inner, innerStart } = frame;
  if (!frame.closed) return judgeUnclosed(frame, format);
  const json = pythonLstrip(inner);
  const reading = frame.reading ?? readJson(pythonRstrip(json));
  if (reading.type === "problem") {
    return [{ span, problem: invalidJson(reading.detail) }];
  }
  const jsonStart = innerStart + inner.length - json.length;
  const payload = { span, value: reading.value, json, jsonStart };
  return blocksOfPayload(payload, format, format.checkFrame?.(inner));
}

/**
 * Judges an unclosed block. Without JSON after it, the opening tag is only a mention; otherwise it
 * starts a call.
 */
function judgeUnclosed({ span, inner, innerStart }: Frame, format: JsonTagFormat): Block[] {
  if (!/^\s*(?:[[{]|$)/.test(inner)) return [markerOnly(span[0], format.open)];
  const problem = unclosed(format.close ?? "the end of the JSON");
  const json = mayBeginJson(inner) ? readJsonPrefix(inner) : undefined;
  if (json?.type !== "value") return [{ span, problem }];
  const payload = { span, value: json.value, json: inner, jsonStart: innerStart };
  return blocksOfPayload(payload, format, problem);
}
