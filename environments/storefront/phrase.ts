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
  return phrase.replace(/\{(\w+)\}/g, (_, name: string) => slots[name] ?? "");
}

/**
 * Recognises what one of the phrases says, wherever it stands in the text: the places' texts, or
 * `undefined`. The last phrase in the text wins.
 */
export function readPhrase(phrases: readonly string[], text: string): Slots | undefined {
  let last: RegExpMatchArray | undefined;
  for (const phrase of phrases) {
    for (const match of text.matchAll(phrasePattern(phrase))) {
      if (last === undefined || match.index > (last.index ?? 0)) last = match;
    }
  }
  return last === undefined ? undefined : { ...last.groups };
}

const patterns = new Map<string, RegExp>();

function phrasePattern(phrase: string): RegExp {
  const known = patterns.get(phrase);
  if (known !== undefined) return known;
  const source = phrase
    .replace(/[.?$*+()[\]|^]/g, "\\$&")
    .replace(/\{(\w+)\}/g, (_, name: string) => `(?<${name}>${slotPatterns[name] ?? ""})`);
  const pattern = new RegExp(`(?<![a-z]) ?${source}`, "g");
  patterns.set(phrase, pattern);
  return pattern;
}
