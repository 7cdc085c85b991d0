import type { ControlTokenGuard } from "./guard/control-token-guard.ts";
import { literalPattern } from "./guard/literal-pattern.ts";
import type { Seal } from "./guard/seal.ts";
import { isSealed } from "./guard/seal.ts";

/** Encodes first prompts. */
export type PromptEncoder = (text: string, seal: Seal | undefined) => Promise<number[]>;

/** The common start of several prompts. */
interface Prefix {
  readonly text: string;
  /** A promise until the ids are known. */
  ids: number[] | Promise<number[]>;
}

/** The most cached prefixes. A run seldom has more than one or two system prompts with tools. */
const cachedPrefixCount = 16;

/**
 * Makes an encoder that encodes the common start of prompts only once: the text up to the first of the given
 * control tokens. In most templates this is the system message with the tools.
 *
 * A cut after a token that the tokenizer matches as one piece is exact if the rest is encoded with that token in
 * front, because nothing merges across it.
 */
export function createPromptEncoder(
  guard: ControlTokenGuard,
  anchorLiterals: readonly string[],
): PromptEncoder {
  const anchors = literalPattern(anchorLiterals, "u");
  const prefixes = new Map<string, Prefix>();
  /** The latest prefix, with which most prompts of a run begin. */
  let newest: Prefix | undefined;

  function findPrefix(text: string): Prefix {
    if (newest?.text === text) return newest;
    newest = prefixes.get(text) ?? createPrefix(text);
    prefixes.delete(newest.text);
    prefixes.set(newest.text, newest);
    const [oldest] = prefixes.keys();
    if (prefixes.size > cachedPrefixCount && oldest !== undefined) prefixes.delete(oldest);
    return newest;
  }

  function createPrefix(part: string): Prefix {
    // A substring keeps the complete long text in memory.
    const text = copyOf(part);
    const ids = guard.encode(text, undefined);
    const prefix: Prefix = { text, ids };
    if (ids instanceof Promise) {
      const forget = (): void => {
        prefixes.delete(text);
        if (newest === prefix) newest = undefined;
      };
      // A failure must not be cached; the caller gets it from the promise itself.
      ids.then((known) => (prefix.ids = known), forget);
    }
    return prefix;
  }

  return async (text, seal) => {
    const anchor = anchors.exec(text);
    if (anchor === null) return await guard.encode(text, seal);
    const end = anchor.index + anchor[0].length;
    const prefix = text.slice(0, end);
    if (isSealed(prefix, seal)) return await guard.encode(text, seal);
    const { ids: prefixIds } = findPrefix(prefix);
    const restIds = guard.encode(text.slice(anchor.index), seal);
    const [first, rest] =
      prefixIds instanceof Promise || restIds instanceof Promise
        ? await Promise.all([prefixIds, restIds])
        : [prefixIds, restIds];
    return first.concat(rest.slice(1));
  };
}

/** Returns a copy of the text that has its own memory. */
function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}
