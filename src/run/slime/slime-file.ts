import type { EpisodeRow } from "../folder/episode-row.ts";
import { encodeLine } from "../disk/encode-line.ts";
import { LineReader, readPlacedLines, type LinePlace } from "../disk/placed-lines.ts";
import { diskFiles, type Files } from "../disk/files.ts";
import { writeAtomically } from "../disk/write-atomically.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { toSlimeGroup, type SlimeMember, type SlimeOmission, type SlimePlace } from "./slime.ts";

/** An attempt of the run, as its plan has it. */
export interface SlimeAttempt extends SlimePlace {
  readonly rolloutId: string;
}

/** What a run's slime file holds. JSON-able. */
export interface SlimeSummary {
  /** Groups in the file; each has the rows of all its attempts. */
  readonly groups: number;
  readonly rows: number;
  /** Groups that are not in it, by reason; absent where there are none. */
  readonly leftOut?: Readonly<Partial<Record<SlimeOmission, number>>>;
}

/** How a run's slime rows are chosen. */
export interface SlimeChoice {
  /**
   * Attempts of a group, where more are begun: the group has the rows of those that were the first to be scored,
   * as it was handed out. Default: of all.
   */
  readonly size?: number;
  /** Further groups of the run, of which nothing was begun: they count as unfinished. Default 0. */
  readonly unbegunCount?: number;
}

/** The files of a run that its slime rows are made of. */
interface SlimeSources {
  readonly episodesFile: string;
  readonly samplesFile: string;
  /** Default: those of the machine. */
  readonly files?: Files;
}

/**
 * Writes slime's rows of all groups that slime can be given (see `toSlimeGroup()`), in the order of the
 * plan, and puts the file in the place of an older one. One group at a time is in memory.
 */
export async function writeSlimeFile(
  file: string,
  attempts: readonly SlimeAttempt[],
  sources: SlimeSources & SlimeChoice,
): Promise<SlimeSummary> {
  let groups = 0;
  let rows = 0;
  const { files, unbegunCount = 0 } = sources;
  const leftOut: Partial<Record<SlimeOmission, number>> =
    unbegunCount === 0 ? {} : { unfinished: unbegunCount };
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

/** The attempts that made a group whole of which more were begun; all of them where it is not whole. */
function firstScored(members: readonly FoundMember[], size: number): readonly FoundMember[] {
  const scored = members.filter(({ episode }) => episode?.reward !== undefined);
  if (members.length <= size || scored.length < size) return members;
  const first = scored.toSorted((one, other) => one.endedAs! - other.endedAs!).slice(0, size);
  return members.filter((member) => first.includes(member));
}

/** What the files hold of an attempt. */
interface FoundMember extends SlimeMember {
  readonly rolloutId: string;
  /** Of two, the lower one ended before the other; absent where it has not ended. */
  readonly endedAs: number | undefined;
}

/**
 * The groups of a run, with what the files hold of each. Lines that are no JSON are passed over, as if
 * they were not there.
 */
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
