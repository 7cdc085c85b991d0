import path from "node:path";
import type { Episode } from "../episode/episode.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { Span } from "../trajectory/span.ts";
import type { Segment } from "../trajectory/trajectory-recorder.ts";
import { parseEpisodeRow, parseJson, type EpisodeRow } from "./episode-row.ts";
import type { Files } from "./files.ts";
import { scanLines } from "./line-ranges.ts";
import { episodesFile, samplesFile } from "./reconcile.ts";
import { rolloutIdOfLine } from "./sample-line.ts";
import { storageError } from "./storage-error.ts";

/**
 * Reads finished episodes back from a run's folder, in the order of its file. Rows do not say which ids
 * closed a turn that the policy left open: they count as the environment's here.
 *
 * @throws UsageError where the disk refuses.
 */
export async function readEpisodes(
  dir: string,
  { files, wanted }: { readonly files: Files; readonly wanted: ReadonlySet<string> },
): Promise<readonly Episode[]> {
  const rows: EpisodeRow[] = [];
  const samples = new Map<string, Sample[]>();
  await scan(files, path.join(dir, episodesFile), wanted, (bytes) => {
    const row = parseEpisodeRow(bytes);
    if (row !== undefined) rows.push(row);
  });
  await scan(files, path.join(dir, samplesFile), wanted, (bytes) => {
    const sample = parseJson(bytes) as Sample;
    const others = samples.get(sample.rolloutId);
    if (others === undefined) samples.set(sample.rolloutId, [sample]);
    else others.push(sample);
  });
  return rows.map(({ sampleHashes: _hashes, ...story }) => ({
    ...story,
    segments: (samples.get(story.rolloutId) ?? [])
      .toSorted((one, other) => one.segment - other.segment)
      .map(toSegment),
  }));
}

async function scan(
  files: Files,
  file: string,
  wanted: ReadonlySet<string>,
  onLine: (bytes: Buffer) => void,
): Promise<void> {
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (wanted.has(rolloutIdOfLine(bytes) ?? "")) onLine(bytes);
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
}

function toSegment(sample: Sample): Segment {
  const { tokenIds, promptLength, lossMask, logprobs, policyVersions, turns } = sample;
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
  return { tokenIds, promptLength, spans, lossMask, logprobs, policyVersions, turns };
}
