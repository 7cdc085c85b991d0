import { parsePythonJson } from "../../python/json-parse.ts";
import { pythonStrip } from "../../python/strip.ts";
import type { Block } from "../attempt.ts";
import type { EngineReading } from "../grammar.ts";
import { defineParser } from "../grammar.ts";
import { catchPython } from "../python-catch.ts";
import { PythonError } from "../../python/python-error.ts";
import type { Frame } from "../tag-blocks.ts";
import { findTagBlocks, malformed } from "../tag-blocks.ts";
import { engineReading } from "./parser-engine.ts";

const opening = (part: string): string => `<|plamo:begin_${part}:plamo|>`;
const closing = (part: string): string => `<|plamo:end_${part}:plamo|>`;

const argumentsOpen = `${opening("tool_arguments")}<|plamo:constrain|>json<|plamo:msg|>`;
const argumentsClose = closing("tool_arguments");
const turnEnd = "<|plamo:tag|>";
const markerStart = "<|plamo:";
const parts = ["tool_requests", "tool_request", "tool_name", "think"];
const literals = [
  ...parts.flatMap((part) => [opening(part), closing(part)]),
  argumentsOpen,
  argumentsClose,
  turnEnd,
];

/** Takes off the beginning of a marker that stands at the end. */
function cutPartialMarker(text: string): string {
  const start = text.lastIndexOf(markerStart);
  if (start === -1) return text;
  const end = text.slice(start);
  const isPartial = literals.some(
    (literal) => literal.length > end.length && literal.startsWith(end),
  );
  return isPartial ? text.slice(0, start) : text;
}

const toContent = { to: "content" } as const;

const reading: EngineReading = engineReading({
  literals,
  steps: {
    content: {
      [opening("think")]: { to: "reasoning" },
      [closing("think")]: toContent,
      [opening("tool_requests")]: { to: "preamble" },
      [turnEnd]: toContent,
    },
    reasoning: {
      [opening("think")]: { to: "reasoning" },
      [closing("think")]: toContent,
      [opening("tool_requests")]: { to: "preamble" },
      [turnEnd]: toContent,
    },
    preamble: {
      [opening("tool_request")]: { to: "preamble" },
      [opening("tool_name")]: { to: "name", starts: true },
      [argumentsOpen]: { to: "arguments" },
      [closing("tool_requests")]: toContent,
      [turnEnd]: toContent,
    },
    name: { [closing("tool_name")]: { to: "preamble" }, [turnEnd]: toContent },
    arguments: { [argumentsClose]: { to: "between" }, [turnEnd]: toContent },
    between: { [closing("tool_request")]: { to: "preamble" }, [turnEnd]: toContent },
  },
  keepsSpace: true,
  cutName: cutPartialMarker,
  cutContent: cutPartialMarker,
  convertArguments: (body) => pythonStrip(body),
});

function readBlock({ span, inner }: Frame): Block[] {
  const nameStart = inner.indexOf(opening("tool_name"));
  const nameEnd = inner.indexOf(closing("tool_name"));
  const bodyStart = inner.indexOf(argumentsOpen);
  const bodyEnd = inner.indexOf(argumentsClose);
  if (nameStart === -1 || nameEnd < nameStart) {
    return [{ span, problem: malformed(`expected a name, up to ${closing("tool_name")}`) }];
  }
  const name = pythonStrip(inner.slice(nameStart + opening("tool_name").length, nameEnd));
  if (bodyStart < nameEnd || bodyEnd < bodyStart) {
    return [{ span, name, problem: malformed(`expected arguments, up to ${argumentsClose}`) }];
  }
  const argumentsText = pythonStrip(inner.slice(bodyStart + argumentsOpen.length, bodyEnd));
  try {
    return [{ span, name, argumentValue: parsePythonJson(argumentsText), argumentsText }];
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return [{ span, name, problem: { status: "invalid-json", detail: error.message } }];
  }
}

/**
 * PLaMo 3: a name and JSON arguments, each between markers, which the engine hands on unread.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/plamo3.py`.
 */
export const plamo3 = defineParser({
  name: "plamo3",
  aliases: [],
  markers: [opening("tool_requests")],
  closers: /<\|plamo:(?:(?:begin|end)_tool_requests:plamo|tag)\|>/g,
  readings: { vllm: reading },
  findBlocks: (text) =>
    findTagBlocks(text, {
      open: opening("tool_request"),
      close: closing("tool_request"),
      begins: /^\s*(?:<\||$)/,
      read: readBlock,
    }),
});
