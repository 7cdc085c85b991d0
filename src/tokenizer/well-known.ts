import { isObject, type JsonObject } from "../values/is-object.ts";
import { isKnownPattern } from "./byte-pair/known-patterns.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/**
 * Returns true if an argument of a component is known to be safe. An absent argument is
 * `undefined`.
 */
type IsSafe = (value: unknown) => boolean;

/**
 * The arguments of a component, with a check for each. The library ignores other arguments;
 * published files have flags of other components there, so other flags are allowed.
 */
type Arguments = Readonly<Record<string, IsSafe>>;

/**
 * True if the file has only components of published tokenizers, with arguments that keep the native
 * library within its limits for every text.
 *
 * The library ends its process for some unexpected arguments, for example an empty text to replace,
 * and does not check compiled tables. A file with anything that is not listed here runs in an
 * isolated process.
 */
export function isWellKnown({ outline }: TokenizerFile): boolean {
  return (
    isAbsentOr(isKnownComponent(normalizersOf(outline)))(outline["normalizer"]) &&
    isAbsentOr(isKnownComponent(preTokenizers))(outline["pre_tokenizer"]) &&
    isAbsentOr(isKnownComponent(postProcessors))(outline["post_processor"]) &&
    isAbsentOr(isKnownComponent(decoders))(outline["decoder"]) &&
    areKnown(model, outline["model"])
  );
}

/** Returns a check for one of these components with safe arguments, or a sequence of them. */
function isKnownComponent(known: Readonly<Record<string, Arguments>>): IsSafe {
  const isKnown: IsSafe = (component) => {
    if (!isObject(component)) return false;
    const { type, ...given } = component;
    const takes = typeof type === "string" && Object.hasOwn(known, type) ? known[type] : undefined;
    if (takes !== undefined) return areKnown(takes, given);
    const [members, ...others] = Object.values(given).filter((value) => !isFlag(value));
    return (
      type === "Sequence" && others.length === 0 && Array.isArray(members) && members.every(isKnown)
    );
  };
  return isKnown;
}

function areKnown(takes: Arguments, given: unknown): boolean {
  if (!isObject(given)) return false;
  return (
    Object.entries(given).every(([name, value]) => Object.hasOwn(takes, name) || isFlag(value)) &&
    Object.entries(takes).every(([name, isSafe]) => isSafe(given[name]))
  );
}

function isAbsentOr(isSafe: IsSafe): IsSafe {
  return (value) => value === undefined || value === null || isSafe(value);
}

const isFlag = isAbsentOr((value) => typeof value === "boolean");
const isText = isAbsentOr((value) => typeof value === "string");
const isNumber = isAbsentOr((value) => Number.isInteger(value));
const isEmpty = isAbsentOr((value) => value === "");
const isAbsent = isAbsentOr(() => false);
const isCharacter: IsSafe = (value) => typeof value === "string" && [...value].length === 1;
/** A text that is put before each piece must be short, because it is repeated. */
const isShort: IsSafe = (value) => typeof value === "string" && value !== "" && value.length <= 16;

/** True for a text that is not empty, or a known pattern. */
const isSafePattern: IsSafe = (pattern) => {
  if (!isObject(pattern) || Object.keys(pattern).length !== 1) return false;
  const { String: text, Regex: regex } = pattern;
  return typeof regex === "string"
    ? isKnownPattern(regex)
    : typeof text === "string" && text !== "";
};

const isBehavior: IsSafe = (value) =>
  typeof value === "string" &&
  ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"].includes(value);

/** Replacements by one character, so that no text grows. */
const replacing: Arguments = { pattern: isSafePattern, content: isCharacter };

const byteLevel: Arguments = {
  add_prefix_space: isFlag,
  trim_offsets: isFlag,
  use_regex: isFlag,
};

const metaspace: Arguments = {
  replacement: isCharacter,
  str_rep: isAbsentOr(isCharacter),
  prepend_scheme: isText,
  add_prefix_space: isFlag,
  split: isFlag,
};

/** Normalisers that never turn an added token into an empty text. */
const normalizers: Readonly<Record<string, Arguments>> = {
  NFC: {},
  NFD: {},
  NFKC: {},
  NFKD: {},
  Lowercase: {},
  Prepend: { prepend: isShort },
  Replace: replacing,
};

/**
 * Normalisers that turn some texts into an empty text. The library aborts if that happens to an
 * added token.
 */
const emptyingNormalizers: Readonly<Record<string, Arguments>> = {
  BertNormalizer: {
    clean_text: isFlag,
    handle_chinese_chars: isFlag,
    strip_accents: isFlag,
    lowercase: isFlag,
  },
  Nmt: {},
  Strip: { strip_left: isFlag, strip_right: isFlag },
  StripAccents: {},
};

function normalizersOf(outline: JsonObject): Readonly<Record<string, Arguments>> {
  const { added_tokens: added } = outline;
  const areNotNormalized =
    isAbsentOr(Array.isArray)(added) &&
    ((added ?? []) as readonly JsonObject[]).every((token) => token["normalized"] === false);
  return areNotNormalized ? { ...normalizers, ...emptyingNormalizers } : normalizers;
}

const preTokenizers: Readonly<Record<string, Arguments>> = {
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  Split: { pattern: isSafePattern, behavior: isBehavior, invert: isFlag },
  Digits: { individual_digits: isFlag },
  Punctuation: { behavior: isAbsentOr(isBehavior) },
  Whitespace: {},
  WhitespaceSplit: {},
};

const decoders: Readonly<Record<string, Arguments>> = {
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  ByteFallback: {},
  Fuse: {},
  Replace: replacing,
  // At the end of a text, the library strips more characters than there are.
  Strip: { content: isCharacter, start: isNumber, stop: (value) => value === 0 },
};

/**
 * True if the template contains the text exactly once. A template with more could repeat it any
 * number of times.
 */
const containsTextOnce: IsSafe = (items) =>
  Array.isArray(items) &&
  items.every(isObject) &&
  items.filter((item) => "Sequence" in item).length === 1;

const postProcessors: Readonly<Record<string, Arguments>> = {
  ByteLevel: byteLevel,
  TemplateProcessing: { single: containsTextOnce, pair: () => true, special_tokens: () => true },
  BertProcessing: { sep: () => true, cls: () => true },
  RobertaProcessing: {
    sep: () => true,
    cls: () => true,
    trim_offsets: isFlag,
    add_prefix_space: isFlag,
  },
};

/** Older files do not name the model's type. */
const model: Arguments = {
  type: isAbsentOr((type) => ["BPE", "Unigram", "WordLevel"].includes(type as string)),
  dropout: isAbsent,
  continuing_subword_prefix: isEmpty,
  end_of_word_suffix: isEmpty,
  unk_token: isText,
  unk_id: isNumber,
  fuse_unk: isFlag,
  byte_fallback: isFlag,
  ignore_merges: isFlag,
};
