import { callOfEntry } from "../../vllm/json-entry.ts";
import { parsePythonJson } from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { findOpened } from "../../shared/tags/between-tags.ts";

function extract(text: string, open: string, close: string): VllmExtraction {
  const calls = findOpened(text, open, close).map(({ inner }) =>
    callOfEntry(parsePythonJson(inner), "arguments"),
  );
  return { content: text.slice(0, text.indexOf(open)), calls };
}

/**
 * vLLM's Hermes parser, for the tags of a format. One malformed block loses all calls; both fields
 * are required.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/hermes_tool_parser.py`.
 */
export function hermesReading(open: string, close: string): EngineReading {
  return vllmReading({
    marker: open,
    catchesAll: true,
    extract: (text) => extract(text, open, close),
  });
}
