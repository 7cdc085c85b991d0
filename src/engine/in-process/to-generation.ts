import { createColumnPart, type ColumnParts } from "../../columns/column-part.ts";
import { isOfAllTokens, type ColumnName } from "../../columns/column-specs.ts";
import type { Finish, GenerateRequest, Generation } from "../engine.ts";

/** The bytes of a turn's side columns, in the columns' layouts. */
export type SampledColumns = Readonly<Partial<Record<ColumnName, Uint8Array>>>;

/** The sampled tokens of a turn. `logprobs[i]` is that of `outputIds[i]`. */
export interface SampledTurn {
  readonly outputIds: readonly number[];
  readonly logprobs: readonly number[];
  readonly finish: Finish;
  readonly cachedTokenCount: number;
  /** The side columns. Absent if the request has no columns, or no id was sampled. */
  readonly columns?: SampledColumns;
}

/** Returns the generation of a turn that was sampled without interruption. */
export function toGeneration(
  request: GenerateRequest,
  { outputIds, logprobs, finish, cachedTokenCount, columns }: SampledTurn,
  policyVersion: string,
): Generation {
  const { requestId, promptIds } = request;
  const tokenCount = outputIds.length;
  return {
    outputIds,
    logprobs,
    finish,
    pieces: [{ requestId, tokenCount, policyVersion, finish: finish.type }],
    promptTokenCount: promptIds.length,
    cachedTokenCount,
    ...(columns !== undefined && {
      columns: toColumns(columns, { request, tokenCount, policyVersion }),
    }),
    discarded: [],
  };
}

/** Returns one part for each column, or none if it has no row. */
function toColumns(
  columns: SampledColumns,
  {
    request,
    tokenCount,
    policyVersion,
  }: { request: GenerateRequest; tokenCount: number; policyVersion: string },
): ColumnParts {
  const promptCount = request.promptIds.length;
  const knownRows = request.columns?.knownRows ?? 0;
  const parts = (Object.keys(columns) as ColumnName[]).map((name) => {
    const [from, rows] = isOfAllTokens(name)
      ? [knownRows, promptCount + tokenCount - 1 - knownRows]
      : [promptCount, tokenCount];
    const part = { from, rows, policyVersion, bytes: columns[name]! };
    return [name, rows === 0 ? [] : [createColumnPart(part)]] as const;
  });
  return Object.fromEntries(parts);
}
