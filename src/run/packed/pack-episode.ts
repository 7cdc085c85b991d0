import type { ColumnParts } from "../../columns/column-part.ts";
import type { Episode } from "../../episode/episode.ts";
import { encodeLine, encodeRow, type EncodedLine } from "../disk/encode-line.ts";
import { episodeSamples } from "../folder/episode-samples.ts";
import { storeStory } from "../../episode/stored-story.ts";
import { rowMembers, type StoredEpisodeRow } from "../folder/episode-row.ts";
import { findVersions } from "../policy/version-facts.ts";
import type { DescribedTrouble, PackedRecording } from "./packed-episode.ts";
import { lazyMembers, type PackedHead } from "./packed-head.ts";

/** A packed episode: its head, and the lines that follow. */
export interface EpisodePack {
  readonly head: PackedHead;
  readonly body: readonly Uint8Array[];
}

/**
 * Encodes a checked episode as the lines that a run appends to its files.
 *
 * @param about - `columns` are the parts of side columns that rows and recording name and that the run may not have.
 */
export async function packEpisode(
  episode: Episode,
  {
    recording,
    troubles,
    columns,
  }: {
    readonly recording: PackedRecording;
    readonly troubles: readonly DescribedTrouble[];
    readonly columns?: ColumnParts | undefined;
  },
): Promise<EpisodePack> {
  const samples: EncodedLine[] = [];
  for (const sample of episodeSamples(episode)) samples.push(await encodeRow(sample));
  const { segments, ...story } = episode;
  const row: StoredEpisodeRow = {
    ...storeStory(story),
    ...rowMembers(
      episode,
      samples.map(({ hash }) => hash),
    ),
  };
  const line = await encodeLine(row);
  const spans = await encodeLine(segments.map((segment) => segment.spans));
  const head: PackedHead = {
    story: withoutLazyMembers(story),
    versions: findVersions(episode) as PackedHead["versions"],
    turns: episode.turns.map(
      ({ turnIndex, sampledTokenCount, engineMs, userMs, environmentMs }) => ({
        turnIndex,
        sampledTokenCount,
        engineMs,
        ...(userMs !== undefined && { userMs }),
        environmentMs,
      }),
    ),
    troubles: [...troubles],
    samples: samples.map(sizeOf),
    line: sizeOf(line),
    spansBytes: sizeOf(spans).bytes,
    recording: {
      bytes: recording.bytes.length,
      partCount: recording.partCount,
      lastHash: recording.lastHash,
    },
    ...(columns !== undefined && { columns: columns as PackedHead["columns"] }),
  };
  const lines = [...samples, line, spans].flatMap(({ blocks }) => blocks);
  return { head, body: [...lines, recording.bytes] };
}

function sizeOf({ blocks, hash }: EncodedLine): { readonly bytes: number; readonly hash: string } {
  return { bytes: blocks.reduce((sum, block) => sum + block.length, 0), hash };
}

/** Keeps the names and the order of all members. */
function withoutLazyMembers(story: Omit<Episode, "segments">): PackedHead["story"] {
  const lazy: ReadonlySet<string> = new Set(lazyMembers);
  return Object.fromEntries(
    Object.entries(story).map(([name, value]: [string, unknown]) => [
      name,
      lazy.has(name) ? null : value,
    ]),
  ) as PackedHead["story"];
}
