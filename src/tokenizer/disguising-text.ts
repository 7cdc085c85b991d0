import type { JsonObject } from "../values/is-object.ts";

/**
 * The kind of text that a normaliser may turn into a literal: text with non-ASCII characters, text
 * other than a word of small letters, or any text.
 */
export type DisguisingText = "beyond-ascii" | "beyond-words" | "any";

type NormalForm = "NFC" | "NFD" | "NFKC" | "NFKD";

const normalForms: ReadonlySet<unknown> = new Set<NormalForm>(["NFC", "NFD", "NFKC", "NFKD"]);

function isNormalForm(type: unknown): type is NormalForm {
  return normalForms.has(type);
}

/**
 * Finds the kind of text that normalisation may turn into an added token's literal. For example,
 * NFC turns U+212A, the Kelvin sign, into a K. Applies to tokens that are searched in normalised
 * text.
 *
 * @param normalizer - The normaliser of the tokenizer's document.
 * @returns `undefined` if only the literal itself becomes the token.
 */
export function findDisguisingText(
  content: string,
  normalizer: unknown,
): DisguisingText | undefined {
  const steps = stepsOf(normalizer);
  const changing = steps.filter((step) => !cannotProduce(step, content));
  if (changing.length === 0) return undefined;
  const normalized = normalize(content, steps);
  // Normal forms keep ASCII. But if the literal itself is normalised to other ASCII text, that text
  // becomes the token too.
  if (
    changing.every(({ type }) => isNormalForm(type)) &&
    !(isAscii(normalized) && normalized !== content)
  ) {
    return "beyond-ascii";
  }
  return changing.every(keepsSmallWords) && !becomesSmallWord(content, normalized, changing)
    ? "beyond-words"
    : "any";
}

/**
 * Normalises a literal by the steps that have a known effect. The library normalises it as it does
 * texts.
 */
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
 * True if a literal that is not a word of small letters may be normalised to one: by its accents,
 * width, white space or control characters, and by its case if a step changes case. Such a word is
 * then the token, because no step changes it.
 */
function becomesSmallWord(
  content: string,
  normalized: string,
  steps: readonly JsonObject[],
): boolean {
  if (isSmallWord(content)) return false;
  const folded = steps.some(mayFoldCase) ? normalized.toUpperCase().toLowerCase() : normalized;
  return isSmallWord(folded.normalize("NFKD").replaceAll(/[\p{M}\p{C}\p{Z}\s]/gu, ""));
}

function mayFoldCase({ type, lowercase }: JsonObject): boolean {
  return (
    type === "Lowercase" ||
    type === "Precompiled" ||
    (type === "BertNormalizer" && lowercase !== false)
  );
}

const wordKeepingTypes: ReadonlySet<unknown> = new Set([
  ...normalForms,
  "Lowercase",
  "Precompiled",
  "BertNormalizer",
  "StripAccents",
  "Nmt",
  "Strip",
  "Prepend",
]);

/** True if the step keeps words of small letters, apart from text that it puts before them. */
function keepsSmallWords({ type, pattern }: JsonObject): boolean {
  if (type !== "Replace") return wordKeepingTypes.has(type);
  const { String: from } = (pattern ?? {}) as JsonObject;
  return typeof from === "string" && !isSmallWord(from);
}

/** True if the text is a word of small letters, as the names in templates are. */
export function isSmallWord(text: string): boolean {
  return /^[a-z_]*$/.test(text);
}

/** True if the text has only ASCII characters. */
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
 * True if the step cannot complete the literal: text that it inserts shares no character with the
 * literal in any normal form, and it removes nothing from between other characters.
 */
function cannotProduce(step: JsonObject, content: string): boolean {
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
