import type { JsonPart } from "../../json/json-pieces.ts";
import type { SampledStretch, SegmentColumns } from "../../trajectory/segment.ts";

/**
 * Functions that yield the parts of a row's long lists, without making the lists. Each part has at most `limit` items.
 */
export const columnParts = {
  tokenIds: idParts,
  lossMask: (columns: SegmentColumns, limit: number) =>
    listParts(columns, limit, {
      unsampled: "0",
      sampledParts: ({ logprobs }) => repeatedParts("1", logprobs.length, limit),
    }),
  logprobs: (columns: SegmentColumns, limit: number) =>
    listParts(columns, limit, {
      unsampled: "0",
      sampledParts: ({ logprobs }) => numberParts(logprobs, limit),
    }),
  policyVersions: (columns: SegmentColumns, limit: number) =>
    listParts(columns, limit, {
      unsampled: '""',
      sampledParts: (stretch) => versionParts(stretch, limit),
    }),
};

/** The maximum number of fractions in a part. Their text takes longer to make than that of other items. */
const mostFractions = 2048;

function* idParts({ ids }: SegmentColumns, limit: number): Generator<JsonPart> {
  yield "[";
  for (let first = 0; first < ids.length; first += limit) {
    if (first > 0) yield ",";
    yield { type: "numbers", list: ids, first, last: Math.min(first + limit, ids.length) };
  }
  yield "]";
}

/**
 * Yields the JSON of a list with an item for each id: `unsampled` for an id that was not sampled, and the items of
 * `sampledParts` for each stretch of sampled ids.
 */
function* listParts(
  { ids, sampled }: SegmentColumns,
  limit: number,
  {
    unsampled,
    sampledParts,
  }: {
    readonly unsampled: string;
    readonly sampledParts: (stretch: SampledStretch) => Iterable<JsonPart>;
  },
): Generator<JsonPart> {
  let separator = "[";
  let end = 0;
  for (const stretch of sampled) {
    for (const part of repeatedParts(unsampled, stretch.start - end, limit)) {
      yield separator;
      yield part;
      separator = ",";
    }
    for (const part of sampledParts(stretch)) {
      yield separator;
      yield part;
      separator = ",";
    }
    end = stretch.start + stretch.logprobs.length;
  }
  for (const part of repeatedParts(unsampled, ids.length - end, limit)) {
    yield separator;
    yield part;
    separator = ",";
  }
  yield separator === "[" ? "[]" : "]";
}

function* repeatedParts(text: string, count: number, limit: number): Generator<JsonPart> {
  for (let left = count; left > 0; left -= limit) {
    yield { type: "repeated", text, count: Math.min(limit, left) };
  }
}

function* numberParts(numbers: readonly number[], limit: number): Generator<JsonPart> {
  const size = Math.min(limit, mostFractions);
  for (let first = 0; first < numbers.length; first += size) {
    yield JSON.stringify(numbers.slice(first, first + size)).slice(1, -1);
  }
}

function* versionParts({ pieces }: SampledStretch, limit: number): Generator<JsonPart> {
  for (const { tokenCount, policyVersion } of pieces) {
    yield* repeatedParts(JSON.stringify(policyVersion), tokenCount, limit);
  }
}
