import { pythonRstrip } from "../../../../python-values/src/index.ts";
import { rustSpace, rustTrimEnd, rustTrimStart } from "../../shared/text/rust-space.ts";

/** A message between its header and its end. */
export interface HarmonyMessage {
  readonly role: HarmonyRole;
  readonly channel: string | undefined;
  readonly recipient: string | undefined;
  /** The text after the recipient, such as `<|constrain|>json`. */
  readonly contentType: string | undefined;
  readonly text: string;
  /**
   * The message's place in the text, from the start of the header to the end of the closing token, in UTF-16 code
   * units.
   */
  readonly span: readonly [start: number, end: number];
}

type HarmonyRole = (typeof roles)[number];

type Header = Pick<HarmonyMessage, "role" | "channel" | "recipient" | "contentType">;

const roles = ["user", "assistant", "system", "developer", "tool"] as const;

const structure = /<\|(start|message|end|return|call)\|>/g;
const channelMark = "<|channel|>";
const constrainMark = "<|constrain|>";
const channelEnd = new RegExp(`${rustSpace}|<`);

/**
 * Reads the messages of an assistant's turn. Outside of messages, and after a malformed header,
 * everything up to the next `<|start|>` is skipped. A turn that ends within a header is one message
 * on the final channel, with all text since the last message that was not skipped.
 *
 * Literals in the text are taken for the tokens of the same names, even if the model wrote them
 * with ordinary tokens.
 *
 * **Source:** openai/harmony 0.0.8, `src/encoding.rs` (`StreamableParser`), and the results of
 * PyPI's `oss-harmony` 0.0.11; vllm-project/vllm 0.33, `vllm/parser/harmony.py`.
 */
export function readHarmonyMessages(text: string): HarmonyMessage[] {
  const reader = new MessageReader(text);
  let position = 0;
  for (const { 0: token, 1: type = "", index } of text.matchAll(structure)) {
    reader.skipText(position, index);
    position = index + token.length;
    reader.readToken(type, index, position);
  }
  reader.skipText(position, text.length);
  return reader.end();
}

type State =
  | { readonly type: "outside" }
  | { readonly type: "header"; readonly start: number; readonly textStart: number }
  | {
      readonly type: "content";
      readonly start: number;
      readonly textStart: number;
      readonly header: Header;
    };

class MessageReader {
  readonly #text: string;
  readonly #messages: HarmonyMessage[] = [];
  #state: State = { type: "header", start: 0, textStart: 0 };
  /** The role of the first message, which the prompt has named. `undefined` after that message's header. */
  #role: HarmonyRole | undefined = "assistant";
  /** The text that was read since the last message ended. */
  #unfinished: string[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  /** Skips text, which has no meaning before the next token. Text of a header is collected. */
  skipText(start: number, end: number): void {
    if (this.#state.type === "header") this.#unfinished.push(this.#text.slice(start, end));
  }

  readToken(type: string, start: number, end: number): void {
    const state = this.#state;
    if (state.type === "outside") {
      if (type !== "start") return;
      this.#state = { type: "header", start, textStart: end };
    } else if (state.type === "content") {
      if (type !== "start" && type !== "message") this.#close(state, start, end);
      return;
    } else if (type === "message") {
      this.#openContent(state, start, end);
      return;
    }
    this.#unfinished.push(this.#text.slice(start, end));
  }

  end(): HarmonyMessage[] {
    const state = this.#state;
    const { length } = this.#text;
    if (state.type === "content") this.#close(state, length, length);
    if (state.type === "header") {
      this.#messages.push({
        role: "assistant",
        channel: "final",
        recipient: undefined,
        contentType: undefined,
        text: this.#unfinished.join(""),
        span: [state.start, length],
      });
    }
    return this.#messages;
  }

  #openContent(state: Extract<State, { type: "header" }>, start: number, end: number): void {
    const header = readHeader(this.#text.slice(state.textStart, start), this.#role);
    if (header === undefined) {
      this.#state = { type: "outside" };
      return;
    }
    this.#role = undefined;
    this.#unfinished.push(this.#text.slice(start, end));
    this.#state = { type: "content", start: state.start, textStart: end, header };
  }

  #close(state: Extract<State, { type: "content" }>, textEnd: number, end: number): void {
    const text = this.#text.slice(state.textStart, textEnd);
    this.#messages.push({ ...state.header, text, span: [state.start, end] });
    this.#unfinished = [];
    this.#state = { type: "outside" };
  }
}

/** Reads a header; `undefined` if it is malformed. */
function readHeader(written: string, known: HarmonyRole | undefined): Header | undefined {
  const { channel, rest } = takeChannel(written);
  if (channel === "") return undefined;
  const parts = rest.split(/[\t\n\f\r ]+/).filter(Boolean);
  const role = known ?? takeRole(parts);
  if (role === undefined) return undefined;
  if (parts[0] === role) parts.shift();
  const { length } = parts;
  const last = parts.pop();
  const isAlone = last === undefined || last.startsWith("to=") || length === 1;
  const recipient = isAlone ? last : parts.pop();
  if (parts.length > 0) return undefined;
  return {
    role,
    channel,
    recipient: recipient === undefined ? undefined : cleanRecipient(recipient),
    contentType: isAlone ? undefined : last,
  };
}

/**
 * Takes the first channel, empty if no name follows its marker, and returns the header without
 * channels.
 */
function takeChannel(written: string): { channel: string | undefined; rest: string } {
  const [before = "", ...marked] = written.split(channelMark);
  const channels = marked.map((part) => {
    const end = part.search(channelEnd);
    return end === -1 ? part : part.slice(0, end);
  });
  const rest = marked.map((part, index) => part.slice(channels[index]?.length));
  return { channel: channels[0], rest: tidy(before + rest.join("")) };
}

/** Separates the constraint from the text before it. */
function tidy(header: string): string {
  const trimmed = rustTrimEnd(rustTrimStart(header));
  return rustTrimStart(trimmed.replaceAll(constrainMark, ` ${constrainMark}`));
}

/**
 * Returns the role that the first part of a header names; `undefined` if there is none. An unknown name is that of a
 * tool if it begins with `to=` or if another part follows. The function then removes the name from `parts`.
 */
function takeRole(parts: string[]): HarmonyRole | undefined {
  const [first] = parts;
  if (first === undefined) return undefined;
  const role = roles.find((known) => known === first);
  if (role !== undefined) return role;
  if (parts.length === 1 && !first.startsWith("to=")) return undefined;
  parts.shift();
  return "tool";
}

function cleanRecipient(written: string): string | undefined {
  const recipient = written.startsWith("to=") ? written.slice("to=".length) : written;
  const constrain = recipient.indexOf(constrainMark);
  if (constrain === -1) return recipient;
  return pythonRstrip(recipient.slice(0, constrain)) || undefined;
}
