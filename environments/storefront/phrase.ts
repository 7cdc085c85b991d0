/** What fills a phrase's places, such as `{order: "4821"}`. */
export type Slots = Readonly<Record<string, string>>;

/** What may stand in a place, by its name. */
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
 * Says a phrase: each `{place}` takes its slot's text.
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

/** The texts of the phrases that there are, and between each two the name of a place. */
const partsByPhrase = new Map<string, readonly string[]>();

/**
 * Recognises what one of the phrases says, wherever it stands in the text: the places' texts, or
 * `undefined`. The last phrase in the text wins.
 */
export function readPhrase(phrases: readonly string[], text: string): Slots | undefined {
  let last: RegExpMatchArray | undefined;
  for (const phrase of phrases) {
    const { pattern, fixed } = readablePhrase(phrase);
    // Most phrases are in no text at all, and this finds that out much faster.
    if (!text.includes(fixed)) continue;
    for (const match of text.matchAll(pattern)) {
      if (last === undefined || match.index > (last.index ?? 0)) last = match;
    }
  }
  return last === undefined ? undefined : { ...last.groups };
}

/** How a phrase is recognised. */
interface ReadablePhrase {
  readonly pattern: RegExp;
  /** The longest part of it that is the same whatever stands in its places. */
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
