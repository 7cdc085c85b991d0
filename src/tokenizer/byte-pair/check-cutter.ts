import { byteCount, type LibraryCut } from "./library-cut.ts";
import { cutText, type PieceCutter } from "./piece-splitter.ts";

/**
 * True if the cutter and the library cut a sample alike. The sample has characters of all kinds next
 * to each other, so that it also shows a library with other Unicode data or other rules.
 *
 * @param tokens - The texts of the added tokens.
 */
export async function cutsAsLibrary(
  cutter: PieceCutter,
  library: LibraryCut,
  tokens: readonly string[],
): Promise<boolean> {
  const sample = createSample(tokens);
  const { symbols, pieces } = await library.cut("full", sample);
  let at = 0;
  for (const piece of cutText(cutter, sample) ?? []) {
    const token = tokens.indexOf(piece);
    const expected = token === -1 ? Buffer.from(piece) : [byteCount + token];
    const word = pieces[at];
    for (const symbol of expected) {
      if (symbols[at] !== symbol || pieces[at] !== word) return false;
      at += 1;
    }
    if (at < symbols.length && pieces[at] === word) return false;
  }
  return at === symbols.length;
}

/**
 * Text of several kinds of characters: letters of each case and script, marks, numbers, white space,
 * punctuation, symbols, contractions, and characters of several releases of Unicode.
 */
const fragments: readonly string[] = [
  ..."aBé ǅʰß中あカ한ア́ ़ि۝1½²Ⅻ٣",
  ..." \t\n\r\u0085\u00a0\u2028\u3000\u200b\u200d\ufeff\u0000",
  ..."'\"_-/.,!?<>|{}[]()#$%&*+=@\\^`~¿“”—…。、！",
  ..."€™→│✓©😀👩🏽🤖🧪🥳🫠🪿🇺\ue000\ufe0f𝔘𐐀",
  "the",
  "'s",
  "'LL",
  "'ſ",
  "McDonald",
  "1234",
  "  ",
  "\n\n",
  "\r\n",
  " \n ",
  "e\u0301\u0323",
  "\u1100\u1161\u11a8",
  "\u212b",
  "\u0915\u093f",
];

/** Number of fragments in the sample. */
const fragmentCount = 1000;

function createSample(tokens: readonly string[]): string {
  const all = [...fragments, ...tokens.slice(0, 4)];
  let sample = fragments.join("");
  let state = 1;
  for (let count = 0; count < fragmentCount; count++) {
    // Source: Numerical Recipes, the constants of `ranqd1()`.
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    sample += all[(state >>> 8) % all.length] as string;
  }
  return sample;
}
