import { findColumnProblem, isChecked } from "../columns/check-columns.ts";
import { findRecordedColumnProblem } from "../columns/check-recorded.ts";
import type { ColumnPart, ColumnParts } from "../columns/column-part.ts";
import type { ColumnName } from "../columns/column-specs.ts";
import { isCount } from "../values/is-count.ts";
import { isObject } from "../values/is-object.ts";
import { RolloutError, type DiscardedSampling } from "../errors.ts";
import { copyMembers } from "../values/copy-members.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { whyNotJson } from "../json/why-not-json.ts";
import type { GenerateRequest, Generation } from "./engine.ts";
import { isSampledLogprob, logprobRange } from "../values/logprob-range.ts";
import { ReplyProblem, show } from "./http/reply-reading.ts";
import { findForeignId, idExpectation } from "./token-id.ts";

/** The limits for sampled tokens. */
interface SampledLimits {
  /** Number of ids in the vocabulary. If absent, any valid id is accepted. */
  readonly vocabularySize?: number | undefined;
  readonly maxNewTokens: number;
}

/**
 * Finds the first problem of sampled ids and their logprobs: too many ids, a list of logprobs of
 * another length, an id outside the vocabulary, or a value that cannot be a sampled token's
 * logprob.
 */
export function findSampledProblem(
  { ids, logprobs }: { readonly ids: readonly unknown[]; readonly logprobs: readonly unknown[] },
  { vocabularySize, maxNewTokens }: SampledLimits,
): ReplyProblem | undefined {
  if (ids.length > maxNewTokens) {
    return new ReplyProblem(`${ids.length} ids were sampled`, `at most ${maxNewTokens}`);
  }
  if (logprobs.length !== ids.length) {
    return new ReplyProblem(
      `${ids.length} ids were sampled with ${logprobs.length} logprobs`,
      "one logprob for each id",
    );
  }
  return findIdProblem(ids, { vocabularySize }) ?? findLogprobProblem(logprobs, ids);
}

/** Finds the first sampled id that no tokenizer has or that is outside the vocabulary. */
export function findIdProblem(
  ids: readonly unknown[],
  { vocabularySize }: Pick<SampledLimits, "vocabularySize">,
): ReplyProblem | undefined {
  const foreign = findForeignId(ids, vocabularySize);
  if (foreign < 0) return undefined;
  return new ReplyProblem(
    `sampled id ${foreign} is ${show(ids[foreign])}`,
    idExpectation(vocabularySize),
  );
}

/**
 * Finds the first value that cannot be a sampled token's logprob. `logprobs[i]` is that of
 * `ids[i]`.
 */
export function findLogprobProblem(
  logprobs: readonly unknown[],
  ids: readonly unknown[],
): ReplyProblem | undefined {
  let index = 0;
  while (index < logprobs.length && isSampledLogprob(logprobs[index])) index++;
  if (index === logprobs.length) return undefined;
  const logprob = logprobs[index];
  return new ReplyProblem(
    `the logprob of sampled id ${show(ids[index])} is ${showNumber(logprob)}`,
    `a logarithm, ${logprobRange.min} to ${logprobRange.max}`,
    // Engines write NaN and infinities as null.
    logprob === null || (typeof logprob === "number" && !Number.isFinite(logprob))
      ? "engine/nan"
      : "engine/bad-reply",
  );
}

/** Formats a value for a message. JSON would write NaN and infinities as `null`. */
function showNumber(value: unknown): string {
  return typeof value === "number" ? String(value) : show(value);
}

/**
 * Checks the generation that an engine returned for a turn: ids of the vocabulary, a credible
 * logprob for each id, pieces that add up to all ids, a valid finish, and the requested columns.
 *
 * @returns a copy of the generation's own fields, including those that are getters of a class. The
 *   engine may reuse its lists. The bytes of columns that were checked as they arrived are not copied.
 * @throws RolloutError `engine/bad-reply`, or `engine/nan` if a logprob is not a number. The
 *   sampled tokens are listed as discarded.
 */
export function checkGeneration(generation: Generation, request: GenerateRequest): Generation {
  const problem = findGenerationProblem(generation, request);
  if (problem === undefined) return copyOf(generation);
  const { requestId } = request;
  const { outputIds, discarded } = (isObject(generation) ? generation : {}) as Partial<Generation>;
  const sampled = Array.isArray(outputIds) ? { tokenCount: outputIds.length } : {};
  const isUsable = Array.isArray(discarded) && findDiscardedProblem(discarded) === undefined;
  const before = isUsable ? discarded.map(copyOfDiscarded) : [];
  throw new RolloutError(
    problem.code,
    `Cannot use the engine's reply to request ${requestId}: ` +
      `${problem.message}, expected ${problem.expected}`,
    {
      retryable: true,
      discarded: [...before, { requestId, reason: problem.message, ...sampled }],
    },
  );
}

function copyOf(generation: Generation): Generation {
  const { outputIds, logprobs, finish, pieces, discarded } = generation;
  const { promptTokenCount, cachedTokenCount, queueMs, columns } = generation;
  const hasCounts =
    promptTokenCount !== undefined || cachedTokenCount !== undefined || queueMs !== undefined;
  return {
    outputIds: [...outputIds],
    logprobs: [...logprobs],
    // A turn that was cut short has no `matched`.
    finish: copyMembers(finish, finish.type === "stop" ? ["type", "matched"] : ["type"]),
    pieces: pieces.map((piece) => copyMembers(piece, pieceMembers)),
    ...(columns && { columns: copyOfColumns(columns) }),
    ...(hasCounts ? withoutUndefined({ promptTokenCount, cachedTokenCount, queueMs }) : undefined),
    discarded: discarded.map(copyOfDiscarded),
  };
}

function copyOfColumns(columns: ColumnParts): ColumnParts {
  const copied: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of Object.keys(columns) as ColumnName[]) {
    copied[name] = (columns[name] ?? []).map(({ bytes, ...part }) => ({
      ...copyMembers(part, ["from", "rows", "policyVersion", "size", "hash"]),
      ...(bytes && { bytes: isChecked(bytes) ? bytes : bytes.slice() }),
    }));
  }
  return copied;
}

const pieceMembers = ["requestId", "tokenCount", "policyVersion", "finish"];

function copyOfDiscarded(entry: DiscardedSampling): DiscardedSampling {
  return copyMembers(entry, ["requestId", "reason", "tokenCount"]);
}

/**
 * Finds the first problem of a generation. Assumes nothing about the generation's shape, because users write engines
 * too.
 */
function findGenerationProblem(
  generation: unknown,
  request: GenerateRequest,
): ReplyProblem | undefined {
  if (!isObject(generation)) {
    return new ReplyProblem(`the engine returned ${show(generation)}`, "a generation");
  }
  const { outputIds, logprobs, finish, pieces, discarded } = generation;
  if (!Array.isArray(outputIds)) return noList("outputIds", outputIds);
  if (!Array.isArray(logprobs)) return noList("logprobs", logprobs);
  if (!Array.isArray(pieces)) return noList("pieces", pieces);
  if (!Array.isArray(discarded)) return noList("discarded", discarded);
  const ids: readonly unknown[] = outputIds;
  return (
    findSampledProblem({ ids, logprobs }, request) ??
    findFinishProblem(finish, ids) ??
    findPieceProblem(pieces, ids.length) ??
    findDiscardedProblem(discarded) ??
    findCountProblem(generation, request) ??
    findWritingProblem(generation) ??
    findColumnsProblem(generation["columns"], ids as readonly number[], request)
  );
}

function noList(name: string, value: unknown): ReplyProblem {
  return new ReplyProblem(`${name} is ${show(value)}`, "a list");
}

function findFinishProblem(finish: unknown, ids: readonly unknown[]): ReplyProblem | undefined {
  const { type, matched } = isObject(finish) ? finish : {};
  // A turn can be cut short before its first id.
  if (type === "length") return undefined;
  if (type !== "stop") return new ReplyProblem(`finish is ${show(finish)}`, "`stop` or `length`");
  if (ids.length === 0) return new ReplyProblem("no ids were sampled", "at least one");
  if (matched === undefined || typeof matched === "string" || matched === ids.at(-1)) {
    return undefined;
  }
  return new ReplyProblem(
    `sampling stopped on ${show(matched)} but the last id is ${show(ids.at(-1))}`,
    "the stop id to be the last one",
  );
}

/** Returns the first problem of a generation's pieces, which must cover all sampled ids. */
function findPieceProblem(
  pieces: readonly unknown[],
  sampledCount: number,
): ReplyProblem | undefined {
  let tokenCount = 0;
  for (let index = 0; index < pieces.length; index++) {
    const piece = pieces[index];
    const { requestId, policyVersion, finish, tokenCount: count } = isObject(piece) ? piece : {};
    const isPiece =
      typeof requestId === "string" &&
      typeof policyVersion === "string" &&
      (finish === "stop" || finish === "length" || finish === "abort") &&
      isCount(count);
    if (!isPiece) return new ReplyProblem(`pieces[${index}] is ${show(piece)}`, "a piece");
    tokenCount += count;
  }
  if (tokenCount === sampledCount) return undefined;
  return new ReplyProblem(`the pieces are of ${tokenCount} ids`, `all ${sampledCount}`);
}

/**
 * Returns the first problem of a generation that was read from a file: its ids, logprobs, pieces and columns.
 */
export function findRecordedProblem({
  outputIds: ids,
  logprobs,
  pieces,
  columns,
}: Pick<Generation, "outputIds" | "logprobs" | "pieces" | "columns">): ReplyProblem | undefined {
  const ofColumns = findRecordedColumnProblem(columns, ids.length);
  return (
    findSampledProblem({ ids, logprobs }, { maxNewTokens: Infinity }) ??
    findPieceProblem(pieces, ids.length) ??
    (ofColumns && new ReplyProblem(ofColumns.problem, ofColumns.expected))
  );
}

function findDiscardedProblem(discarded: readonly unknown[]): ReplyProblem | undefined {
  const wrong = discarded.findIndex((entry) => {
    const { requestId, reason, tokenCount } = isObject(entry) ? entry : {};
    const isNamed = typeof requestId === "string" && typeof reason === "string";
    return !isNamed || (tokenCount !== undefined && !isCount(tokenCount));
  });
  if (wrong < 0) return undefined;
  return new ReplyProblem(
    `discarded[${wrong}] is ${show(discarded[wrong])}`,
    "discarded tokens, with their request's id and the reason",
  );
}

function findCountProblem(
  { promptTokenCount, cachedTokenCount }: Readonly<Record<string, unknown>>,
  { promptIds }: GenerateRequest,
): ReplyProblem | undefined {
  if (promptTokenCount !== undefined && promptTokenCount !== promptIds.length) {
    return new ReplyProblem(
      `promptTokenCount is ${show(promptTokenCount)}`,
      `the ${promptIds.length} that were sent`,
    );
  }
  if (cachedTokenCount === undefined || isCount(cachedTokenCount)) return undefined;
  return new ReplyProblem(`cachedTokenCount is ${show(cachedTokenCount)}`, "a count");
}

function findColumnsProblem(
  columns: unknown,
  sampledIds: readonly number[],
  { columns: wanted, promptIds, vocabularySize }: GenerateRequest,
): ReplyProblem | undefined {
  const found = findColumnProblem(
    columns,
    wanted && { ...wanted, promptLength: promptIds.length, sampledIds, vocabularySize },
  );
  return found && new ReplyProblem(found.problem, found.expected);
}

const writtenObjects = ["finish", "pieces", "discarded"];

/** Finds a field other than ids and logprobs that cannot be written as JSON. */
function findWritingProblem(generation: Readonly<Record<string, unknown>>) {
  const { queueMs } = generation;
  if (queueMs !== undefined && !Number.isFinite(queueMs)) {
    return new ReplyProblem(`queueMs is ${showNumber(queueMs)}`, "a number of milliseconds");
  }
  const names = Object.keys(generation);
  // Getters of a class are not listed among its own keys, but they are written too.
  if (Object.getPrototypeOf(generation) !== Object.prototype) names.push(...writtenObjects);
  for (const name of names) {
    if (name === "outputIds" || name === "logprobs" || name === "columns") continue;
    const why = whyNotJson(generation[name]);
    if (why === undefined) continue;
    return new ReplyProblem(`${name} cannot be written as JSON (${why})`, "plain values");
  }
  return undefined;
}
