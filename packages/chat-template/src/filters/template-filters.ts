import { isEscaping } from "../evaluate/autoescape.ts";
import { numberOf } from "../values/template-compare.ts";
import { itemTuples } from "../values/template-container-methods.ts";
import { TemplateError, typeError } from "../template-error.ts";
import type { Filter } from "../evaluate/template-filter.ts";
import { callMethod } from "../values/template-attribute.ts";
import { defineFilter, defineMethodFilter, softText } from "../evaluate/template-filter.ts";
import { Generator, isTruthy, len, toList } from "../values/template-iterate.ts";
import { toJsonText } from "./template-json.ts";
import { escapeAlways, escapeHtml } from "../values/template-markup.ts";
import { convertToFloat, convertToInteger, roundNumber } from "./template-number-filters.ts";
import { formatPercent } from "../values/template-percent-format.ts";
import { createSelectionFilters } from "./template-selection-filters.ts";
import { groupFilters } from "./template-group-filters.ts";
import { sequenceFilters } from "./template-sequence-filters.ts";
import { replaceText } from "../values/template-string-split.ts";
import { strOf } from "../values/template-text.ts";
import { indent, titleWords, truncate, wordCount } from "./template-text-filters.ts";
import { urlize } from "./template-urlize.ts";
import { fileSize, stripTags, urlEncode } from "./template-web-filters.ts";
import type { CallArguments, TemplateValue } from "../values/template-value.ts";
import { isDict, Markup, Tuple, typeName, Undefined } from "../values/template-value.ts";

/**
 * Returns the filter of that name, or `undefined`.
 *
 * **Source:** the Jinja documentation, "List of Builtin Filters", without those that print by width or draw at
 * random; `tojson` is the transformers library's.
 */
export function findFilter(name: string): Filter | undefined {
  return filters.get(name);
}

function fallback(
  value: TemplateValue,
  otherwise: TemplateValue = "",
  boolean: TemplateValue = false,
): TemplateValue {
  return value instanceof Undefined || (isTruthy(boolean) && !isTruthy(value)) ? otherwise : value;
}

function replace(
  value: TemplateValue,
  old: TemplateValue = null,
  by: TemplateValue = null,
  count: TemplateValue = null,
): string | Markup {
  const limit = count === null ? -1 : Number(numberOf(count) ?? -1);
  const isSafe = [value, old, by].some((part) => part instanceof Markup);
  if (!isEscaping() || !isSafe) return replaceText(strOf(value), strOf(old), strOf(by), limit);
  // As in Jinja, neither the search text nor the replacement is escaped, except by a safe text's method.
  const text = escapeHtml(value).text;
  return new Markup(replaceText(text, strOf(old), escapeHtml(by).text, limit));
}

function format(value: TemplateValue, { positional, named }: CallArguments): TemplateValue {
  if (positional.length > 0 && named.size > 0) {
    throw new TemplateError(
      "FilterArgumentError",
      "can't handle positional and keyword arguments at the same time",
    );
  }
  return formatPercent(softText(value), named.size > 0 ? named : new Tuple(positional));
}

function absolute(value: TemplateValue): TemplateValue {
  const number = numberOf(value);
  if (number === undefined) throw typeError(`bad operand type for abs(): '${typeName(value)}'`);
  if (typeof number === "bigint") return number < 0n ? -number : number;
  return Math.abs(number);
}

/** A generator, so that the error for a value that is not a dictionary comes when the items are read. */
function* items(value: TemplateValue): Iterable<TemplateValue> {
  if (value instanceof Undefined) return;
  if (!isDict(value)) throw typeError("Can only get item pairs from a mapping.");
  yield* itemTuples(value);
}

const filters: ReadonlyMap<string, Filter> = new Map([
  defineFilter("abs", absolute),
  defineMethodFilter("capitalize", "capitalize"),
  defineFilter("center width?", (value, width = 80n) =>
    callMethod(softText(value), "center", { positional: [width], named: new Map() }),
  ),
  defineFilter("count", len),
  defineFilter("d default_value? boolean?", fallback),
  defineFilter("default default_value? boolean?", fallback),
  defineFilter("e", escapeHtml),
  defineFilter("escape", escapeHtml),
  defineFilter("float default?", (value, otherwise = 0) => convertToFloat(value, otherwise)),
  defineFilter("forceescape", (value) => escapeAlways(strOf(value))),
  defineFilter("filesizeformat binary?", fileSize),
  ["format", format] as const,
  defineFilter("indent width? first? blank?", indent),
  defineFilter("int default? base?", (value, otherwise = 0n, base = 10n) =>
    convertToInteger(value, otherwise, base),
  ),
  defineFilter("items", (value) => new Generator(items(value))),
  defineFilter("length", len),
  defineFilter("list", (value) => [...toList(value)]),
  defineMethodFilter("lower", "lower"),
  defineFilter("replace old new count?", replace),
  defineFilter("round precision? method?", (value, precision = 0n, method = "common") =>
    roundNumber(value, precision, method),
  ),
  defineFilter("safe", (value) => new Markup(strOf(value))),
  defineFilter("string", softText),
  defineFilter("striptags", stripTags),
  defineFilter("title", (value) => titleWords(softText(value))),
  defineFilter("tojson ensure_ascii? indent? separators? sort_keys?", (value, ...args) =>
    toJsonText(value, args),
  ),
  defineMethodFilter("trim chars?", "strip"),
  defineFilter("truncate length? killwords? end? leeway?", truncate),
  defineMethodFilter("upper", "upper"),
  defineFilter("urlencode", urlEncode),
  defineFilter("urlize trim_url_limit? nofollow? target? rel? extra_schemes?", urlize),
  defineFilter("wordcount", (value) => BigInt(wordCount(strOf(value)))),
  ...groupFilters,
  ...sequenceFilters,
  ...createSelectionFilters(findFilter),
]);
