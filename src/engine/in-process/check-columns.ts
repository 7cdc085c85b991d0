import { namesOf, type ColumnName, type ExpertShape } from "../../columns/column-specs.ts";
import type { GenerateRequest } from "../engine.ts";
import { badRequest } from "./bad-request.ts";
import { isGreedy } from "./is-greedy.ts";

/** The side columns that an engine returns. */
export interface ColumnLimits {
  readonly names: readonly ColumnName[];
  /** The shape of the model's routes, if the engine returns them. */
  readonly routedExperts?: ExpertShape;
}

/**
 * Checks the side columns of a request.
 *
 * @param limits - Absent if the engine returns no columns.
 * @throws RolloutError `engine/bad-request` if the engine cannot return them.
 */
export function checkColumns(
  { columns, promptIds, sampling }: GenerateRequest,
  limits: ColumnLimits = { names: [] },
): void {
  if (columns === undefined) return;
  const { specs, knownRows } = columns;
  const missing = namesOf(specs).find((name) => !limits.names.includes(name));
  if (missing !== undefined) {
    const known = limits.names.length === 0 ? "none" : `at most ${limits.names.join(", ")}`;
    throw badRequest(`columns has ${missing}`, `${known}: this engine or its model has no other`);
  }
  if (!Number.isSafeInteger(knownRows) || knownRows < 0 || knownRows > promptIds.length) {
    throw badRequest(
      `columns.knownRows is ${knownRows}`,
      `a whole number from 0 to the ${promptIds.length} prompt ids`,
    );
  }
  const { routedExperts, keptTokens } = specs;
  if (routedExperts !== undefined) checkRoutes(routedExperts, limits.routedExperts);
  if (keptTokens !== undefined) checkKept(sampling, keptTokens.maxCount);
}

function checkRoutes(asked: ExpertShape, own: ExpertShape | undefined): void {
  if (own !== undefined && showShape(asked) === showShape(own)) return;
  throw badRequest(
    `columns.routedExperts has ${showShape(asked)}`,
    own === undefined ? "no routes" : `${showShape(own)}, as the model has`,
  );
}

function showShape({ layerCount, perToken, expertCount }: ExpertShape): string {
  return `${layerCount} layers with ${perToken} of ${expertCount} experts a token`;
}

/** Refuses the column `keptTokens` if more than `maxCount` tokens may be kept. Greedy sampling keeps one token. */
function checkKept(
  { temperature = 1, topK = -1 }: GenerateRequest["sampling"],
  maxCount: number,
): void {
  if (isGreedy(temperature) || (topK >= 1 && topK <= maxCount)) return;
  throw badRequest(
    `topK is ${topK} with the column keptTokens of at most ${maxCount} ids`,
    `1 to ${maxCount}`,
  );
}
