import type { Dialect } from "../../../packages/tool-parsers/src/tool-call-parser.ts";
import type { PlainJson } from "../../../packages/python-values/src/value.ts";

/** The effect on the history when a turn is added. */
export type HistoryEdit =
  /** The earlier prompt stays a prefix. */
  | "append-only"
  /** Earlier reasoning or text disappears or moves. */
  | "rewrites"
  /** The template cannot render such a conversation. */
  | "not-renderable";

/** The measurements of one model's template and tokenizer, made once at start-up. JSON-able. */
export interface CapabilityCard {
  /** The model folder or template file. */
  readonly source: string;
  /** SHA-256 of the template's text, hexadecimal. */
  readonly templateHash: string;
  /** Literals that end an assistant turn, found by rendering. */
  readonly stopLiterals: readonly string[];
  /** The ids of `stopLiterals`. Empty if the card has only a template. */
  readonly stopIds: readonly number[];
  /**
   * The stop literals that also open the next turn (GLM family). A sampled one may have to be dropped from the ledger.
   * Absent if there are none.
   */
  readonly stopOpeners?: readonly string[];
  /**
   * The template's effect on earlier turns when the environment answers with tool results or a user line, if no
   * variable prevents it.
   */
  readonly history: { readonly afterTool: HistoryEdit; readonly afterUser: HistoryEdit };
  /**
   * The template variable that keeps earlier reasoning, if there is one, and its value. `isSet` is true if every
   * prompt and delta is rendered with it by default: under the history policies `keep` and `refuse`.
   */
  readonly keepThinking?: {
    readonly variable: string;
    readonly value: boolean;
    readonly isSet: boolean;
  };
  /** The release of transformers that the renderings reproduce, if any. */
  readonly transformers?: string;
  /** True if a prompt names the tools that it is rendered with. */
  readonly showsTools: boolean;
  /** True if the prompt ends inside an opened reasoning block. */
  readonly opensReasoning: boolean;
  /** The history that the environment delta is rendered with: a short stand-in or the complete one. */
  readonly deltaBase: "short" | "full";
  /** True if the delta's base must contain the tools. */
  readonly deltaNeedsTools: boolean;
  /** The kinds of environment messages with a correct measured delta. */
  readonly supports: {
    readonly system: boolean;
    readonly user: boolean;
    readonly tool: boolean;
    readonly parallelTools: boolean;
  };
  /**
   * Tool-call parser and reasoning parser that fit the template's markers, or that the user chose. The reasoning
   * parser `none` reads no reasoning.
   */
  readonly parser?: string;
  readonly reasoningParser?: string;
  /** The engine that the tool-call parser reproduces, with its release. Absent without a parser. */
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /**
   * The result of parsing a call as the template writes it: `not-shown` if the template shows no call. Absent without a
   * parser.
   */
  readonly ownCalls?: "read" | "misread" | "not-shown";
  /** Template variables that the user set, if any. */
  readonly variables?: Readonly<Record<string, PlainJson>>;
  /** The names of the settings that the user overrode, if any. */
  readonly overrides?: readonly string[];
  /** Problems to know before training with this template. */
  readonly warnings: readonly string[];
}
