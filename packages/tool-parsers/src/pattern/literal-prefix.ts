import type { PatternNode } from "./pattern-node.ts";

/** The text at the start of every match of a pattern; empty if there is no common text. */
export function literalPrefix(node: PatternNode): string {
  return readPrefix(node).text;
}

interface Prefix {
  readonly text: string;
  /** True if the part matches exactly its prefix, so that the next part extends it. */
  readonly isWhole: boolean;
}

function readPrefix(node: PatternNode): Prefix {
  switch (node.type) {
    case "one":
      return node.literal === undefined ? nothing : { text: node.literal, isWhole: true };
    // These match no characters.
    case "edge":
    case "look":
      return { text: "", isWhole: true };
    case "capture":
      return readPrefix(node.part);
    case "sequence": {
      let text = "";
      for (const part of node.parts) {
        const prefix = readPrefix(part);
        text += prefix.text;
        if (!prefix.isWhole) return { text, isWhole: false };
      }
      return { text, isWhole: true };
    }
    case "choice":
    case "repeat":
      return nothing;
  }
}

const nothing: Prefix = { text: "", isWhole: false };
