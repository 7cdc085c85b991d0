import { isKnownPattern } from "./byte-pair/known-patterns.ts";
import type { JsonObject } from "./model-file.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/** Whether an argument of a component is one that is known to be harmless; absent ones are `undefined`. */
type IsHarmless = (value: unknown) => boolean;

/**
 * What a component may be told, by the name of each argument. Of what it may be told beside them, the library reads
 * nothing: published files have flags of other components there, and flags alone may be.
 */
type Arguments = Readonly<Record<string, IsHarmless>>;

/**
 * Whether the file holds nothing but components of published tokenizers, with arguments with which the native
 * library stays within its limits whatever the text is. It ends its process where an argument is one that nobody
 * has thought of (an empty text to be replaced, for one), and takes compiled tables on trust: what is not listed
 * here is to run where that does no harm.
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

/** Whether the component is one of these, with known arguments, or a sequence of such. */
function isKnownComponent(known: Readonly<Record<string, Arguments>>): IsHarmless {
  const isKnown: IsHarmless = (component) => {
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
    Object.entries(takes).every(([name, isHarmless]) => isHarmless(given[name]))
  );
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isAbsentOr(isHarmless: IsHarmless): IsHarmless {
  return (value) => value === undefined || value === null || isHarmless(value);
}

const isFlag = isAbsentOr((value) => typeof value === "boolean");
const isText = isAbsentOr((value) => typeof value === "string");
const isNumber = isAbsentOr((value) => Number.isInteger(value));
const isNothing = isAbsentOr((value) => value === "");
const isAbsent = isAbsentOr(() => false);
const isCharacter: IsHarmless = (value) => typeof value === "string" && [...value].length === 1;
/** What stands before each piece of a text may not be a text itself. */
const isShort: IsHarmless = (value) =>
  typeof value === "string" && value !== "" && value.length <= 16;

/** A text that is not empty, or a known pattern. */
const isFound: IsHarmless = (pattern) => {
  if (!isObject(pattern) || Object.keys(pattern).length !== 1) return false;
  const { String: text, Regex: regex } = pattern;
  return typeof regex === "string"
    ? isKnownPattern(regex)
    : typeof text === "string" && text !== "";
};

const isBehavior: IsHarmless = (value) =>
  typeof value === "string" &&
  ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"].includes(value);

/** Of one character, so that no text grows by it. */
const replacing: Arguments = { pattern: isFound, content: isCharacter };

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

/** None of them makes nothing of an added token. */
const normalizers: Readonly<Record<string, Arguments>> = {
  NFC: {},
  NFD: {},
  NFKC: {},
  NFKD: {},
  Lowercase: {},
  Prepend: { prepend: isShort },
  Replace: replacing,
};

/** They make nothing of some texts, and the library aborts where it does so of an added token. */
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
  const areTakenAsTheyAre =
    isAbsentOr(Array.isArray)(added) &&
    ((added ?? []) as readonly JsonObject[]).every((token) => token["normalized"] === false);
  return areTakenAsTheyAre ? { ...normalizers, ...emptyingNormalizers } : normalizers;
}

const preTokenizers: Readonly<Record<string, Arguments>> = {
  ByteLevel: byteLevel,
  Metaspace: metaspace,
  Split: { pattern: isFound, behavior: isBehavior, invert: isFlag },
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
  // From the end the library strips more than there is.
  Strip: { content: isCharacter, start: isNumber, stop: (value) => value === 0 },
};

/** A text occurs once in what is made of it: more than that may be any number of times. */
const hasTextOnce: IsHarmless = (items) =>
  Array.isArray(items) &&
  items.every(isObject) &&
  items.filter((item) => "Sequence" in item).length === 1;

const postProcessors: Readonly<Record<string, Arguments>> = {
  ByteLevel: byteLevel,
  TemplateProcessing: { single: hasTextOnce, pair: () => true, special_tokens: () => true },
  BertProcessing: { sep: () => true, cls: () => true },
  RobertaProcessing: {
    sep: () => true,
    cls: () => true,
    trim_offsets: isFlag,
    add_prefix_space: isFlag,
  },
};

/** Older files do not say of which type they are. */
const model: Arguments = {
  type: isAbsentOr((type) => ["BPE", "Unigram", "WordLevel"].includes(type as string)),
  dropout: isAbsent,
  continuing_subword_prefix: isNothing,
  end_of_word_suffix: isNothing,
  unk_token: isText,
  unk_id: isNumber,
  fuse_unk: isFlag,
  byte_fallback: isFlag,
  ignore_merges: isFlag,
};
