import { parsePythonJson, pythonRstrip } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { asEntry } from "../../vllm/json-entry.ts";
import {
  asName,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<tool_call>";
const close = "</tool_call>";
const opened = unicodePattern(String.raw`<tool_call>\s*\{`, "g");
const spaceAtEnd = unicodePattern(String.raw`\s$`, "");

/** Finds the objects between tags: each reaches from its brace to a brace before a closing tag. */
function findObjects(text: string): string[] {
  const ends = indexesOf(text, close).flatMap((place) => {
    let end = place;
    while (spaceAtEnd.test(text.slice(Math.max(0, end - 1), end))) end -= 1;
    return text[end - 1] === "}" ? [{ end, next: place + close.length }] : [];
  });
  const found: string[] = [];
  const head = new RegExp(opened);
  let endIndex = 0;
  for (let match = head.exec(text); match !== null; match = head.exec(text)) {
    const start = head.lastIndex - 1;
    while ((ends[endIndex]?.end ?? Infinity) < start + 2) endIndex += 1;
    const end = ends[endIndex];
    if (end === undefined) break;
    found.push(text.slice(start, end.end));
    head.lastIndex = end.next;
  }
  return found;
}

function extract(text: string): VllmExtraction {
  const calls = findObjects(text).map((json): VllmCall => {
    const entry = asEntry(parsePythonJson(json));
    const value = entry.has("arguments") ? (entry.get("arguments") ?? null) : new Map();
    const argumentsText = writeJson(value);
    return { name: entry.has("name") ? asName(entry.get("name")) : "", argumentsText };
  });
  return { content: pythonRstrip(text.slice(0, text.indexOf(open)), "\n"), calls };
}

/**
 * Ernie 4.5: JSON objects between tags. If one object is not JSON, all calls are lost.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/ernie45_tool_parser.py`.
 */
export const ernie45 = defineParser({
  name: "ernie45",
  readings: {
    vllm: vllmReading({
      marker: open,
      release: { stops: [open], dropsBreaks: true },
      catchesAll: true,
      extract,
    }),
  },
  json: {
    open,
    close,
    readArguments: (entry) => entry.get("arguments") ?? new Map(),
  },
});
