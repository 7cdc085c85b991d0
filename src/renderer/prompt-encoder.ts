import type { ControlTokenGuard } from "./control-token-guard.ts";
import { literalPattern } from "./literal-pattern.ts";
import type { Seal } from "./seal.ts";
import { isSealed } from "./seal.ts";

/** Encodes first prompts. */
export type PromptEncoder = (text: string, seal: Seal | undefined) => Promise<number[]>;

/** System prompts with their tools are few; a run seldom has more than one or two. */
const cachedPrefixCount = 16;

/**
 * Makes an encoder that encodes what prompts have in common only once: the text up to the first
 * control token of the given ones, which in most templates is the system message with the tools.
 *
 * Cutting behind a token that the tokenizer matches as a whole is exact where the rest is encoded
 * with that token in front, because nothing merges across it.
 */
export function createPromptEncoder(
  guard: ControlTokenGuard,
  anchorLiterals: readonly string[],
): PromptEncoder {
  const anchors = literalPattern(anchorLiterals, "u");
  const prefixes = new Map<string, Promise<number[]>>();

  function encodePrefix(prefix: string): Promise<number[]> {
    const ids = prefixes.get(prefix) ?? Promise.resolve(guard.encode(prefix, undefined));
    prefixes.delete(prefix);
    // A part of a long text keeps all of it in memory.
    prefixes.set(copyOf(prefix), ids);
    // A failure must not be remembered; who asked learns of it from the promise itself.
    ids.catch(() => prefixes.delete(prefix));
    const [oldest] = prefixes.keys();
    if (prefixes.size > cachedPrefixCount && oldest !== undefined) prefixes.delete(oldest);
    return ids;
  }

  return async (text, seal) => {
    const anchor = anchors.exec(text);
    if (anchor === null) return await guard.encode(text, seal);
    const end = anchor.index + anchor[0].length;
    const prefix = text.slice(0, end);
    if (isSealed(prefix, seal)) return await guard.encode(text, seal);
    const [first, rest] = await Promise.all([
      encodePrefix(prefix),
      guard.encode(text.slice(anchor.index), seal),
    ]);
    return first.concat(rest.slice(1));
  };
}

/** The same text in memory of its own. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
