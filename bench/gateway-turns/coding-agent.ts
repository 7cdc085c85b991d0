import { fileURLToPath } from "node:url";
import { toPlainJson } from "../../packages/python-values/src/value.ts";
import { toWellFormed } from "../../src/text/well-formed.ts";
import { sixteenTools } from "../bench-model.ts";
import { readSources, withOtherCharacters } from "../source-text.ts";

/** The text that conversations are made of: source files of this repository. */
export interface Corpus {
  /** Returns a stretch of text. The stretches of different places differ. */
  readonly textAt: (place: number, length: number) => string;
}

const sourceFolder = fileURLToPath(new URL("../../../src/", import.meta.url));

/**
 * Reads the corpus.
 *
 * @param isUnicode - True to put characters beyond ASCII into every fiftieth line. Otherwise all text is ASCII.
 */
export function readCorpus(isUnicode: boolean): Corpus {
  const sources = readSources(sourceFolder);
  const text = isUnicode ? withOtherCharacters(sources) : sources;
  return {
    textAt(place, length) {
      const start = (place * 104_729) % (text.length - length);
      // Whole characters: a stretch neither begins nor ends within a surrogate pair.
      return toWellFormed(text.slice(start, start + length));
    },
  };
}

type Message = Readonly<Record<string, unknown>>;

/** An agent that sends its whole conversation with each request, as clients of Chat Completions do. */
export class CodingAgent {
  readonly #url: string;
  readonly #token: string;
  readonly #messages: Message[];
  readonly #tools = sixteenTools().map(({ openai }) => toPlainJson(openai));

  constructor(
    { url, token }: { readonly url: string; readonly token: string },
    prompt: { readonly system: string; readonly user: string },
  ) {
    this.#url = url;
    this.#token = token;
    this.#messages = [
      { role: "system", content: prompt.system },
      { role: "user", content: prompt.user },
    ];
  }

  /** Requests a turn, and answers its call with a result. */
  async turn(result: string): Promise<void> {
    const response = await fetch(`${this.#url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#token}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "policy", messages: this.#messages, tools: this.#tools }),
    });
    const reply = (await response.json()) as {
      readonly choices?: readonly { readonly message: Message }[];
    };
    const message = reply.choices?.[0]?.message;
    const calls = message?.["tool_calls"] as readonly { readonly id: string }[] | undefined;
    if (message === undefined || calls?.[0] === undefined) {
      throw new Error(`Cannot play a turn: expected a call, not ${JSON.stringify(reply)}`);
    }
    this.#messages.push(message, { role: "tool", tool_call_id: calls[0].id, content: result });
  }
}
