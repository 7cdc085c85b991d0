/** A kind of token in a training row, for human readers. */
export interface TokenKind {
  readonly name: "prompt" | "sampled" | "environment" | "synthesised-close" | "context";
  /** A letter that distinguishes the kinds without colour. */
  readonly letter: string;
  /** The kind's full name. */
  readonly title: string;
  /** The author of the token, and its role in training. */
  readonly meaning: string;
}

/** All kinds. `kinds[i]` of a row is an index into this list. */
export const tokenKinds: readonly TokenKind[] = [
  {
    name: "prompt",
    letter: "P",
    title: "prompt",
    meaning: "what the conversation began with: not trained",
  },
  {
    name: "sampled",
    letter: "S",
    title: "sampled",
    meaning: "what the policy sampled: trained",
  },
  {
    name: "environment",
    letter: "E",
    title: "environment",
    meaning: "answers of tools and the user, with the template's text around them: not trained",
  },
  {
    name: "synthesised-close",
    letter: "C",
    title: "synthesised close",
    meaning: "the close of a turn that the policy did not close itself: not trained",
  },
  {
    name: "context",
    letter: "X",
    title: "context",
    meaning: "sampled, and trained in another row: not trained here",
  },
];

/** Indexes into `tokenKinds` by name. */
export const kindIndex = {
  prompt: 0,
  sampled: 1,
  environment: 2,
  "synthesised-close": 3,
  context: 4,
} as const satisfies Readonly<Record<TokenKind["name"], number>>;
