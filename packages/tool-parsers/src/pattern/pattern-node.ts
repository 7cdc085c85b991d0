/** The syntax tree of a pattern over code points. */
export type PatternNode =
  | {
      readonly type: "one";
      readonly accepts: (codePoint: number) => boolean;
      /** The character, if it matches a single one. */
      readonly literal?: string;
    }
  | { readonly type: "sequence"; readonly parts: readonly PatternNode[] }
  | { readonly type: "choice"; readonly branches: readonly PatternNode[] }
  | {
      readonly type: "repeat";
      readonly part: PatternNode;
      readonly min: number;
      /** `Infinity` for no limit. */
      readonly max: number;
      readonly isLazy: boolean;
    }
  /** A named part with a captured text. */
  | { readonly type: "capture"; readonly name: string; readonly part: PatternNode }
  | { readonly type: "edge"; readonly holds: Edge }
  | {
      readonly type: "look";
      readonly part: PatternNode;
      readonly isAhead: boolean;
      readonly isNegated: boolean;
    };

/** True if an assertion holds between two characters. */
export type Edge = (text: string, place: number) => boolean;

/** The error for an invalid pattern, or for one that cannot run in linear time. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}
