import type { ClientAssistant, ClientMessage } from "../conversation.ts";

/** The messages of the items that are read so far. */
export interface History {
  readonly messages: readonly ClientMessage[];
  /** Number of items that were read. */
  readonly itemCount: number;
  /** The last assistant turn, which the next item may continue. */
  readonly openTurn?: ClientAssistant;
  /** True if the last item of that turn is text. */
  readonly endsInText?: true;
  /** Tools that items of the conversation add, in order, by their exact text. */
  readonly addedTools?: ReadonlyMap<string, AddedTool>;
  /** Present if the last item begins the policy's turn (a prefill): the path of the member that says so. */
  readonly prefill?: string;
}

/** A tool that an item of the conversation adds to the request's own list. */
export interface AddedTool {
  /** Its path in the body. */
  readonly place: string;
  readonly tool: unknown;
}

/** The history before the first item. */
export const noHistory: History = { messages: [], itemCount: 0 };

/** Returns the messages of a history, including its last turn. */
export function messagesOf({ messages, openTurn }: History): readonly ClientMessage[] {
  return openTurn === undefined ? messages : [...messages, openTurn];
}

/** The rules by which a dialect spreads a turn over several items. */
interface TurnForm {
  /**
   * Returns true if the next item continues a turn that has no call yet. A turn with a call stays
   * open until a result follows.
   *
   * @param last - The last mark and the last text of the turn.
   */
  readonly continuesTurn: (last: LastOfTurn, next: ClientAssistant) => boolean;
  /** Returns true if a complete turn, followed by other items, is to be dropped. Default: never. */
  readonly isDropped?: (turn: ClientAssistant) => boolean;
  /** Text between two texts that other items separate. Adjacent texts are joined by a newline. */
  readonly separator: string;
}

/** The last mark and text of a turn that is being read. */
export interface LastOfTurn {
  readonly mark: string | undefined;
  readonly text: string;
}

/**
 * Appends messages to a history. Everything that the assistant says and calls before the results of
 * its calls is one turn, because some clients send parallel calls in separate messages.
 *
 * @param items - The messages of each item.
 */
export function extendHistory(
  { messages: before, itemCount, openTurn, endsInText }: History,
  items: readonly (readonly ClientMessage[])[],
  form: TurnForm,
): History {
  const messages = [...before];
  const turn = new TurnPieces(form);
  if (openTurn !== undefined) turn.add(openTurn, endsInText === true);
  for (const message of items.flat()) {
    if (message.role === "assistant" && turn.takes(message)) {
      turn.add(message);
      continue;
    }
    const ended = turn.end();
    if (ended !== undefined && form.isDropped?.(ended) !== true) messages.push(ended);
    if (message.role === "assistant") turn.add(message);
    else messages.push(message);
  }
  const isText = turn.endsInText;
  const open = turn.end();
  const history = { messages, itemCount: itemCount + items.length };
  if (open === undefined) return history;
  return { ...history, openTurn: open, ...(isText && { endsInText: true }) };
}

/** The pieces of a turn. They are joined once at the end, because a client may send thousands. */
class TurnPieces {
  readonly #form: TurnForm;
  #pieces: ClientAssistant[] = [];
  /** The texts and the separators between them. */
  #texts: string[] = [];
  #endsInText = false;
  #hasCalls = false;
  #lastMark: string | undefined;
  #lastText = "";

  constructor(form: TurnForm) {
    this.#form = form;
  }

  /** True if the last piece that is not empty is text. */
  get endsInText(): boolean {
    return this.#endsInText;
  }

  takes(next: ClientAssistant): boolean {
    if (this.#pieces.length === 0) return false;
    return (
      this.#hasCalls ||
      this.#form.continuesTurn({ mark: this.#lastMark, text: this.#lastText }, next)
    );
  }

  /**
   * Adds a piece of the turn.
   *
   * @param endsInText - Overrides the default, which follows from the piece's own content.
   */
  add(piece: ClientAssistant, endsInText?: boolean): void {
    const { content, reasoning, calls, marks } = piece;
    this.#pieces.push(piece);
    if (content !== "") {
      const isNextText = this.#endsInText && reasoning === undefined;
      if (this.#texts.length > 0) this.#texts.push(isNextText ? "\n" : this.#form.separator);
      this.#texts.push(content);
    }
    if (calls.length > 0) this.#endsInText = false;
    else if (content !== "") this.#endsInText = true;
    else if (reasoning !== undefined) this.#endsInText = false;
    this.#endsInText = endsInText ?? this.#endsInText;
    this.#hasCalls ||= calls.length > 0;
    this.#lastMark = marks.at(-1) ?? this.#lastMark;
    this.#lastText = content;
  }

  /**
   * Ends the turn.
   *
   * @returns the complete turn, or `undefined` if it has no pieces.
   */
  end(): ClientAssistant | undefined {
    const pieces = this.#pieces;
    const text = this.#texts.join("");
    this.#pieces = [];
    this.#texts = [];
    this.#endsInText = false;
    this.#hasCalls = false;
    this.#lastMark = undefined;
    this.#lastText = "";
    return pieces.length > 1 ? joinPieces(pieces, text) : pieces[0];
  }
}

function joinPieces(pieces: readonly ClientAssistant[], content: string): ClientAssistant {
  const reasoning = pieces.map((piece) => piece.reasoning ?? "").join("");
  return {
    role: "assistant",
    content,
    ...(reasoning !== "" && { reasoning }),
    calls: pieces.flatMap(({ calls }) => calls),
    marks: pieces.flatMap(({ marks }) => marks),
  };
}
