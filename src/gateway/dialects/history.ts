import type { ClientAssistant, ClientMessage } from "../conversation.ts";

/** What the items of a conversation come to, as far as they are read. */
export interface History {
  readonly messages: readonly ClientMessage[];
  /** How many items were read. */
  readonly itemCount: number;
  /** A turn that is not among the messages yet: the next item may belong to it. */
  readonly openTurn?: ClientAssistant;
}

/** Before the first item. */
export const noHistory: History = { messages: [], itemCount: 0 };

/** The messages of a conversation that ends there. */
export function messagesOf({ messages, openTurn }: History): readonly ClientMessage[] {
  return openTurn === undefined ? messages : [...messages, openTurn];
}

/** The way in which a dialect spreads a turn over several items. */
export interface TurnForm {
  /**
   * Decides for a turn that has made no call yet; one that has made a call is open until a result comes.
   *
   * @param last - The last mark and the last text of the turn.
   */
  readonly goesOn: (last: LastOfTurn, next: ClientAssistant) => boolean;
  /** Text between the texts of two items. */
  readonly separator: string;
}

/** The end of a turn as far as it is read. */
export interface LastOfTurn {
  readonly mark: string | undefined;
  readonly text: string;
}

/**
 * Adds messages to a history. All that an assistant says and calls before the results of its calls come
 * is one turn: some clients send parallel calls back in messages of their own.
 *
 * @param items - The messages that each item comes to.
 */
export function extendHistory(
  { messages: before, itemCount, openTurn }: History,
  items: readonly (readonly ClientMessage[])[],
  form: TurnForm,
): History {
  const messages = [...before];
  const turn = new TurnPieces(form, openTurn);
  for (const message of items.flat()) {
    if (message.role === "assistant" && turn.takes(message)) {
      turn.add(message);
      continue;
    }
    const ended = turn.end();
    if (ended !== undefined) messages.push(ended);
    if (message.role === "assistant") turn.add(message);
    else messages.push(message);
  }
  const open = turn.end();
  const history = { messages, itemCount: itemCount + items.length };
  return open === undefined ? history : { ...history, openTurn: open };
}

/** The pieces of a turn. They are put together once: a client may send thousands. */
class TurnPieces {
  readonly #form: TurnForm;
  #pieces: ClientAssistant[] = [];
  #hasCalls = false;
  #lastMark: string | undefined;
  #lastText = "";

  constructor(form: TurnForm, openTurn: ClientAssistant | undefined) {
    this.#form = form;
    if (openTurn !== undefined) this.add(openTurn);
  }

  takes(next: ClientAssistant): boolean {
    if (this.#pieces.length === 0) return false;
    return (
      this.#hasCalls || this.#form.goesOn({ mark: this.#lastMark, text: this.#lastText }, next)
    );
  }

  add(piece: ClientAssistant): void {
    this.#pieces.push(piece);
    this.#hasCalls ||= piece.calls.length > 0;
    this.#lastMark = piece.marks.at(-1) ?? this.#lastMark;
    this.#lastText = piece.content;
  }

  /** @returns the whole turn; `undefined` where there is none. */
  end(): ClientAssistant | undefined {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#hasCalls = false;
    this.#lastMark = undefined;
    this.#lastText = "";
    return pieces.length > 1 ? joinPieces(pieces, this.#form.separator) : pieces[0];
  }
}

function joinPieces(pieces: readonly ClientAssistant[], separator: string): ClientAssistant {
  const texts = pieces.map(({ content }) => content).filter((content) => content !== "");
  const reasoning = pieces.map((piece) => piece.reasoning ?? "").join("");
  return {
    role: "assistant",
    content: texts.join(separator),
    ...(reasoning === "" ? {} : { reasoning }),
    calls: pieces.flatMap(({ calls }) => calls),
    marks: pieces.flatMap(({ marks }) => marks),
  };
}
