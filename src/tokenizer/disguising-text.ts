import type { JsonObject } from "./model-file.ts";

/**
 * Text that a normaliser may turn into a literal that it does not spell: text with characters beyond ASCII, text that
 * is more than a word of small letters, or any.
 */
export type DisguisingText = "beyond-ascii" | "beyond-words" | "any";

type NormalForm = "NFC" | "NFD" | "NFKC" | "NFKD";

const normalForms: ReadonlySet<unknown> = new Set<NormalForm>(["NFC", "NFD", "NFKC", "NFKD"]);

function isNormalForm(type: unknown): type is NormalForm {
  return normalForms.has(type);
}

/**
 * Which text may become an added token's literal once it is normalised, for tokens that are looked for in normalised
 * text: such as U+212A, the sign of Kelvin, which NFC turns into a K.
 *
 * @param normalizer - Of the tokenizer's document.
 * @returns `undefined` where only the literal itself does.
 */
export function findDisguisingText(
  content: string,
  normalizer: unknown,
): DisguisingText | undefined {
  const steps = stepsOf(normalizer);
  const changing = steps.filter((step) => !keepsApart(step, content));
  if (changing.length === 0) return undefined;
  const spelled = normalize(content, steps);
  // They leave ASCII as it is; but a text that spells what they make of the literal is one, too.
  if (
    changing.every(({ type }) => isNormalForm(type)) &&
    !(isAscii(spelled) && spelled !== content)
  ) {
    return "beyond-ascii";
  }
  return changing.every(keepsWords) && !isMadeSmallWord(content, spelled, changing)
    ? "beyond-words"
    : "any";
}

/** What the steps make of the literal, which is normalised as the text is, by those whose work is plain to see. */
function normalize(content: string, steps: readonly JsonObject[]): string {
  return steps.reduce((text, step) => {
    const { type, pattern, content: to } = step;
    if (isNormalForm(type)) return text.normalize(type);
    if (type === "Lowercase") return text.toLowerCase();
    const { String: from } = (pattern ?? {}) as JsonObject;
    if (type !== "Replace" || typeof from !== "string" || typeof to !== "string") return text;
    return from === "" ? text : text.replaceAll(from, to);
  }, content);
}

/**
 * Whether a literal that is no word of small letters may become one, so that such a word, which no step changes, is
 * the token: by its accents, width, white space or control characters, and by its case where a step changes that.
 */
function isMadeSmallWord(content: string, spelled: string, steps: readonly JsonObject[]): boolean {
  if (isSmallWord(content)) return false;
  const folded = steps.some(mayFoldCase) ? spelled.toUpperCase().toLowerCase() : spelled;
  return isSmallWord(folded.normalize("NFKD").replaceAll(/[\p{M}\p{C}\p{Z}\s]/gu, ""));
}

function mayFoldCase({ type, lowercase }: JsonObject): boolean {
  return (
    type === "Lowercase" ||
    type === "Precompiled" ||
    (type === "BertNormalizer" && lowercase !== false)
  );
}

const keepingWords: ReadonlySet<unknown> = new Set([
  ...normalForms,
  "Lowercase",
  "Precompiled",
  "BertNormalizer",
  "StripAccents",
  "Nmt",
  "Strip",
  "Prepend",
]);

/** Whether words of small letters come out of the step as they are, but for what it puts before them. */
function keepsWords({ type, pattern }: JsonObject): boolean {
  if (type !== "Replace") return keepingWords.has(type);
  const { String: from } = (pattern ?? {}) as JsonObject;
  return typeof from === "string" && !isSmallWord(from);
}

/** Whether the text is a word of small letters, as the names are that templates look for. */
export function isSmallWord(text: string): boolean {
  return /^[a-z_]*$/.test(text);
}

/** Whether the text has no characters beyond ASCII. */
export function isAscii(text: string): boolean {
  return !/[^\p{ASCII}]/u.test(text);
}

function stepsOf(normalizer: unknown): readonly JsonObject[] {
  const step = (normalizer ?? {}) as JsonObject;
  const { type, normalizers } = step;
  if (type === "Sequence" && Array.isArray(normalizers)) return normalizers.flatMap(stepsOf);
  return type === undefined ? [] : [step];
}

/**
 * Whether the step neither makes nor removes anything that could complete the literal: what it puts somewhere shares
 * no character with it, in any normal form, and what it takes away from between others leaves something there.
 */
function keepsApart(step: JsonObject, content: string): boolean {
  if (step["type"] === "Prepend") return sharesNothing(step["prepend"], content);
  if (step["type"] === "Strip") return !/\s/u.test(content);
  if (step["type"] !== "Replace") return false;
  const { String: from } = (step["pattern"] ?? {}) as JsonObject;
  const to = step["content"];
  if (from === "" || to === "") return false;
  return sharesNothing(from, content) && sharesNothing(to, content);
}

function sharesNothing(put: unknown, content: string): boolean {
  if (typeof put !== "string") return false;
  const characters = [...put, ...put.normalize("NFKC"), ...put.normalize("NFKD")];
  return !characters.some((character) => content.includes(character));
}
