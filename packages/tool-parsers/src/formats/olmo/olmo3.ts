import { pythonStrip } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { findPythonicBlocks } from "../../shared/python/pythonic-blocks.ts";
import { matchesPythonicList } from "../../shared/python/pythonic-list.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import type { Frame } from "../../shared/tags/tag-blocks.ts";
import type { Block } from "../../attempt.ts";
import type { ParseContext } from "../../parse-context.ts";
import { readVllmPythonCalls, vllmArguments } from "../../vllm/python-calls.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const open = "<function_calls>";
const close = "</function_calls>";
// eslint-disable-next-line no-control-regex
const lineBreak = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/;

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const [inner] = betweenTags(text, open, close);
  const source = listOf(inner === undefined ? text : pythonStrip(inner));
  if (!matchesPythonicList(source)) return undefined;
  return { content: "", calls: readVllmPythonCalls(source, context) };
}

/** Makes a list of the calls that stand on separate lines. */
function listOf(text: string): string {
  const lines = text.split(lineBreak).map((line) => pythonStrip(line));
  return `[${lines.filter((line) => line !== "").join(", ")}]`;
}

/** Reads each line as a call. The line is read within added brackets, so that it has the form of a list of calls. */
function readBlocks({ span, inner, innerStart }: Frame): Block[] {
  const blocks: Block[] = [];
  let lineStart = innerStart;
  for (const line of inner.split("\n")) {
    const found = findPythonicBlocks(`[${line}]`, vllmArguments);
    for (const block of found) {
      const start = Math.max(lineStart, lineStart + block.span[0] - 1);
      const end = Math.min(lineStart + line.length, lineStart + block.span[1] - 1);
      blocks.push({ ...block, span: [start, Math.max(start + 1, end)] });
    }
    lineStart += line.length + 1;
  }
  const [first, ...rest] = blocks;
  if (first === undefined) {
    return [
      {
        span,
        problem: { status: "malformed-structure", detail: "expected one call on each line" },
      },
    ];
  }
  return [{ ...first, span: [span[0], first.span[1]] }, ...rest];
}

/**
 * Olmo 3: calls in Python between tags, one on each line. Without tags the complete turn is read.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/olmo3_tool_parser.py`.
 */
export const olmo3 = defineParser({
  name: "olmo3",
  closers: /<\/function_calls>/g,
  readings: {
    vllm: vllmReading({
      release: holdsAll,
      catchesAll: true,
      extract,
    }),
  },
  blocks: { open, close, begins: /^\s*(?:[A-Za-z]|$)/, read: readBlocks },
});
