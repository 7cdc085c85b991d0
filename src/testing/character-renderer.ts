import { UsageError } from "../errors.ts";
import type { Message, ToolCall } from "../message.ts";
import { isPyDict, type PyDict } from "../../packages/python-values/src/value.ts";
import type { CapabilityCard } from "../renderer/capability/capability-card.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { TokenCodec } from "../tokenizer/codec.ts";

/** The id that closes every turn of the character renderer. */
export const characterStopId = 0x11_0001;

const openId = 0x11_0000;
const openLiteral = "<|open|>";
const stopLiteral = "<|stop|>";

/**
 * Creates a renderer that needs no model: each code point is its own id, and a turn is
 * `<|open|>role\ntext<|stop|>`. Tool calls have the form of Qwen 2.5. Expected ids can be written
 * by hand.
 */
export function createCharacterRenderer(): Renderer {
  return {
    card,
    codec,
    stopTokenIds: [characterStopId],
    async prompt({ messages }) {
      const turns = messages.map(describeTurn);
      const ids = [...turns.flatMap(turnIds), ...opening()];
      return { ids, text: await codec.decode(ids) };
    },
    async delta({ environment, lastSampledId }) {
      const closeSynthesised = lastSampledId !== characterStopId;
      const turns = environment.map(describeTurn);
      const ids = [
        ...(closeSynthesised ? [characterStopId] : []),
        ...turns.flatMap(turnIds),
        ...opening(),
      ];
      return { ids, text: await codec.decode(ids), closeSynthesised };
    },
  };
}

/** Returns the ids of a sampled turn of the character renderer, including the closing id. */
export function characterIds(text: string): number[] {
  return [...plainIds(text), characterStopId];
}

const card: CapabilityCard = {
  source: "character renderer",
  templateHash: "",
  stopLiterals: [stopLiteral],
  stopIds: [characterStopId],
  history: { afterTool: "append-only", afterUser: "append-only" },
  showsTools: false,
  opensReasoning: false,
  deltaBase: "short",
  deltaNeedsTools: false,
  supports: { system: true, user: true, tool: true, parallelTools: true },
  warnings: [],
  parser: "qwen25",
};

/** All renderers share one codec, because data is cached per vocabulary. */
const codec: TokenCodec = {
  backend: "characters",
  vocabularySize: characterStopId + 1,
  addedTokens: [
    { id: openId, content: openLiteral, special: true },
    { id: characterStopId, content: stopLiteral, special: true },
  ],
  encode: async (text) =>
    text
      .split(/(<\|open\|>|<\|stop\|>)/u)
      .flatMap((part) =>
        part === openLiteral ? [openId] : part === stopLiteral ? [characterStopId] : plainIds(part),
      ),
  encodePlain: async (text) => plainIds(text),
  decode: async (ids) => ids.map(spell).join(""),
  idOf: (literal) =>
    literal === openLiteral
      ? openId
      : literal === stopLiteral
        ? characterStopId
        : literal.codePointAt(0),
  tokenOf: spell,
};

function spell(id: number): string {
  if (id === openId) return openLiteral;
  return id === characterStopId ? stopLiteral : String.fromCodePoint(id);
}

function plainIds(text: string): number[] {
  return Array.from(text, (character) => character.codePointAt(0)!);
}

function opening(): number[] {
  return [openId, ...plainIds("assistant\n")];
}

function describeTurn(message: Message | PyDict): { role: string; content: string } {
  const role = isPyDict(message as PyDict)
    ? (message as PyDict).get("role")
    : (message as Message).role;
  const content = isPyDict(message as PyDict)
    ? (message as PyDict).get("content")
    : (message as Message).content;
  if (typeof role !== "string" || typeof content !== "string") {
    throw new UsageError("Cannot render a message without role and content");
  }
  const calls = "toolCalls" in message ? (message.toolCalls ?? []).map(writeCall) : [];
  return { role, content: [...(content === "" ? [] : [content]), ...calls].join("\n") };
}

function writeCall({ name, argumentsText }: ToolCall): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${argumentsText}}\n</tool_call>`;
}

function turnIds({ role, content }: { role: string; content: string }): number[] {
  return [openId, ...plainIds(`${role}\n${content}`), characterStopId];
}
