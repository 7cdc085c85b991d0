/** The values of a phrase's slots, such as `{order: "4821"}`. */
export type Slots = Readonly<Record<string, string>>;

/** The pattern of each slot's values, by name. */
const slotPatterns: Readonly<Record<string, string>> = {
  name: "[A-Z][a-z]+ [A-Z][a-z]+",
  postcode: "\\d{5}",
  order: "\\d{4}",
  item: "[a-z]+ [A-Z][a-z]+ [a-z]+",
  product: "[A-Z][a-z]+ [a-z]+",
  color: "[a-z]+",
  address: "\\d+ [A-Z][a-z]+ [A-Z][a-z]+",
  date: "\\d+ [A-Z][a-z]+",
  total: "\\$\\d+",
  status: "[a-z]+",
  days: "\\d+",
};

/**
 * Fills in a phrase: each `{name}` is replaced by its slot's text.
 *
 * `fillPhrase("Cancel order {order}.", { order: "4821" })` is `Cancel order 4821.`
 */
export function fillPhrase(phrase: string, slots: Slots): string {
  let parts = partsByPhrase.get(phrase);
  if (parts === undefined) {
    parts = phrase.split(/\{(\w+)\}/);
    partsByPhrase.set(phrase, parts);
  }
  let filled = parts[0] as string;
  for (let index = 1; index < parts.length; index += 2) {
    filled += (slots[parts[index] as string] ?? "") + (parts[index + 1] as string);
  }
  return filled;
}

/** The parts of the phrases: fixed texts, alternating with slot names. */
const partsByPhrase = new Map<string, readonly string[]>();

/** Finds one of the phrases in a text and returns its slots, or `undefined`. The last phrase in the text wins. */
export function readPhrase(phrases: readonly string[], text: string): Slots | undefined {
  let last: RegExpMatchArray | undefined;
  for (const phrase of phrases) {
    const { pattern, fixed } = readablePhrase(phrase);
    // A quick check, since most phrases occur in no text.
    if (!text.includes(fixed)) continue;
    for (const match of text.matchAll(pattern)) {
      if (last === undefined || match.index > (last.index ?? 0)) last = match;
    }
  }
  return last === undefined ? undefined : { ...last.groups };
}

/** A phrase, prepared for recognition. */
interface ReadablePhrase {
  readonly pattern: RegExp;
  /** The longest fixed part. */
  readonly fixed: string;
}

const readable = new Map<string, ReadablePhrase>();

function readablePhrase(phrase: string): ReadablePhrase {
  const known = readable.get(phrase);
  if (known !== undefined) return known;
  const source = phrase
    .replace(/[.?$*+()[\]|^]/g, "\\$&")
    .replace(/\{(\w+)\}/g, (_, name: string) => `(?<${name}>${slotPatterns[name] ?? ""})`);
  const pattern = new RegExp(`(?<![a-z]) ?${source}`, "g");
  const parts = phrase.split(/\{\w+\}/);
  const fixed = parts.reduce((longest, part) => (part.length > longest.length ? part : longest));
  const made = { pattern, fixed };
  readable.set(phrase, made);
  return made;
}
