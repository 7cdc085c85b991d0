import {
  pythonStrip,
  pythonTruthy,
  PythonValueError,
} from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import { inkling as tokens } from "./inkling-tokens.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { findQuotedName, fixTypes, readJsonBody } from "../../vllm/parser-engine.ts";
import { asName, sinceVllm033, vllmReading, type VllmCall } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";
import { skipCharacters } from "../../shared/text/skip-characters.ts";

type State = "content" | "header" | "reasoning" | "arguments";

const toContent: readonly string[] = [
  tokens.contentText,
  tokens.invokeText,
  "<|content_tool_error|>",
];
const ends: readonly string[] = [tokens.endMessage, tokens.endSampling];
const pattern =
  /(<\|(?:message_model|content_text|content_thinking|content_invoke_tool_json|content_invoke_tool_text|content_tool_error|content_model_end_sampling|end_message)\|>)/;

/** The state after a token; `undefined` if the token is text in this state. */
function step(state: State, token: string): State | undefined {
  if (ends.includes(token)) return "content";
  if (state === "arguments") return undefined;
  if (token === tokens.invokeJson) return "arguments";
  if (token === tokens.contentThinking) return "reasoning";
  if (state === "reasoning") return undefined;
  return toContent.includes(token) ? "content" : "header";
}

/** The text around the calls, and the text inside each of them. */
interface Blocks {
  readonly before: string;
  readonly after: string;
  readonly bodies: readonly string[];
}

function readBlocks(text: string): Blocks {
  const texts = { before: "", after: "" };
  const bodies: string[] = [];
  let state: State = "content";
  let header = "";
  const print = (part: string): void => {
    texts[bodies.length === 0 ? "before" : "after"] += part;
  };
  for (const [index, part] of text.split(pattern).entries()) {
    const next: State | undefined = index % 2 === 1 ? step(state, part) : undefined;
    if (next === undefined) {
      if (state === "content") print(part);
      else if (state === "header") header += part;
      else if (state === "arguments") bodies.push(`${bodies.pop() ?? ""}${part}`);
      continue;
    }
    // A name between the start of a message and its kind is not text, unless the kind is missing.
    if (state === "header" && ends.includes(part)) print(header);
    header = "";
    if (next === "arguments") bodies.push("");
    state = next;
  }
  print(header);
  return { ...texts, bodies };
}

/**
 * Finds the object that is the value of a member.
 *
 * @throws PythonValueError if the member is not an object.
 */
function memberObject(raw: string, key: string): string | undefined {
  let depth = 0;
  let last: string | undefined;
  for (let index = 0; index < raw.length; index++) {
    const character = raw[index] as string;
    if (character === '"') {
      const end = findStringEnd(raw, index);
      if (end !== undefined && depth === 1) last = raw.slice(index + 1, end);
      index = end ?? raw.length;
    } else if (character === ":" && depth === 1 && last === key)
      return objectAt(raw, index + 1, key);
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") depth -= 1;
  }
  return undefined;
}

function objectAt(raw: string, from: number, key: string): string | undefined {
  const start = skipCharacters(raw, from, " \t\r\n");
  if (start === raw.length) return undefined;
  if (raw[start] !== "{") throw new PythonValueError(`member '${key}' must be a JSON object`);
  let depth = 0;
  for (let index = start; index < raw.length; index++) {
    const character = raw[index];
    if (character === '"') index = findStringEnd(raw, index) ?? raw.length;
    else if (character === "{") depth += 1;
    else if (character === "}") {
      depth -= 1;
      if (depth === 0) return raw.slice(start, index + 1);
    }
  }
  return raw.slice(start);
}

/** The closing quote of the string that starts at a place. */
function findStringEnd(raw: string, start: number): number | undefined {
  for (let index = start + 1; index < raw.length; index++) {
    if (raw[index] === "\\") index += 1;
    else if (raw[index] === '"') return index;
  }
  return undefined;
}

const argumentKeys = ["args", "arguments", "parameters"];

function readBody(body: string, context: ParseContext): VllmCall[] {
  const found = findQuotedName(body);
  if (found === "" && body === "") return [];
  const name = pythonStrip(found);
  const isBlank = pythonStrip(body) === "";
  if (name === "" && isBlank) return [];
  const whole = () => readJsonBody(pythonStrip(body), argumentKeys);
  const carve = () => ({ name, text: memberObject(body, "args") ?? "{}" });
  const written =
    name === "" ? whole() : (catchPython(carve, "ValueError") ?? { ...whole(), name });
  if (!pythonTruthy(written.name)) return [];
  const known = asName(written.name);
  return [{ name: known, argumentsText: fixTypes(written.text, known, context) }];
}

/**
 * vLLM's parser for Inkling: blocks of text, reasoning and calls, each of which declares its kind.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/inkling.py`.
 */
export const inklingReading: EngineReading = sinceVllm033(
  vllmReading({
    release: holdsAll,
    extract(text, context) {
      const { before, after, bodies } = readBlocks(text);
      const calls = bodies.flatMap((body) => readBody(body, context));
      const isNamed = bodies.some((body) => findQuotedName(body) !== "");
      // Until the first text, white space beside a call is dropped. Text after a call is added
      // later.
      const early = isNamed ? before : before + after;
      const shown = bodies.length > 0 && pythonStrip(early) === "" ? "" : early;
      const content = isNamed ? shown + after : shown;
      const isDropped = calls.length > 0 && pythonStrip(content) === "";
      return { content: isDropped ? "" : content, calls };
    },
  }),
);
