import { readKimiK3Arguments, readKimiK3Attributes } from "./kimi-k3-markup.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import {
  sinceVllm033,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const open = String.raw`<\|open\|>\s*`;
const close = String.raw`<\|close\|>\s*`;
const separator = String.raw`\s*<\|sep\|>`;

/** The start of the tools channel. The engine allows white space inside its markers. */
const toolsOpen = unicodePattern(`${open}tools${separator}`, "");
const toolsClose = unicodePattern(`${close}tools${separator}`, "g");
const responseOpen = unicodePattern(`${open}response${separator}`, "");
const responseClose = unicodePattern(`${close}response${separator}`, "g");
const messageClose = unicodePattern(`${close}message${separator}`, "g");

/** The patterns of an element's two tags. */
interface Tags {
  readonly head: RegExp;
  readonly close: RegExp;
}

function tagsOf(name: string): Tags {
  return {
    head: unicodePattern(String.raw`${open}${name}\s`, "g"),
    close: unicodePattern(`${close}${name}${separator}`, "g"),
  };
}

const callTags = tagsOf("call");
const argumentTags = tagsOf("argument");
const headEnd = "<|sep|>";

/** Finds closed elements, from left to right: their attributes, and the text inside them. */
function findElements(
  text: string,
  tags: Tags,
): { readonly attributes: ReadonlyMap<string, string>; readonly body: string }[] {
  const found: { attributes: ReadonlyMap<string, string>; body: string }[] = [];
  const head = new RegExp(tags.head);
  for (let match = head.exec(text); match !== null; match = head.exec(text)) {
    const end = text.indexOf(headEnd, head.lastIndex);
    const bodyStart = end + headEnd.length;
    const closing = end === -1 ? undefined : searchFrom(text, tags.close, bodyStart);
    if (closing === undefined) break;
    found.push({
      attributes: readKimiK3Attributes(text.slice(head.lastIndex, end)),
      body: text.slice(bodyStart, closing.start),
    });
    head.lastIndex = closing.end;
  }
  return found;
}

function searchFrom(
  text: string,
  pattern: RegExp,
  from: number,
): { readonly start: number; readonly end: number } | undefined {
  const search = new RegExp(pattern);
  search.lastIndex = from;
  const match = search.exec(text);
  return match === null ? undefined : { start: match.index, end: search.lastIndex };
}

function readCall(attributes: ReadonlyMap<string, string>, body: string): VllmCall[] {
  const name = attributes.get("tool") ?? "";
  const argumentsText = writeJson(readKimiK3Arguments(findElements(body, argumentTags)));
  return name === "" ? [] : [{ name, argumentsText }];
}

/**
 * Returns the inside of the first response channel, which may follow the calls. Without such a channel, returns the
 * text before the calls.
 */
function readContent(text: string, before: string): string {
  const start = responseOpen.exec(text);
  const bodyStart = start === null ? 0 : start.index + start[0].length;
  const end = start === null ? undefined : searchFrom(text, responseClose, bodyStart);
  return end === undefined ? unwrap(before) : text.slice(bodyStart, end.start);
}

function unwrap(text: string): string {
  const start = responseOpen.exec(text);
  const inner =
    start === null ? text.replaceAll(responseClose, "") : text.slice(start.index + start[0].length);
  return inner.replaceAll(messageClose, "");
}

function extract(text: string): VllmExtraction {
  const start = toolsOpen.exec(text);
  if (start === null) return { content: readContent(text, text), calls: [] };
  const sectionStart = start.index + start[0].length;
  const end = searchFrom(text, toolsClose, sectionStart)?.start;
  const elements = findElements(text.slice(sectionStart, end), callTags);
  const calls = catchPython(() =>
    elements.flatMap(({ attributes, body }) => readCall(attributes, body)),
  );
  return calls === undefined
    ? { content: text, calls: [] }
    : { content: readContent(text, text.slice(0, start.index)), calls };
}

/**
 * vLLM's parser for Kimi K3: the calls of the first tools channel. One unreadable call loses all
 * calls.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/kimi_k3_tool_parser.py`.
 */
export const vllmKimiK3 = sinceVllm033(vllmReading({ release: holdsAll, extract }));
