import type { CallForm } from "../call-form.ts";
import type { ReplyEvent, ReplyPart } from "../conversation.ts";
import type { MintId } from "../mint-id.ts";

/** Creates ids for the parts of a reply. */
export interface PartIds {
  readonly mint: MintId;
  /** The prefix of call ids, such as `call_`. */
  readonly callPrefix: string;
}

/**
 * Orders a turn's output as events that every dialect can encode. A part starts with its first text
 * and ends when another kind of output follows.
 */
export class ReplySequencer {
  readonly #ids: PartIds;
  readonly #parts: ReplyPart[] = [];
  #open: { readonly part: ReplyPart; readonly texts: string[] } | undefined;

  constructor(ids: PartIds) {
    this.#ids = ids;
  }

  /** The complete parts. */
  get parts(): readonly ReplyPart[] {
    return this.#parts;
  }

  reasoning(text: string): readonly ReplyEvent[] {
    const { mint } = this.#ids;
    return this.#grow("reasoning", text, () => {
      return { type: "reasoning", id: mint("rs_"), signature: mint("tw"), text: "" };
    });
  }

  text(text: string): readonly ReplyEvent[] {
    return this.#grow("text", text, () => ({ type: "text", id: this.#ids.mint("msg_"), text: "" }));
  }

  /**
   * Adds a call with its arguments, a JSON object.
   *
   * @param form - The form of the call for the client. Absent: a function with a JSON object.
   */
  call(name: string, argumentsText: string, form?: CallForm): readonly ReplyEvent[] {
    const { mint, callPrefix } = this.#ids;
    // A `function_call` has no id; its result names the function.
    const callId = form === "function-call" ? name : mint(callPrefix);
    const ended = this.end();
    const id = mint(form === undefined ? "fc_" : itemPrefixes[form]);
    const part: ReplyPart = {
      type: "call",
      id,
      callId,
      name,
      text: "",
      ...(form !== undefined && { form }),
    };
    return [...ended, ...this.#start(part), ...this.#add(argumentsText), ...this.end()];
  }

  /** Ends the open part, if any. */
  end(): readonly ReplyEvent[] {
    if (this.#open === undefined) return [];
    const { part, texts } = this.#open;
    this.#open = undefined;
    const complete = { ...part, text: texts.join("") };
    this.#parts.push(complete);
    return [{ type: "part-end", index: this.#parts.length - 1, part: complete }];
  }

  #grow(type: ReplyPart["type"], text: string, createPart: () => ReplyPart): readonly ReplyEvent[] {
    if (text === "") return [];
    if (this.#open?.part.type === type) return this.#add(text);
    return [...this.end(), ...this.#start(createPart()), ...this.#add(text)];
  }

  #start(part: ReplyPart): readonly ReplyEvent[] {
    this.#open = { part, texts: [] };
    return [{ type: "part-start", index: this.#parts.length, part }];
  }

  #add(text: string): readonly ReplyEvent[] {
    this.#open?.texts.push(text);
    return [{ type: "part-delta", index: this.#parts.length, text }];
  }
}

/** The id prefixes of items with a call. */
const itemPrefixes: Readonly<Record<CallForm, string>> = {
  custom: "ctc_",
  "function-call": "fc_",
  "local-shell": "lsh_",
  shell: "sh_",
  "apply-patch": "apc_",
};
