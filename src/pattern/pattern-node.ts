/** A pattern over code points, as its source says it. */
export type PatternNode =
  | {
      readonly type: "one";
      readonly accepts: (codePoint: number) => boolean;
      /** The character, where it is a single one. */
      readonly literal?: string;
    }
  | { readonly type: "sequence"; readonly parts: readonly PatternNode[] }
  | { readonly type: "choice"; readonly branches: readonly PatternNode[] }
  | {
      readonly type: "repeat";
      readonly part: PatternNode;
      readonly min: number;
      /** `Infinity` where there is no bound. */
      readonly max: number;
      readonly isLazy: boolean;
    }
  /** A part whose text is wanted, under a name. */
  | { readonly type: "capture"; readonly name: string; readonly part: PatternNode }
  | { readonly type: "edge"; readonly holds: Edge }
  | {
      readonly type: "look";
      readonly part: PatternNode;
      readonly isAhead: boolean;
      readonly isNegated: boolean;
    };

/** Says whether a place between two characters is the one that is wanted. */
export type Edge = (text: string, place: number) => boolean;

/** A pattern that cannot be read, or one that linear time does not allow. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}
