import path from "node:path";
import { UsageError } from "../errors.ts";
import type { AddedToken } from "./codec.ts";
import type { JsonObject } from "./model-file.ts";
import { assertModelFolder, parseModelJson, readModelText } from "./model-file.ts";

/** A `tokenizer.json`, read and checked as far as every codec needs it. */
export interface TokenizerFile {
  /** The document for encoding with added tokens: it neither cuts nor pads. */
  readonly full: JsonObject;
  /** The document for encoding without: literals of added tokens are ordinary text to it. */
  readonly plain: JsonObject;
  readonly addedTokens: readonly AddedToken[];
  /** Ids by the vocabulary's spelling, added tokens included. */
  readonly ids: ReadonlyMap<string, number>;
}

/**
 * Reads the `tokenizer.json` of a model folder.
 *
 * @throws UsageError where the folder or the file is missing or broken.
 */
export async function readTokenizerFile(modelDir: string): Promise<TokenizerFile> {
  await assertModelFolder(modelDir);
  const file = path.join(modelDir, "tokenizer.json");
  const text = await readModelText(modelDir, "tokenizer.json");
  if (text === undefined) {
    throw new UsageError(
      `Cannot find ${file}: expected the file of a fast tokenizer, which ` +
        "`AutoTokenizer.from_pretrained(MODEL).save_pretrained(DIR)` of transformers writes",
    );
  }
  return parseTokenizerFile(text, file);
}

/**
 * Parses the text of a `tokenizer.json`; `file` names it in messages.
 *
 * @throws UsageError where it is broken.
 */
export function parseTokenizerFile(text: string, file: string): TokenizerFile {
  const document = parseModelJson(text, file);
  const model = readModel(document, file);
  const addedTokens = readAddedTokens(document, file);
  // A file may ask for texts to be cut at a length or filled up to it, which no prompt may be.
  const full: JsonObject = { ...document, truncation: null, padding: null };
  const ids = readVocabulary(model, file);
  for (const { content, id } of addedTokens) ids.set(content, id);
  return {
    full,
    plain: { ...full, added_tokens: [], model: withoutLiterals(model, addedTokens) },
    addedTokens,
    ids,
  };
}

function readModel(document: JsonObject, file: string): JsonObject {
  const { model } = document;
  if (typeof model !== "object" || model === null || !("vocab" in model)) {
    throw new UsageError(`Cannot read ${file}: it has no "model" with a "vocab", expected one`);
  }
  return model;
}

function readAddedTokens(document: JsonObject, file: string): readonly AddedToken[] {
  const entries = document["added_tokens"] ?? [];
  if (!Array.isArray(entries)) {
    throw new UsageError(`Cannot read ${file}: "added_tokens" is no list, expected one`);
  }
  return entries.map((entry: unknown, index) => {
    const { id, content, special } = (entry ?? {}) as JsonObject;
    if (typeof id !== "number" || typeof content !== "string") {
      throw new UsageError(
        `Cannot read ${file}: added_tokens[${index}] lacks them, expected an id and a content`,
      );
    }
    return { id, content, special: special === true };
  });
}

/** A vocabulary is an object of ids, or a list of spellings with their scores. */
function readVocabulary({ vocab }: JsonObject, file: string): Map<string, number> {
  if (Array.isArray(vocab)) {
    return new Map(vocab.map((piece: unknown, id) => [String((piece as unknown[])[0]), id]));
  }
  if (typeof vocab !== "object" || vocab === null) {
    throw new UsageError(`Cannot read ${file}: "vocab" is no object or list, expected one`);
  }
  return new Map(Object.entries(vocab as Readonly<Record<string, number>>));
}

/**
 * Models that choose pieces by score hold control tokens as pieces of their own, and would find them
 * in any text; a hopeless score keeps them out. Others spell a literal from parts.
 */
function withoutLiterals(model: JsonObject, addedTokens: readonly AddedToken[]): JsonObject {
  const { vocab } = model;
  if (!Array.isArray(vocab)) return model;
  const added = new Set(addedTokens.map(({ id }) => id));
  return {
    ...model,
    vocab: vocab.map((piece: unknown, id) =>
      added.has(id) ? [(piece as unknown[])[0], hopelessScore] : piece,
    ),
  };
}

const hopelessScore = -1e9;
