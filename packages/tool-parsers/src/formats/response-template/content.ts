import {
  isPyList,
  parsePythonJson,
  type PyDict,
  pythonLower,
  pythonStrip,
  pythonTruthy,
  PythonValueError,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { regexWordClass } from "../../pattern/read-pattern.ts";
import { compileTag } from "./tag-pattern.ts";
import { requireDict, templateProblem, textOf } from "./template-problem.ts";

/**
 * A function that reads the text of a region.
 *
 * @throws PythonError if the original raises.
 */
export type ContentReader = (text: string) => PyValue;

/** The differences between the engines' copies of the interpreter. */
interface ContentOptions {
  /** True if JSON that nests too deep counts as malformed; otherwise the complete turn fails. */
  readonly forgivesDepth: boolean;
}

/** Maximum nesting of readers of values. */
const MAX_DEPTH = 20;

/**
 * Makes the reader that a template names, such as `xml-inline`.
 *
 * @throws UsageError for unknown names and arguments.
 */
export function compileContent(
  name: string,
  settings: PyDict,
  options: ContentOptions,
  place: string,
  depth = 0,
): ContentReader {
  if (depth > MAX_DEPTH) throw templateProblem(`${place} nests deeper than ${MAX_DEPTH} readers`);
  const clean = compileStrip(settings);
  const inner = (): ContentReader =>
    compileInner(settings.get("value_parser"), options, `${place}.value_parser`, depth);
  switch (name) {
    case "text":
      return clean;
    case "int":
      return (text) => parsePythonInt(clean(text));
    case "float":
      return (text) => parsePythonFloat(clean(text));
    case "bool":
      return (text) => ["true", "1"].includes(pythonLower(clean(text)));
    case "json":
      return compileJson(settings, clean, options, place);
    case "xml-inline":
      return compileTags(settings, inner(), place);
    case "kv-lines":
      return compileLines(settings, clean, inner(), place);
    default:
      throw templateProblem(
        `${place} names the content parser ${JSON.stringify(name)}, expected one of ` +
          "text, int, float, bool, json, xml-inline, kv-lines",
      );
  }
}

function compileStrip(settings: PyDict): (text: string) => string {
  const strip = settings.get("strip");
  return strip === undefined || pythonTruthy(strip) ? pythonStrip : (text) => text;
}

function compileInner(
  value: PyValue | undefined,
  options: ContentOptions,
  place: string,
  depth: number,
): ContentReader {
  if (value === undefined || value === null) return (text) => text;
  const parser = requireDict(value, place);
  const name = textOf(parser, "name", place) ?? "text";
  const settings = requireDict(parser.get("args") ?? new Map(), `${place}.args`);
  return compileContent(name, settings, options, place, depth + 1);
}

/** Makes a reader of JSON, which first corrects common mistakes of models. */
function compileJson(
  settings: PyDict,
  clean: (text: string) => string,
  { forgivesDepth }: ContentOptions,
  place: string,
): ContentReader {
  const delimiters = readDelimiters(settings.get("string_delims") ?? [], place);
  const quotesKeys = pythonTruthy(settings.get("unquoted_keys") ?? false);
  const allowsOther = pythonTruthy(settings.get("allow_non_json") ?? false);
  const caught = [
    "JSONDecodeError",
    ...(forgivesDepth ? (["RecursionError"] as const) : []),
  ] as const;
  return (text) => {
    // These characters stand for strings that were taken out.
    const isReserved = text.includes("\u0001") || text.includes("\u0002");
    if (delimiters.length > 0 && isReserved) {
      throw new PythonValueError("json: input contains reserved sentinel characters");
    }
    const working = quoteStrings(text, delimiters, quotesKeys);
    const value = catchPython(() => parsePythonJson(working), ...caught);
    if (value !== undefined) return value;
    if (allowsOther) return clean(text);
    throw new PythonValueError("json parser could not parse region as JSON");
  };
}

/** The opening and the closing delimiter of a string. */
type Delimiters = readonly [open: string, close: string];

function readDelimiters(value: PyValue, place: string): readonly Delimiters[] {
  if (!isPyList(value))
    throw templateProblem(`${place}.string_delims is not a list, expected pairs`);
  return value.map((pair) => {
    const [open, close] = isPyList(pair) ? pair : [];
    const areTexts = typeof open === "string" && typeof close === "string";
    if (!areTexts || open === "" || close === "" || (pair as PyValue[]).length !== 2) {
      throw templateProblem(
        `${place}.string_delims holds what is no pair of texts, neither of them empty`,
      );
    }
    return [open, close];
  });
}

const bareKey = new RegExp(`(?<=[{,])([${regexWordClass}]+):`, "gu");

/**
 * Replaces the text between each pair of delimiters. Text that is opened and never closed stays.
 */
function replaceBetween(
  text: string,
  [open, close]: Delimiters,
  replace: (inner: string) => string,
): string {
  let replaced = "";
  let from = 0;
  for (;;) {
    const start = text.indexOf(open, from);
    const end = start === -1 ? -1 : text.indexOf(close, start + open.length);
    if (end === -1) return replaced + text.slice(from);
    replaced += text.slice(from, start) + replace(text.slice(start + open.length, end));
    from = end + close.length;
  }
}

function quoteStrings(
  text: string,
  delimiters: readonly Delimiters[],
  quotesKeys: boolean,
): string {
  const taken: string[] = [];
  let working = text;
  for (const pair of delimiters) {
    working = replaceBetween(working, pair, (inner) => {
      taken.push(inner);
      return `\u0001${taken.length - 1}\u0002`;
    });
  }
  if (quotesKeys) working = working.replaceAll(bareKey, '"$1":');
  taken.forEach((inner, index) => {
    working = working.replaceAll(`\u0001${index}\u0002`, () => stringifyPythonJson(inner));
  });
  return working;
}

/** Makes a reader of elements with a key and a value. */
function compileTags(settings: PyDict, readValue: ContentReader, place: string): ContentReader {
  const pattern = textOf(settings, "tag_pattern", place);
  if (pattern === undefined) throw templateProblem(`${place}.tag_pattern is absent`);
  const findTags = compileTag(pattern, `${place}.tag_pattern`);
  const merges = pythonTruthy(settings.get("merge_duplicates") ?? false);
  return (text) => {
    const values = new Map<string, PyValue>();
    for (const { key, value: raw } of findTags(text)) {
      const value = readValue(raw);
      const previous = values.get(key);
      if (!merges || previous === undefined) values.set(key, value);
      else values.set(key, [...(isPyList(previous) ? previous : [previous]), value]);
    }
    return values;
  };
}

/** Makes a reader of lines with a key and a value. */
function compileLines(
  settings: PyDict,
  clean: (text: string) => string,
  readValue: ContentReader,
  place: string,
): ContentReader {
  const lineEnd = textOf(settings, "line_sep", place) ?? "\n";
  const between = textOf(settings, "kv_sep", place) ?? ":";
  if (lineEnd === "" || between === "") throw templateProblem(`${place} has an empty separator`);
  return (text) => {
    const values = new Map<string, PyValue>();
    for (const each of text.split(lineEnd)) {
      const line = clean(each);
      const end = line.indexOf(between);
      if (end === -1) continue;
      values.set(clean(line.slice(0, end)), readValue(clean(line.slice(end + between.length))));
    }
    return values;
  };
}
