import { skipPythonSpace } from "../../shared/text/skip-characters.ts";
import { isPythonSpace, pythonLower, pythonStrip } from "../../../../python-values/src/index.ts";
import { holdBackLength } from "../../hold-back.ts";
import type { HarmonyEvent } from "./harmony-event.ts";

const headerPattern = /^(?:assistant)?/iu;
const finalMarker = "assistantfinal";

/**
 * True if a text without markers contains the words that remain when Harmony's markers are lost.
 */
export function soundsLikeHarmonyProse(text: string): boolean {
  return hasWord(text, /analysis|commentary|assistantfinal/giu);
}

/**
 * Reads Harmony whose markers were lost: `analysis`, its text, `assistantfinal`, the answer.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/harmony_parser.py` (`TextStrategy`).
 */
export function parseHarmonyProse(text: string): HarmonyEvent[] {
  const header = readHeader(text);
  const finalStart = header === undefined ? -1 : indexOfFinal(text, header.end);
  if (header !== undefined && finalStart !== -1) {
    const body = text.slice(header.end, finalStart);
    return [
      ...eventOf(header.isAnalysis ? "reasoning" : "normal", pythonStrip(body)),
      ...eventOf("normal", pythonStrip(text.slice(finalStart + finalMarker.length))),
    ];
  }
  if (hasWord(text, /analysis|commentary/giu)) {
    const lower = pythonLower(text);
    if (lower.includes("assistantfin") && !lower.includes(finalMarker)) return [];
  }
  const trimmed = text.slice(skipPythonSpace(text, 0));
  if (/^assistantfinal/iu.test(trimmed)) {
    return eventOf("normal", pythonStrip(trimmed.slice(finalMarker.length)));
  }
  if (header !== undefined) return readOpenBody(text.slice(header.end), header.isAnalysis);
  const held = holdBackLength(text, ["analysis", "commentary", finalMarker]);
  return eventOf("normal", text.slice(0, text.length - held));
}

function readOpenBody(body: string, isAnalysis: boolean): HarmonyEvent[] {
  const held = holdBackLength(body, [finalMarker]);
  const emitted = body.slice(0, body.length - held);
  if (isAnalysis) return eventOf("reasoning", emitted);
  if (emitted === "") return [];
  return [{ type: "normal", content: held > 0 ? emitted : pythonStrip(emitted) }];
}

function eventOf(type: "reasoning" | "normal", content: string): HarmonyEvent[] {
  return content === "" ? [] : [{ type, content }];
}

function readHeader(text: string): { isAnalysis: boolean; end: number } | undefined {
  const start = skipPythonSpace(text, 0);
  const assistant = headerPattern.exec(text.slice(start, start + 16))?.[0] ?? "";
  const wordStart = skipPythonSpace(text, start + assistant.length);
  const word = /^(?:analysis|commentary)/iu.exec(text.slice(wordStart, wordStart + 16))?.[0];
  if (word === undefined) return undefined;
  return { isAnalysis: pythonLower(word) === "analysis", end: wordStart + word.length };
}

function indexOfFinal(text: string, from: number): number {
  const pattern = /assistantfinal/giu;
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? -1;
}

/** True if one of the words follows the start of the text, white space, or `assistant`. */
function hasWord(text: string, words: RegExp): boolean {
  for (const { index } of text.matchAll(words)) {
    if (standsFree(text, index)) return true;
    const before = text.slice(Math.max(0, index - "assistant".length), index);
    if (/^assistant$/iu.test(before) && standsFree(text, index - before.length)) return true;
  }
  return false;
}

function standsFree(text: string, index: number): boolean {
  return index === 0 || isPythonSpace(text.charCodeAt(index - 1));
}
