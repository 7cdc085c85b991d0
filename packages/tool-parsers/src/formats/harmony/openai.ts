import {
  parsePythonJson,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser } from "../../grammar.ts";
import { readHarmonyMessages, type HarmonyMessage } from "./harmony-messages.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { ReasoningOptions, ReasoningResult } from "../../reasoning/reasoning-parser.ts";
import {
  sinceVllm033,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";
import { invalidJson } from "../../shared/tags/tag-blocks.ts";

/** OpenAI's own tools. Messages to them are not function calls. */
const builtIn = ["python", "browser", "container"];

/** The kinds of messages that vLLM distinguishes. */
type Kind = "call" | "reasoning" | "content" | "ignored";

/** A turn in the Harmony format, split as vLLM splits it. */
interface HarmonyTurn {
  readonly reasoning: string;
  readonly content: string;
  readonly calls: readonly VllmCall[];
}

/**
 * Reads a turn as vLLM's parser of gpt-oss does. vLLM reads token ids; this function takes the
 * literals of special tokens for them.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/harmony.py`,
 * `vllm/entrypoints/openai/parser/harmony_utils.py`.
 *
 * @throws PythonError if Python can read the JSON of the arguments but fails on its values.
 */
export function readHarmonyTurn(text: string): HarmonyTurn {
  // No token ids decode to half of a surrogate pair.
  const messages = readHarmonyMessages(text.replaceAll(/\p{Surrogate}/gu, "\ufffd"));
  const textsOf = (kind: Kind): string =>
    messages
      .filter((message) => kindOf(message) === kind && message.text !== "")
      .map((message) => message.text)
      .join("\n");
  return {
    reasoning: textsOf("reasoning"),
    content: textsOf("content"),
    calls: messages.filter((message) => kindOf(message) === "call").map(readCall),
  };
}

function kindOf({ role, channel, recipient }: HarmonyMessage): Kind {
  if (role !== "assistant") return "ignored";
  if (recipient !== undefined && isFunction(recipient)) return "call";
  if (channel === "analysis") return "reasoning";
  if (channel === "final") return "content";
  return channel === "commentary" && recipient === undefined ? "content" : "ignored";
}

function isFunction(recipient: string): boolean {
  if (recipient === "" || recipient.startsWith("<|") || recipient === "assistant") return false;
  if (recipient.startsWith(prefix)) return recipient.length > prefix.length;
  return !builtIn.includes(recipient.split(".", 1)[0] ?? "");
}

const prefix = "functions.";

function nameOf(recipient: string): string {
  return recipient.startsWith(prefix) ? recipient.slice(prefix.length) : recipient;
}

/**
 * Reads the arguments of a call. Arguments that are not JSON, or not declared as JSON, stay
 * unchanged.
 */
function readCall({ recipient = "", contentType, text }: HarmonyMessage): VllmCall {
  const name = nameOf(recipient);
  if (contentType?.includes("json") === false) return { name, argumentsText: text };
  const value = catchPython(() => parsePythonJson(text), "JSONDecodeError");
  return { name, argumentsText: value === undefined ? text : stringifyPythonJson(value) };
}

function extract(text: string): VllmExtraction {
  const { content, calls } = readHarmonyTurn(text);
  return { content, calls };
}

/**
 * vLLM's reasoning of a turn. The normal text is the answer. If a tool-call parser reads the normal text afterwards,
 * the normal text is instead the complete turn, and that parser drops the reasoning.
 */
export function splitAsVllm(
  text: string,
  { toolCallParserActive = false }: Pick<ReasoningOptions, "toolCallParserActive">,
): ReasoningResult {
  const turn = catchPython(() => readHarmonyTurn(text));
  if (turn === undefined) return { reasoning: "", normalText: text };
  return { reasoning: turn.reasoning, normalText: toolCallParserActive ? text : turn.content };
}

function findBlocks(text: string): Block[] {
  return readHarmonyMessages(text).flatMap((message): Block[] => {
    const { span, recipient = "" } = message;
    if (kindOf(message) !== "call") return [];
    const base = { span, name: nameOf(recipient) };
    const json = message.text.trim() === "" ? undefined : readJson(message.text);
    if (json?.type === "problem") {
      return [{ ...base, problem: invalidJson(json.detail) }];
    }
    return [{ ...base, argumentValue: json?.value ?? new Map<string, PyValue>() }];
  });
}

/**
 * gpt-oss as vLLM reads it: every message to a function is a call, on any channel and with any end.
 */
export const openai = defineParser({
  name: "openai",
  markers: ["<|channel|>commentary"],
  closingStops: ["<|call|>"],
  readings: {
    vllm: sinceVllm033(vllmReading({ release: holdsAll, extract })),
  },
  findBlocks,
});
