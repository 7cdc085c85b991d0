import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import path from "node:path";
import type { Episode } from "../../episode/episode.ts";
import type { Sample } from "../../trajectory/sample.ts";
import type { Span } from "../../trajectory/span.ts";
import type { Segment } from "../../trajectory/segment.ts";
import { parseEpisodeRow, parseJson, type EpisodeRow } from "./episode-row.ts";
import type { Files } from "../disk/files.ts";
import { episodesFile, samplesFile } from "./scan-claims.ts";
import { indexRows, type RowIndex } from "./row-index.ts";
import { storageError } from "../disk/storage-error.ts";

/** The positions of a folder's episodes in its files, which are scanned once. */
export interface EpisodeIndex {
  /**
   * Reads finished episodes, in the order of the file. Ids that closed a turn of the policy count as ids of the
   * environment, because rows do not mark them.
   *
   * @returns the episodes that are complete.
   * @throws UsageError if the disk fails.
   */
  read(wanted: ReadonlySet<string>): Promise<readonly Episode[]>;
}

/**
 * Scans a folder for its episodes and their rows. Episodes that are written later are not found.
 *
 * @throws UsageError if the disk fails.
 */
export async function indexEpisodes(dir: string, files: Files): Promise<EpisodeIndex> {
  const open = async (name: string) => await openIndex(files, path.join(dir, name));
  const [episodeLines, sampleLines] = [await open(episodesFile), await open(samplesFile)];
  return {
    async read(wanted) {
      const rows: EpisodeRow[] = [];
      await episodeLines.readEach(wanted, (line) => {
        const row = parseEpisodeRow(line);
        if (row !== undefined && wanted.has(row.rolloutId)) rows.push(row);
      });
      const samples = new Map<string, Sample[]>();
      await sampleLines.readEach(wanted, (line) => {
        const sample = parseJson(line) as Sample | null | undefined;
        if (!sample || !wanted.has(sample.rolloutId)) return;
        appendToList(samples, sample.rolloutId, sample);
      });
      return rows.flatMap(({ sampleHashes, lineage: _lineage, ...story }) => {
        const own = samples.get(story.rolloutId) ?? [];
        if (own.length !== sampleHashes.length) return [];
        const inOrder = own.toSorted((one, other) => one.segment - other.segment);
        return [{ ...story, segments: inOrder.map(toSegment) }];
      });
    },
  };
}

/** Opens an index, and names the file in its errors. */
async function openIndex(files: Files, file: string): Promise<Pick<RowIndex, "readEach">> {
  const named = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      throw storageError("read", file, error);
    }
  };
  const rows = await named(async () => await indexRows(files, file));
  return {
    readEach: async (...given) => await named(async () => await rows.readEach(...given)),
  };
}

function toSegment(sample: Sample): Segment {
  const { tokenIds, promptLength, lossMask, logprobs, policyVersions, turns, columns } = sample;
  const spans: Span[] = [{ kind: "prompt", start: 0, end: promptLength }];
  let place = promptLength;
  const addEnvironment = (end: number): void => {
    if (end > place) spans.push({ kind: "environment", start: place, end });
  };
  for (const { start, end, turnIndex } of turns) {
    addEnvironment(start);
    if (end > start) spans.push({ kind: "sampled", start, end, turnIndex });
    place = end;
  }
  addEnvironment(tokenIds.length);
  return {
    tokenIds,
    promptLength,
    spans,
    lossMask,
    logprobs,
    policyVersions,
    turns,
    ...(columns !== undefined && { columns }),
  };
}
