import { pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineReading } from "../../grammar.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import { malformed, invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import { engineReading } from "../../vllm/parser-engine.ts";
import { sinceVllm033 } from "../../vllm/vllm-reading.ts";

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

/** Drops an incomplete marker from the end of the text. */
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

/** Returns the arguments unchanged, but without a marker that follows complete arguments. */
function cutArguments(body: string): string {
  const end = body.lastIndexOf(markerStart);
  const whole = body.slice(0, end === -1 ? undefined : end);
  const isWhole = end !== -1 && readJson(whole).type === "value";
  return pythonStrip(isWhole ? whole : body);
}

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
    between: { [closing("tool_request")]: { to: "preamble", ends: true }, [turnEnd]: toContent },
  },
  keepsSpace: true,
  readName: cutPartialMarker,
  cutContent: cutPartialMarker,
  convertArguments: cutArguments,
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
  const json = readJson(argumentsText);
  return json.type === "value"
    ? [{ span, name, argumentValue: json.value, argumentsText }]
    : [{ span, name, problem: invalidJson(json.detail) }];
}

/**
 * PLaMo 3: a name and JSON arguments, each between markers. The engine passes the arguments on
 * unread.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/plamo3.py`.
 */
export const plamo3 = defineParser({
  name: "plamo3",
  markers: [opening("tool_requests")],
  closers: /<\|plamo:(?:(?:begin|end)_tool_requests:plamo|tag)\|>/g,
  readings: { vllm: sinceVllm033(reading) },
  blocks: {
    open: opening("tool_request"),
    close: closing("tool_request"),
    begins: /^\s*(?:<\||$)/,
    read: readBlock,
  },
});
