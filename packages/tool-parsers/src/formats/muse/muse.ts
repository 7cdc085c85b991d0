import {
  readMuseArguments,
  holdsMuseCall,
  muse as markers,
  splitMuseTurn,
} from "./muse-channels.ts";
import type { Block } from "../../attempt.ts";
import { findAttributeTag } from "../../shared/tags/attribute-tags.ts";
import { isSince } from "../../engine-version.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { malformed, markerOnly, unclosed } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { museGlimmerReading, museReading } from "./vllm-muse.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const invokeTag = { name: "atem:invoke", attribute: "name" };
const parameterClose = "</atem:parameter>";

/** A call, and its place in a channel to a tool. */
interface Invoke {
  readonly name: string;
  readonly body: string;
  readonly start: number;
  readonly end: number;
  readonly closed: boolean;
}

/**
 * SGLang's detector for Muse: only calls in channels to tools count, and everything else is text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/muse_glimmer_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  for (const piece of splitMuseTurn(text)) {
    if (piece.type !== "channel" || !isTool(piece.recipient, context)) {
      normal.push(piece.type === "channel" ? piece.body : piece.text);
      continue;
    }
    for (const { name: emitted, body, closed } of findInvokes(piece.body)) {
      const name = resolveName(emitted, context);
      const isReported = context.toolPositions.has(name) || forwardsUnknown(context);
      if (!closed || !isReported) continue;
      const argumentsText = writeJson(readMuseArguments(body));
      calls.push({ name, argumentsText, toolIndex: calls.length });
    }
  }
  return { normalText: normal.join(""), calls };
}

function isTool(recipient: string | undefined, context: ParseContext): boolean {
  if (recipient === undefined || recipient === "self" || recipient === "user") return false;
  return recipient !== "commentary" || !isSince(sglangVersion(context), "0.5.23");
}

function findInvokes(text: string): Invoke[] {
  const found: Invoke[] = [];
  let tag = findAttributeTag(text, invokeTag, 0);
  while (tag !== undefined) {
    const close = text.indexOf(markers.invokeClose, tag.end);
    const closed = close !== -1;
    const end = closed ? close + markers.invokeClose.length : text.length;
    const body = text.slice(tag.end, closed ? close : text.length);
    found.push({ name: tag.value, body, start: tag.start, end, closed });
    tag = closed ? findAttributeTag(text, invokeTag, end) : undefined;
  }
  return found;
}

/**
 * Resolves a name that the template has doubled: `f.f` is `f`, and a last part that only one tool
 * has is that tool.
 */
function resolveName(emitted: string, { toolPositions }: ParseContext): string {
  const dot = emitted.indexOf(".");
  if (toolPositions.has(emitted) || dot === -1) return emitted;
  const head = emitted.slice(0, dot);
  if (head === emitted.slice(dot + 1) && toolPositions.has(head)) return head;
  const leaf = emitted.split(".").at(-1);
  const matches = [...toolPositions.keys()].filter((name) => name.split(".").at(-1) === leaf);
  return matches.length === 1 ? (matches[0] ?? emitted) : emitted;
}

function findBlocks(text: string, context: ParseContext): Block[] {
  const toolSpans = splitMuseTurn(text).flatMap((piece) => {
    if (piece.type !== "channel" || !isTool(piece.recipient, context)) return [];
    return [[piece.bodyStart, piece.bodyStart + piece.body.length] as const];
  });
  const invokes = findInvokes(text);
  const blocks: Block[] = [];
  let mention = text.indexOf(markers.callsOpen);
  let spanIndex = 0;
  const addMentions = (end: number): void => {
    for (
      ;
      mention !== -1 && mention < end;
      mention = text.indexOf(markers.callsOpen, mention + 1)
    ) {
      usePattern.lastIndex = mention;
      if (!usePattern.test(text)) blocks.push(markerOnly(mention, markers.callsOpen));
    }
  };
  for (const invoke of invokes) {
    addMentions(invoke.start);
    while ((toolSpans[spanIndex]?.[1] ?? Infinity) <= invoke.start) spanIndex += 1;
    const isInTool = (toolSpans[spanIndex]?.[0] ?? Infinity) <= invoke.start;
    blocks.push(readBlock(invoke, resolveName(invoke.name, context), isInTool));
    while (mention !== -1 && mention < invoke.end) {
      mention = text.indexOf(markers.callsOpen, invoke.end);
    }
  }
  addMentions(text.length);
  return blocks;
}

/** Matches the opening of a list of calls that a call, or the end of the text, follows. */
const usePattern = /<atem:function_calls>\s{0,64}(?:<atem:invoke|$)/y;

function readBlock({ body, start, end, closed }: Invoke, name: string, isInTool: boolean): Block {
  const argumentValue = catchPython(() => readMuseArguments(body));
  const base = {
    span: [start, end] as const,
    name,
    ...(argumentValue !== undefined && { argumentValue }),
  };
  if (!closed) return { ...base, problem: unclosed(markers.invokeClose) };
  if (!isInTool) return { ...base, problem: malformed("expected a channel to a tool around it") };
  const openCount = indexesOf(body, "<atem:parameter").length;
  const isWhole = openCount === indexesOf(body, parameterClose).length;
  return isWhole ? base : { ...base, problem: malformed(`expected ${parameterClose}`) };
}

/** Muse: ATEM elements in a channel to a tool. */
export const muse = defineParser({
  name: "muse",
  aliases: ["musespark1x"],
  closers: /<\/atem:function_calls>|<\|eot\|>/g,
  markers: [markers.callsOpen],
  readings: {
    sglang: sglangReading({ release: holdsAll, hasToolCall: holdsMuseCall, detect }),
    vllm: museReading,
  },
  findBlocks,
});

/** Muse Glimmer as vLLM reads it, which distinguishes the two models. */
export const museGlimmer = defineParser({
  name: "muse_glimmer",
  closers: /<\/atem:function_calls>|<\|eot\|>/g,
  markers: [markers.callsOpen],
  readings: { vllm: museGlimmerReading },
  findBlocks,
});
