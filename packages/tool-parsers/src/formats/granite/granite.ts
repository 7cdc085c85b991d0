import { pythonStrip } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import { findObjectEnd, graniteMarkers as markers, walkGranite } from "./granite-walk.ts";
import { engineReading, readJsonBody } from "../../vllm/parser-engine.ts";

/**
 * Returns the arguments as they are written. If they are not an object, returns every field of the
 * call except its name.
 */
function convertArguments(body: string): string {
  const start = findArguments(body);
  if (start === undefined) return "{}";
  if (body[start] !== "{") return readJsonBody(pythonStrip(body)).text;
  return body.slice(start, findObjectEnd(body, start, "{", "}"));
}

/**
 * The start of the value of the call's own `arguments`; `undefined` if it is missing or cut off.
 */
function findArguments(body: string): number | undefined {
  let depth = 0;
  let lastText = "";
  const token = /"(?:[^"\\]|\\[^])*"?|[[\]{}:]/g;
  for (let match = token.exec(body); match !== null; match = token.exec(body)) {
    const [part] = match;
    if (part.startsWith('"')) {
      if (depth === 1) lastText = part;
    } else if (part === ":") {
      if (depth !== 1 || lastText !== '"arguments"') continue;
      const space = /[ \t\r\n]*/y;
      space.lastIndex = token.lastIndex;
      space.test(body);
      return space.lastIndex < body.length ? space.lastIndex : undefined;
    } else depth += part === "{" || part === "[" ? 1 : -1;
  }
  return undefined;
}

/**
 * Granite 3: a JSON list of calls after `<|tool_call|>` (3.0) or `<tool_call>` (3.1). The end of
 * the list ends the calls.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/granite.py`.
 */
export const granite = defineParser({
  name: "granite",
  markers,
  readings: {
    vllm: engineReading({
      literals: markers,
      steps: { content: Object.fromEntries(markers.map((open) => [open, { to: "arguments" }])) },
      walk: walkGranite,
      convertArguments,
    }),
  },
  findBlocks(text) {
    const blocks = markers
      .flatMap((open) => findJsonTagBlocks(text, { open }))
      .toSorted((left, right) => left.span[0] - right.span[0]);
    // A marker inside the list of the other marker is text.
    let end = 0;
    return blocks.filter(({ span }) => {
      const isFree = span[0] >= end;
      if (isFree) end = span[1];
      return isFree;
    });
  },
});
