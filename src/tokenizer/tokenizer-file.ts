import type { JsonObject } from "../values/is-object.ts";
import { isUtf8 } from "node:buffer";
import path from "node:path";
import { UsageError } from "../errors.ts";
import type { AddedToken } from "./codec.ts";
import type { Extent, Members } from "../json/json-members.ts";
import { countLists, findMembers, largestInteger, skipSpace } from "../json/json-members.ts";
import { endsInBytes } from "./byte-pair/byte-level.ts";
import { findDisguisingText } from "./disguising-text.ts";
import { type MergesPart, type MergeTable, readMergesPart } from "./byte-pair/merge-table.ts";
import { assertModelFolder, parseModelJson, readModelBytes, textOfModel } from "./model-file.ts";
import { isOrdinaryText } from "./plain-check.ts";
import type { TokenTexts } from "./byte-pair/token-texts.ts";
import { readVocabularyPart, type VocabularyPart } from "./byte-pair/vocabulary-part.ts";

/**
 * A `tokenizer.json`, checked as far as every codec needs. Its vocabulary and merges, which are
 * nearly all of the file, are read in one pass and stored as bytes and numbers.
 */
export interface TokenizerFile {
  readonly path: string;
  readonly addedTokens: readonly AddedToken[];
  /** Number of ids, including added tokens. Every id is below it. */
  readonly vocabularySize: number;
  /** The document without its vocabulary and merges. */
  readonly outline: JsonObject;
  /** The bytes of the whole `tokenizer.json`. */
  readonly bytes: Buffer;
  /** The large parts of the model. */
  readonly model: {
    /** The position of the vocabulary in the document. */
    readonly vocabulary: Extent;
    /** True if the vocabulary is an object of integers. */
    readonly hasIdsAlone: boolean;
    /** The token texts of a byte-level tokenizer. Absent if the vocabulary cannot be indexed. */
    readonly tokenTexts?: TokenTexts;
    /** The position of the merges in the document. Absent for a model without merges. */
    readonly merges?: Extent;
    /**
     * The merges as a table of ids. Absent if there are no token texts, if the merges come before
     * the vocabulary, or if a merge is not of vocabulary entries.
     */
    readonly mergeTable?: MergeTable;
  };
  /** Returns the document for encoding with added tokens, without truncation and padding. */
  fullText(): string;
  /** Returns the document for encoding without added tokens: their literals are ordinary text. */
  plainText(): string;
  /** Returns the ids by token text, including added tokens. Each call reads them again. */
  readIds(): ReadonlyMap<string, number>;
}

/** Maximum size of a tokenizer in bytes: ten times the largest published one. */
const maxTokenizerBytes = 256 * 1024 * 1024;

/**
 * Reads the `tokenizer.json` of a model folder.
 *
 * @throws UsageError if the folder or the file is missing, invalid or of another kind.
 */
export async function readTokenizerFile(modelDir: string): Promise<TokenizerFile> {
  await assertModelFolder(modelDir);
  const file = path.join(modelDir, "tokenizer.json");
  const bytes = await readModelBytes(modelDir, "tokenizer.json", maxTokenizerBytes);
  if (bytes === undefined) {
    throw new UsageError(
      `Cannot find ${file}: expected the file of a fast tokenizer, which ` +
        "`AutoTokenizer.from_pretrained(MODEL).save_pretrained(DIR)` of transformers writes",
    );
  }
  if (!isUtf8(bytes)) textOfModel(bytes, file);
  return openTokenizerFile(bytes, file);
}

/**
 * Opens a document; `file` names it in messages.
 *
 * @throws UsageError if the document is invalid.
 */
function openTokenizerFile(bytes: Buffer, file: string): TokenizerFile {
  // The model is nearly all of the document, so it is read in one pass.
  const models: (Members & { ids?: VocabularyPart; merges?: MergesPart })[] = [];
  const enterModel = (at: number, before: ReadonlyMap<string, Extent>): number | undefined => {
    // The library reads other models itself.
    const cutter = before.get("pre_tokenizer");
    const isByteLevel = cutter !== undefined && endsInBytes(parsePart(bytes, cutter, file));
    let ids: VocabularyPart | undefined;
    let merges: MergesPart | undefined;
    const model = findMembers(bytes, at, {
      vocab: (start) => {
        // If there are several vocabularies, the last one counts, and the merges belong to it.
        merges = undefined;
        ids = readVocabularyPart(bytes, start, { isIndexed: isByteLevel });
        return ids?.end;
      },
      merges: (start) => {
        const tokenTexts = ids?.tokenTexts;
        merges = tokenTexts && readMergesPart(bytes, start, tokenTexts);
        return merges?.end;
      },
    });
    if (model !== undefined)
      models.push({ ...model, ...(ids && { ids }), ...(merges && { merges }) });
    return model?.end;
  };
  const { members, end } = findMembers(bytes, 0, { model: enterModel }) ?? refuse(bytes, file);
  if (skipSpace(bytes, end) < bytes.length) refuse(bytes, file);
  const last = models.at(-1);
  const isLast = last?.end === members.get("model")?.[1];
  const { members: parts, ids, merges } = (isLast ? last : undefined) ?? {};
  const vocabulary = parts?.get("vocab");
  if (parts === undefined || vocabulary === undefined) {
    throw new UsageError(`Cannot read ${file}: it has no "model" with a "vocab", expected one`);
  }
  const isScored = bytes[vocabulary[0]] === 0x5b;
  if (!isScored && bytes[vocabulary[0]] !== 0x7b) {
    throw new UsageError(`Cannot read ${file}: "vocab" is not an object or list, expected one`);
  }
  const read = (extent: Extent): unknown => parsePart(bytes, extent, file);
  const outline = {
    ...outlineOf(members, ["model"], read),
    model: outlineOf(parts, ["vocab", "merges"], read),
  };
  const addedTokens = readAddedTokens(outline, file);
  const largestId = isScored
    ? countLists(bytes, vocabulary) - 1
    : (ids?.largestId ?? largestInteger(bytes, vocabulary));
  const text = (plain: boolean): string => {
    const replaced = new Map<Extent | undefined, string>([
      // A file can configure truncation or padding, which must not apply to prompts.
      [members.get("truncation"), "null"],
      [members.get("padding"), "null"],
    ]);
    if (plain) replaced.set(members.get("added_tokens"), "[]");
    if (plain && isScored) {
      replaced.set(vocabulary, withoutLiterals(read(vocabulary), addedTokens));
    }
    return splice(bytes, replaced);
  };
  return {
    path: file,
    addedTokens,
    vocabularySize: 1 + addedTokens.reduce((largest, { id }) => Math.max(largest, id), largestId),
    outline,
    bytes,
    model: {
      vocabulary,
      hasIdsAlone: ids !== undefined,
      ...(ids?.tokenTexts && { tokenTexts: ids.tokenTexts }),
      ...(parts.has("merges") && { merges: parts.get("merges") as Extent }),
      ...(merges && { mergeTable: merges.table }),
    },
    fullText: () => text(false),
    plainText: () => text(true),
    readIds: () => readIds(read(vocabulary), addedTokens),
  };
}

/**
 * Throws the error for a damaged file.
 *
 * @throws UsageError saying why the bytes are not a JSON object.
 */
function refuse(bytes: Buffer, file: string): never {
  parseModelJson(bytes.toString("utf8"), file);
  throw new UsageError(`Cannot read ${file}: it is not an object, expected one`);
}

function parsePart(bytes: Buffer, [start, end]: Extent, file: string): unknown {
  return parseModelJson(`{"part":${bytes.toString("utf8", start, end)}}`, file)["part"];
}

function outlineOf(
  members: ReadonlyMap<string, Extent>,
  left: readonly string[],
  read: (extent: Extent) => unknown,
): JsonObject {
  const kept = [...members].filter(([name]) => !left.includes(name));
  return Object.fromEntries(kept.map(([name, extent]) => [name, read(extent)]));
}

/** Returns the text with some of its values replaced. */
function splice(bytes: Buffer, replaced: ReadonlyMap<Extent | undefined, string>): string {
  const pieces: string[] = [];
  let from = 0;
  const known = [...replaced].flatMap(([extent, text]) => (extent ? [{ extent, text }] : []));
  for (const { extent, text } of known.sort((left, right) => left.extent[0] - right.extent[0])) {
    pieces.push(bytes.toString("utf8", from, extent[0]), text);
    from = extent[1];
  }
  return pieces.join("") + bytes.toString("utf8", from);
}

function readAddedTokens(document: JsonObject, file: string): readonly AddedToken[] {
  const entries = document["added_tokens"] ?? [];
  if (!Array.isArray(entries)) {
    throw new UsageError(`Cannot read ${file}: "added_tokens" is not a list, expected one`);
  }
  const { unk_token: unknown, unk_id: unknownId } = document["model"] as JsonObject;
  // A byte-level model has a token for every text.
  const knowsAll = endsInBytes(document["pre_tokenizer"]);
  return entries.map((entry: unknown, index) => {
    const { id, content, special, normalized } = (entry ?? {}) as JsonObject;
    if (typeof id !== "number" || typeof content !== "string") {
      throw new UsageError(
        `Cannot read ${file}: added_tokens[${index}] lacks them, expected an id and a content`,
      );
    }
    const isUnknown = !knowsAll && (unknown === content || unknownId === id);
    const disguise =
      normalized === true ? findDisguisingText(content, document["normalizer"]) : undefined;
    return {
      id,
      content,
      special: special === true,
      ...(isUnknown && { unknown: true }),
      ...(disguise && { disguise }),
    };
  });
}

/** Reads the ids of a vocabulary: an object of ids, or a list of token texts with their scores. */
function readIds(vocabulary: unknown, addedTokens: readonly AddedToken[]): Map<string, number> {
  const ids = Array.isArray(vocabulary)
    ? new Map(vocabulary.map((piece: unknown, id) => [String((piece as unknown[])[0]), id]))
    : new Map(Object.entries(vocabulary as Readonly<Record<string, number>>));
  for (const { content, id } of addedTokens) ids.set(content, id);
  return ids;
}

/**
 * Removes the texts of control tokens from a vocabulary with scores.
 *
 * A model that selects pieces by score has control tokens as ordinary pieces, and would find them
 * in any text. With an empty text they are never found, but their scores still count for text
 * outside the vocabulary. Other models build a literal from smaller parts, so they need no change.
 */
function withoutLiterals(vocabulary: unknown, addedTokens: readonly AddedToken[]): string {
  const control = new Set(
    addedTokens.filter((token) => !isOrdinaryText(token)).map(({ id }) => id),
  );
  return JSON.stringify(
    (vocabulary as unknown[][]).map((piece, id) => (control.has(id) ? ["", piece[1]] : piece)),
  );
}
