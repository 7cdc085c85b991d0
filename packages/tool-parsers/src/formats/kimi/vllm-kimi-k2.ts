import { pythonRstrip, pythonStrip } from "../../../../python-values/src/index.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { unicodePattern } from "../../shared/text/python-pattern.ts";
import { engineReading, findQuotedName } from "../../vllm/parser-engine.ts";
import { byVersion, vllmReading, type VllmCall } from "../../vllm/vllm-reading.ts";

const sectionOpen = "<|tool_calls_section_begin|>";
const sectionClose = "<|tool_calls_section_end|>";
const open = "<|tool_call_begin|>";
const close = "<|tool_call_end|>";
const argumentsOpen = "<|tool_call_argument_begin|>";
const spacePattern = unicodePattern(String.raw`^\s$`, "");
const digitPattern = /^\p{Nd}$/u;

/** The text before a call's arguments. */
interface CallHead {
  readonly id: string;
  readonly argumentsStart: number;
}

/**
 * Reads the id that starts at `start`: text, a colon and a number, with optional white space around
 * it.
 */
function readHead(text: string, start: number): CallHead | undefined {
  const marker = text.indexOf("<", start);
  if (marker === -1 || !text.startsWith(argumentsOpen, marker)) return undefined;
  const head = text.slice(start, marker);
  const written = head.slice(0, spaceStart(head));
  const colon = numberStart(written) - 1;
  if (colon < 1 || colon === written.length - 1 || written[colon] !== ":") return undefined;
  // At least one character must precede the colon, even if it is white space.
  const idStart = Math.min(spaceEnd(written, 0), colon - 1);
  const argumentsStart = spaceEnd(text, marker + argumentsOpen.length);
  return { id: written.slice(idStart), argumentsStart };
}

function spaceEnd(text: string, start: number): number {
  let end = start;
  while (spacePattern.test(text[end] ?? "")) end += 1;
  return end;
}

function spaceStart(text: string): number {
  let start = text.length;
  while (spacePattern.test(text[start - 1] ?? "")) start -= 1;
  return start;
}

/** The start of the digits at the end of the text. */
function numberStart(text: string): number {
  let start = text.length;
  for (;;) {
    const digit = [1, 2].find((length) => digitPattern.test(text.slice(start - length, start)));
    if (digit === undefined || digit > start) return start;
    start -= digit;
  }
}

function findCalls(text: string): VllmCall[] {
  const starts = indexesOf(text, open);
  const ends = indexesOf(text, close);
  const calls: VllmCall[] = [];
  let position = 0;
  let endIndex = 0;
  for (const [index, start] of starts.entries()) {
    if (start < position) continue;
    const head = readHead(text, start + open.length);
    if (head === undefined) continue;
    const { id, argumentsStart } = head;
    while ((ends[endIndex] ?? Infinity) < argumentsStart) endIndex += 1;
    const end = ends[endIndex];
    if (end === undefined) break;
    // The arguments must not contain the start of another call.
    if (end > (starts[index + 1] ?? Infinity)) continue;
    const name = (id.split(":")[0] ?? "").split(".").at(-1) ?? "";
    calls.push({ name, argumentsText: pythonRstrip(text.slice(argumentsStart, end)) });
    position = end + close.length;
  }
  return calls;
}

const old = vllmReading({
  marker: sectionOpen,
  extract: (text) => {
    const first = text.indexOf(sectionOpen);
    return first === -1 ? undefined : { content: text.slice(0, first), calls: findCalls(text) };
  },
});

const idPattern = /^[^\n]+:\p{Nd}+/u;

/** The name in an id such as `functions.search:0`; empty if the id is malformed. */
function nameInId(id: string): string {
  const [line = ""] = pythonStrip(id).split("\n");
  const [name = ""] = (idPattern.exec(line)?.[0] ?? "").split(":");
  return name.startsWith("functions.") ? name.slice("functions.".length) : name;
}

/**
 * The name of a call. A malformed id is the name itself if no arguments follow; otherwise the
 * arguments may contain a name.
 */
function readName(header: string, body: string): string {
  const name = nameInId(header);
  if (name !== "" || body === "") return name === "" ? header : name;
  const quoted = findQuotedName(body);
  return nameInId(quoted) || quoted;
}

const current = engineReading({
  literals: ["<think>", "</think>", sectionOpen, sectionClose, open, close, argumentsOpen],
  steps: {
    content: { "</think>": { to: "content" }, [sectionOpen]: { to: "preamble" } },
    preamble: { [open]: { to: "name", starts: true }, [sectionClose]: { to: "preamble" } },
    name: { [argumentsOpen]: { to: "arguments" } },
    arguments: { [close]: { to: "between" }, [sectionClose]: { to: "preamble" } },
    between: { [open]: { to: "name", starts: true }, [sectionClose]: { to: "preamble" } },
  },
  keepsSpace: true,
  readName,
  convertArguments: (body) => pythonStrip(body),
});

/**
 * vLLM's parser for Kimi K2. Up to 0.24 the id must contain a name and a number, and the arguments
 * are passed on unchanged. Since 0.33 a call that is cut off counts, and values are converted to
 * the types of the schema.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/kimi_k2_tool_parser.py` and, of 0.33,
 * `vllm/parser/kimi_k2.py`.
 */
export const vllmKimiK2 = byVersion(old, current);
