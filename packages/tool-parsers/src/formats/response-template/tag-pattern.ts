import { expandLiterals } from "./literals.ts";
import { readPythonRegex } from "./python-regex.ts";
import { templateProblem } from "./template-problem.ts";
import { escapePattern, searchPattern } from "./template-search.ts";

/** A key and the text of its value. */
interface Tag {
  readonly key: string;
  readonly value: string;
}

/**
 * Compiles the pattern of elements with the groups `key` and `value`. Patterns of the common form,
 * `<p name="(?P<key>[^"]+)">(?P<value>.*?)</p>`, are found by their literals. All patterns run in
 * linear time.
 *
 * @throws UsageError for a pattern that cannot be read, that lacks a group, or that matches the
 *   empty text.
 */
export function compileTag(pattern: string, place: string): (text: string) => Iterable<Tag> {
  const { node, canBeEmpty, certainNames } = readPythonRegex(pattern, place);
  if (canBeEmpty) throw templateProblem(`${place} can match the empty text, expected more`);
  for (const name of ["key", "value"]) {
    if (certainNames.includes(name)) continue;
    throw templateProblem(`${place} has no group ${name} that is part of every match`);
  }
  const plain = readPlainTag(pattern);
  if (plain !== undefined) return (text) => findPlainTags(text, plain);
  const search = searchPattern(node, place);
  return function* findTags(text) {
    // A tag is never empty.
    for (let tag = search(text, 0); tag !== undefined; tag = search(text, tag.end)) {
      const groups = tag.groups();
      yield { key: groups.get("key") ?? "", value: groups.get("value") ?? "" };
    }
  };
}

/**
 * A tag pattern without a regular expression: `open`, a key, `middle`, a value, and one of `ends`. The key ends before
 * the character `keyEnd`, and the value before the earliest match of `ends`.
 */
interface PlainTag {
  readonly open: string;
  /** The text that ends the key, and cannot be part of it. */
  readonly keyEnd: string;
  /** The text from the end of the key to the start of the value. */
  readonly middle: string;
  readonly ends: RegExp;
}

function readPlainTag(pattern: string): PlainTag | undefined {
  const shape = /^(.*?)\(\?P<key>\[\^(["'<>=])\]\+\)(.*?)\(\?P<value>\.\*\?\)(.*)$/s.exec(pattern);
  if (shape === null) return undefined;
  const [, before = "", keyEnd = "", between = "", after = ""] = shape;
  const [open, ...otherOpens] = expandLiterals(before) ?? [];
  const [middle, ...otherMiddles] = expandLiterals(between) ?? [];
  if (open === undefined || middle?.startsWith(keyEnd) !== true) return undefined;
  if (open === "" || otherOpens.length > 0 || otherMiddles.length > 0) return undefined;
  const ends = readEnds(after);
  return ends === undefined ? undefined : { open, keyEnd, middle, ends };
}

/**
 * Compiles the text after a value: literals, after which an alternative `(?:consumed|(?=ahead))`
 * may follow.
 */
function readEnds(after: string): RegExp | undefined {
  const choice = /^(.*?)\(\?:((?:(?!\(\?=).)+)\|\(\?=((?:[^()\\]|\\.)+)\)\)$/s.exec(after);
  const texts = choice === null ? [after] : choice.slice(1);
  const expanded = texts.map((text) => expandLiterals(text ?? ""));
  const [start, consumed, ahead] = expanded;
  if (start === undefined || start.includes("")) return undefined;
  // The reader does not determine which of several literals a pattern prefers.
  if (expanded.some((literals) => literals === undefined || hasPrefix(literals))) return undefined;
  const anyOf = (literals: readonly string[]): string =>
    `(?:${literals.map(escapePattern).join("|")})`;
  if (choice === null) return new RegExp(anyOf(start), "gu");
  if (consumed === undefined || ahead === undefined) return undefined;
  return new RegExp(`${anyOf(start)}(?:${anyOf(consumed)}|(?=${anyOf(ahead)}))`, "gu");
}

/** True if one of the texts is a prefix of another. */
function hasPrefix(literals: readonly string[]): boolean {
  return literals.some((left, index) =>
    literals.some((right, other) => index !== other && right.startsWith(left)),
  );
}

function* findPlainTags(text: string, { open, keyEnd, middle, ends }: PlainTag): Iterable<Tag> {
  let start = text.indexOf(open);
  let keyStop = 0;
  while (start !== -1) {
    const keyStart = start + open.length;
    if (keyStop < keyStart) keyStop = text.indexOf(keyEnd, keyStart);
    // The rest of the text lacks it too.
    if (keyStop === -1) return;
    const isTag = keyStop > keyStart && text.startsWith(middle, keyStop);
    if (!isTag) {
      start = text.indexOf(open, start + 1);
      continue;
    }
    ends.lastIndex = keyStop + middle.length;
    const end = ends.exec(text);
    if (end === null) return;
    yield {
      key: text.slice(keyStart, keyStop),
      value: text.slice(keyStop + middle.length, end.index),
    };
    start = text.indexOf(open, ends.lastIndex);
  }
}
