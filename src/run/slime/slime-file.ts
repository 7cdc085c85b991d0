import type { EpisodeRow } from "../folder/episode-row.ts";
import { encodeLine } from "../disk/encode-line.ts";
import { LineReader, readPlacedLines, type LinePlace } from "../disk/placed-lines.ts";
import { diskFiles, type Files } from "../disk/files.ts";
import { writeAtomically } from "../disk/write-atomically.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { toSlimeGroup, type SlimeMember, type SlimeOmission, type SlimePlace } from "./slime.ts";

/** An attempt of the run with its indexes. */
export interface SlimeAttempt extends SlimePlace {
  readonly rolloutId: string;
}

/** The content of a run's slime file. JSON-able. */
export interface SlimeSummary {
  /** The number of groups in the file. Each has the rows of all its attempts. */
  readonly groups: number;
  readonly rows: number;
  /** The number of groups that are not in the file, by reason; absent if all groups are there. */
  readonly leftOut?: Readonly<Partial<Record<SlimeOmission, number>>>;
}

/** Selects the slime rows of a run. */
export interface SlimeChoice {
  /**
   * The number of attempts in a group, if more were started: the group has the rows of the first ones that were scored,
   * as it was delivered. Default: all attempts.
   */
  readonly size?: number;
  /** The number of further groups without a started attempt. They count as unfinished. Default 0. */
  readonly unstartedCount?: number;
}

/** The files that hold a run's episodes and rows. */
interface SlimeSources {
  readonly episodesFile: string;
  readonly samplesFile: string;
  /** Default: the machine's files. */
  readonly files?: Files;
}

/**
 * Writes the slime rows of all groups that slime can use (see `toSlimeGroup()`), in the order of the plan. Replaces an
 * older file. Keeps one group in memory at a time.
 */
export async function writeSlimeFile(
  file: string,
  attempts: readonly SlimeAttempt[],
  sources: SlimeSources & SlimeChoice,
): Promise<SlimeSummary> {
  let groups = 0;
  let rows = 0;
  const { files, unstartedCount = 0 } = sources;
  const leftOut: Partial<Record<SlimeOmission, number>> =
    unstartedCount === 0 ? {} : { unfinished: unstartedCount };
  async function* lines(): AsyncGenerator<Uint8Array> {
    for await (const members of readSlimeGroups(attempts, sources)) {
      const group = toSlimeGroup(members);
      if ("leftOut" in group) {
        leftOut[group.leftOut] = (leftOut[group.leftOut] ?? 0) + 1;
        continue;
      }
      groups += 1;
      for (const row of group.rows) {
        rows += 1;
        yield* (await encodeLine(row)).blocks;
      }
    }
  }
  await writeAtomically(file, lines(), files && { files });
  return { groups, rows, ...(Object.keys(leftOut).length !== 0 && { leftOut }) };
}

/** Returns the attempts that completed an over-sampled group; all attempts if it is not complete. */
function firstScored(members: readonly FoundMember[], size: number): readonly FoundMember[] {
  const scored = members.filter(({ episode }) => episode?.reward !== undefined);
  if (members.length <= size || scored.length < size) return members;
  const first = scored.toSorted((one, other) => one.endedAs! - other.endedAs!).slice(0, size);
  return members.filter((member) => first.includes(member));
}

/** An attempt with its lines in the files. */
interface FoundMember extends SlimeMember {
  readonly rolloutId: string;
  /** The order in which attempts ended; absent if the attempt has not ended. */
  readonly endedAs: number | undefined;
}

/** Reads the groups of a run with their lines. Skips lines that are not JSON. */
export async function* readSlimeGroups(
  attempts: readonly SlimeAttempt[],
  { episodesFile, samplesFile, files = diskFiles, size = Infinity }: SlimeSources & SlimeChoice,
): AsyncGenerator<readonly FoundMember[]> {
  const places = {
    episodes: await placesOf(files, episodesFile),
    samples: await placesOf(files, samplesFile),
  };
  await using episodes = await LineReader.open(files, episodesFile);
  await using samples = await LineReader.open(files, samplesFile);
  const readMember = async ({ rolloutId, groupIndex, index }: SlimeAttempt) => {
    const episode = places.episodes.get(rolloutId)?.at(-1);
    const rows: Sample[] = [];
    for (const found of places.samples.get(rolloutId) ?? []) {
      rows.push(JSON.parse(await samples.read(found)) as Sample);
    }
    return {
      rolloutId,
      episode: episode && (JSON.parse(await episodes.read(episode)) as EpisodeRow),
      endedAs: episode?.line,
      samples: rows,
      place: { groupIndex, index },
    };
  };
  let members: Awaited<ReturnType<typeof readMember>>[] = [];
  for (const attempt of attempts) {
    const isNext = members[0]?.place.groupIndex !== attempt.groupIndex;
    if (members.length > 0 && isNext) {
      yield firstScored(members, size);
      members = [];
    }
    members.push(await readMember(attempt));
  }
  if (members.length > 0) yield firstScored(members, size);
}

async function placesOf(
  files: Files,
  file: string,
): Promise<ReadonlyMap<string, readonly LinePlace[]>> {
  const places = new Map<string, LinePlace[]>();
  for await (const { text, place } of readPlacedLines(files, file)) {
    const rolloutId = rolloutIdOf(text);
    if (rolloutId === undefined) continue;
    const known = places.get(rolloutId);
    if (known === undefined) places.set(rolloutId, [place]);
    else known.push(place);
  }
  return places;
}

function rolloutIdOf(text: string): string | undefined {
  try {
    const row = JSON.parse(text) as { readonly rolloutId?: unknown } | null;
    return typeof row?.rolloutId === "string" ? row.rolloutId : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
