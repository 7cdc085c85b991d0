import type { PatternNode } from "./pattern-node.ts";

/** The text that each match of a pattern begins with; empty where there is none. */
export function literalPrefix(node: PatternNode): string {
  return readPrefix(node).text;
}

interface Prefix {
  readonly text: string;
  /** The part is no more than its prefix, so that the next one goes on. */
  readonly isWhole: boolean;
}

function readPrefix(node: PatternNode): Prefix {
  switch (node.type) {
    case "one":
      return node.literal === undefined ? nothing : { text: node.literal, isWhole: true };
    // They take no text.
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
