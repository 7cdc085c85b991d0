/** A field by which a list can be filtered and sorted. */
export interface ListField<Item> {
  /** The field's name in filters. */
  readonly name: string;
  readonly title: string;
  /** An explanation for first-time readers. */
  readonly meaning: string;
  readonly valueOf: (item: Item) => number | string | undefined;
}

/** The parts of a list's items that a filter reads. */
export interface Filtered<Item> {
  readonly fields: readonly ListField<Item>[];
  /** Returns the texts in which a word without a condition is searched. */
  readonly textsOf: (item: Item) => readonly (string | undefined)[];
}

/** A parsed filter, and the words of it that could not be parsed. */
export interface ListFilter<Item> {
  /** True if the filter shows the item. */
  readonly test: (item: Item) => boolean;
  readonly problems: readonly string[];
}

const condition = /^(\p{L}[^<>=!:]*)(<=|>=|!=|=|<|>|:)(.*)$/su;

/**
 * Reads a filter: words with blanks between them. An item must match all of them. A word is a condition such as
 * `reward<1`, `turns>=10`, `outcome:failed` or `reward=none`, or a part of one of the item's texts. Letter case does
 * not count. Quotation marks keep words together: `"red rug"`, `about:"red rug"`.
 */
export function readListFilter<Item>(text: string, filtered: Filtered<Item>): ListFilter<Item> {
  const problems: string[] = [];
  const tests = filterWords(text).map((word) => readWord(word, filtered, problems));
  return { problems, test: (item) => tests.every((test) => test(item)) };
}

/** Returns the words of a filter, with their quotation marks. */
export function filterWords(text: string): readonly string[] {
  return text.match(/(?:[^\s"]|"[^"]*"?)+/g) ?? [];
}

/**
 * Returns a condition's name or value for a filter: without its own quotation marks, and in quotation marks if it has a
 * blank.
 */
export function quoted(text: string): string {
  const plain = text.replaceAll('"', "");
  return /\s/.test(plain) ? `"${plain}"` : plain;
}

/** Returns the filter with a word added; if the filter has the word, returns it without the word. */
export function toggleWord(filter: string, word: string): string {
  const words = filterWords(filter);
  return words.includes(word)
    ? words.filter((other) => other !== word).join(" ")
    : [...words, word].join(" ");
}

function readWord<Item>(
  written: string,
  { fields, textsOf }: Filtered<Item>,
  problems: string[],
): (item: Item) => boolean {
  const word = written.replaceAll('"', "");
  // In quotation marks, a condition is text to search.
  const match = /^"[^"]*"?$/.test(written) ? null : condition.exec(word);
  if (match === null) {
    const wanted = word.toLowerCase();
    return (item) => textsOf(item).some((text) => text?.toLowerCase().includes(wanted));
  }
  const found = longestField(word, fields);
  const [, name, operator, wanted] = (found?.match ?? match) as unknown as Parts;
  const { field } = found ?? {};
  if (field === undefined) {
    problems.push(`there is no “${name}”`);
    return () => true;
  }
  if (wanted === "none") {
    const isWanted = operator !== "!=";
    return (item) => (field.valueOf(item) === undefined) === isWanted;
  }
  const number = wanted === "" ? Number.NaN : Number(wanted);
  if (/[<>]/.test(operator) && Number.isNaN(number)) {
    problems.push(`“${word}” compares with no number`);
    return () => true;
  }
  return (item) => {
    const value = field.valueOf(item);
    if (value === undefined) return false;
    return typeof value === "number"
      ? compareNumber(value - number, operator)
      : compareText(value.toLowerCase(), operator, wanted.toLowerCase());
  };
}

type Parts = readonly [word: string, name: string, operator: string, wanted: string];

/** Finds the field with the longest name with which a condition begins. A name may have operators and quotation marks. */
function longestField<Item>(word: string, fields: readonly ListField<Item>[]) {
  const lower = word.toLowerCase();
  return fields
    .flatMap((field) => {
      const name = field.name.replaceAll('"', "");
      if (!lower.startsWith(name.toLowerCase())) return [];
      const match = /^(<=|>=|!=|=|<|>|:)(.*)$/su.exec(word.slice(name.length));
      return match === null ? [] : [{ field, match: [word, name, match[1], match[2]] }];
    })
    .sort((left, right) => right.field.name.length - left.field.name.length)
    .at(0);
}

function compareText(value: string, operator: string, wanted: string): boolean {
  if (operator === "!=") return value !== wanted;
  return operator === ":" ? value.includes(wanted) : value === wanted;
}

function compareNumber(difference: number, operator: string): boolean {
  switch (operator) {
    case "<":
      return difference < 0;
    case "<=":
      return difference <= 0;
    case ">":
      return difference > 0;
    case ">=":
      return difference >= 0;
    case "!=":
      return difference !== 0;
    default:
      return difference === 0;
  }
}

/**
 * Sorts items by a field. Items without a value come last. Items with equal values keep the order of `compareEqual`.
 *
 * @param order - The field's name. A leading `-` sorts in descending order. With an unknown name, the order stays.
 */
export function sortList<Item>(
  items: readonly Item[],
  order: string,
  {
    fields,
    compareEqual,
  }: {
    readonly fields: readonly ListField<Item>[];
    readonly compareEqual: (left: Item, right: Item) => number;
  },
): readonly Item[] {
  const isDown = order.startsWith("-");
  const name = isDown ? order.slice(1) : order;
  const field = fields.find((each) => each.name === name);
  if (field === undefined) return items;
  const sign = isDown ? -1 : 1;
  return items
    .map((item) => ({ item, value: field.valueOf(item) }))
    .sort(
      (left, right) =>
        compareValues(left.value, right.value, sign) || compareEqual(left.item, right.item),
    )
    .map(({ item }) => item);
}

const collator = new Intl.Collator("en", { numeric: true });

function compareValues(
  left: number | string | undefined,
  right: number | string | undefined,
  sign: number,
): number {
  if (left === right) return 0;
  if (left === undefined) return 1;
  if (right === undefined) return -1;
  if (typeof left === "string") return sign * collator.compare(left, String(right));
  return left < Number(right) ? -sign : sign;
}
