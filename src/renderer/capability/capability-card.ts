import type { Dialect } from "../../parser/tool-call-parser.ts";
import type { PlainJson } from "../../python/value.ts";

/** What a template does to the history when a turn is added. */
export type HistoryEdit =
  /** The earlier prompt stays a prefix. */
  | "append-only"
  /** Earlier reasoning or text vanishes or moves. */
  | "rewrites"
  /** The template cannot render such a conversation. */
  | "not-renderable";

/** What was measured of one model's template and tokenizer, once at start-up. JSON-able. */
export interface CapabilityCard {
  /** The model folder or template file. */
  readonly source: string;
  /** SHA-256 of the template's text, hexadecimal. */
  readonly templateHash: string;
  /** Literals that end an assistant turn, as found by rendering. */
  readonly stopLiterals: readonly string[];
  /** Their ids; empty where only a template was given. */
  readonly stopIds: readonly number[];
  /**
   * The stop literals that open the next turn (GLM family), so that a sampled one may have to be
   * dropped from the ledger. Absent where there are none.
   */
  readonly stopOpeners?: readonly string[];
  /**
   * What the template does to earlier turns when the environment answers with tool results or a user
   * line, where no variable prevents it.
   */
  readonly history: { readonly afterTool: HistoryEdit; readonly afterUser: HistoryEdit };
  /**
   * The template variable that keeps earlier reasoning, where there is one, with the value that does.
   * `isSet` says whether every prompt and delta is rendered with it although nobody asked for it:
   * under the history policies `keep` and `refuse`.
   */
  readonly keepThinking?: {
    readonly variable: string;
    readonly value: boolean;
    readonly isSet: boolean;
  };
  /** The release of transformers whose renderings are reproduced; absent where none is. */
  readonly transformers?: string;
  /** Whether a prompt names the tools that it is rendered with. */
  readonly showsTools: boolean;
  /** Whether the prompt ends inside an opened reasoning block. */
  readonly opensReasoning: boolean;
  /** How the environment delta is rendered: from a short stand-in history or from the whole one. */
  readonly deltaBase: "short" | "full";
  /** Whether the delta's base must carry the tools. */
  readonly deltaNeedsTools: boolean;
  /** Kinds of environment messages for which a right delta was measured. */
  readonly supports: {
    readonly system: boolean;
    readonly user: boolean;
    readonly tool: boolean;
    readonly parallelTools: boolean;
  };
  /**
   * Tool-call parser and reasoning parser that fit the template's own markers, or that the user chose;
   * the reasoning parser `none` reads the whole text.
   */
  readonly parser?: string;
  readonly reasoningParser?: string;
  /** Whose behaviour the tool-call parser reproduces, and of which release; absent without a parser. */
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /** What these parsers make of a call as the template writes it; absent without a parser. */
  readonly ownCalls?: "read" | "misread" | "not-shown";
  /** Template variables that the user has set; absent where there are none. */
  readonly variables?: Readonly<Record<string, PlainJson>>;
  /** Names of what the user has chosen otherwise than it was found; absent where there is nothing. */
  readonly overrides?: readonly string[];
  /** What a person should know before training with this template. */
  readonly warnings: readonly string[];
}
