import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import { restoreStory } from "../../episode/stored-story.ts";
import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { readBytes, type Files } from "../disk/files.ts";
import { scanLines, type ScannedLine } from "../disk/line-ranges.ts";
import { writeAtomically } from "../disk/write-atomically.ts";
import { parseJson, type EpisodeRow, type EpisodeStory } from "../folder/episode-row.ts";
import { storedFiles } from "../gzip/stored-files.ts";
import { rolloutIdOfLine } from "../folder/sample-line.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { readRowLine, textsAt, toRowLine, type RowLine } from "./row-line.ts";
import {
  fillSlimeRow,
  findSlimeOmission,
  type SlimeMember,
  type SlimeOmission,
  type SlimePlace,
} from "./slime.ts";

/** An attempt of the run with its indexes. */
export interface SlimeAttempt extends SlimePlace {
  readonly rolloutId: string;
}

/** The content of a run's slime file. JSON-able. */
export interface SlimeSummary {
  /** The number of groups in the file. Each has all rows of all its attempts. */
  readonly groups: number;
  readonly rows: number;
  /** The number of groups that are not in the file, by reason; absent if all groups are there. */
  readonly leftOut?: Readonly<Partial<Record<SlimeOmission, number>>>;
}

/** Selects the slime rows of a run. */
export interface SlimeChoice {
  /**
   * The number of attempts in a group, if more were started. The group then has the rows of the first attempts that
   * were scored, as it was delivered. Default: all attempts.
   */
  readonly size?: number;
  /** The number of further groups without a started attempt. These groups count as unfinished. Default 0. */
  readonly unstartedCount?: number;
}

/** The files that contain a run's episodes and rows. */
interface SlimeSources {
  readonly episodesFile: string;
  readonly samplesFile: string;
  /** Default: `storedFiles`. */
  readonly files?: Files;
}

/**
 * Writes the slime rows of all groups that slime can use (see `toSlimeGroup()`), in the order of the plan. Replaces an
 * older file. Keeps one group in memory at a time. Copies the numbers of the training rows as text.
 */
export async function writeSlimeFile(
  file: string,
  attempts: readonly SlimeAttempt[],
  sources: SlimeSources & SlimeChoice,
): Promise<SlimeSummary> {
  let groups = 0;
  let rows = 0;
  const { files, unstartedCount = 0 } = sources;
  const isSampled = ({ lossMask }: RowLine): boolean => lossMask.includes("1");
  const leftOut: Partial<Record<SlimeOmission, number>> =
    unstartedCount === 0 ? {} : { unfinished: unstartedCount };
  async function* lines(): AsyncGenerator<Uint8Array> {
    for await (const members of readGroups(attempts, sources, readRow)) {
      const omission = findSlimeOmission(members, isSampled);
      if (omission !== undefined) {
        leftOut[omission] = (leftOut[omission] ?? 0) + 1;
        continue;
      }
      groups += 1;
      for (const { episode, samples, place } of members) {
        for (const row of samples.filter(isSampled)) {
          rows += 1;
          yield* encodeSlimeLine(episode!, row, place);
          if (isShareOver()) await takeTurn();
        }
      }
    }
  }
  await writeAtomically(file, lines(), files && { files });
  return { groups, rows, ...(Object.keys(leftOut).length !== 0 && { leftOut }) };
}

/** Reads a line of a run's rows, also one in another form, such as one that a person edited. */
function readRow(line: Buffer): RowLine | undefined {
  const row = readRowLine(line);
  if (row !== undefined) return row;
  const sample = parseJson(line) as Sample | undefined;
  return sample && toRowLine(sample);
}

/** Yields the slime row of an attempt: UTF-8 with a line feed at the end. */
function* encodeSlimeLine(
  episode: EpisodeStory,
  row: RowLine,
  place: SlimePlace,
): Generator<Uint8Array> {
  const { policyVersions } = row;
  const fields = fillSlimeRow(episode, place, {
    ...row,
    versionsAt: (indexes) => textsAt(policyVersions, indexes),
  });
  let text = "";
  let separator = "{";
  for (const [name, value] of Object.entries(fields)) {
    text += `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    if (Buffer.isBuffer(value)) {
      yield Buffer.from(`${text}[`);
      yield value;
      text = "]";
    } else text += JSON.stringify(value);
  }
  yield Buffer.from(`${text}}\n`);
}

/** Returns the attempts that completed an over-sampled group; all attempts if it is not complete. */
function firstScored<Row>(
  members: readonly FoundMember<Row>[],
  size: number,
): readonly FoundMember<Row>[] {
  const scored = members.filter(({ episode }) => episode?.reward !== undefined);
  if (members.length <= size || scored.length < size) return members;
  const first = scored.toSorted((one, other) => one.endedAs! - other.endedAs!).slice(0, size);
  return members.filter((member) => first.includes(member));
}

/** An attempt with its lines in the files. */
interface FoundMember<Row> extends SlimeMember<Row> {
  readonly episode: EpisodeRow | undefined;
  readonly rolloutId: string;
  /** The place of the attempt in the order in which attempts ended; absent if it has not ended. */
  readonly endedAs: number | undefined;
}

/** Reads the groups of a run with their lines. Skips lines that are not JSON. */
export async function* readSlimeGroups(
  attempts: readonly SlimeAttempt[],
  sources: SlimeSources & SlimeChoice,
): AsyncGenerator<readonly FoundMember<Sample>[]> {
  yield* readGroups(attempts, sources, (line) => parseJson(line) as Sample | undefined);
}

async function* readGroups<Row>(
  attempts: readonly SlimeAttempt[],
  { episodesFile, samplesFile, files = storedFiles, size = Infinity }: SlimeSources & SlimeChoice,
  toRow: (line: Buffer) => Row | undefined,
): AsyncGenerator<readonly FoundMember<Row>[]> {
  const places = {
    episodes: await placesOf(files, episodesFile),
    samples: await placesOf(files, samplesFile),
  };
  const episodes = await files.open(episodesFile, "read");
  const samples = await files.open(samplesFile, "read");
  const readEpisode = async (rolloutId: string) => {
    for (const place of places.episodes.get(rolloutId)?.toReversed() ?? []) {
      const line = await readBytes(episodes, place);
      const episode = restoreStory(parseJson(line)) as EpisodeRow | undefined;
      if (episode !== undefined) return { episode, endedAs: place.line };
    }
    return { episode: undefined, endedAs: undefined };
  };
  const readMember = async ({ rolloutId, groupIndex, index }: SlimeAttempt) => {
    const rows: Row[] = [];
    for (const place of places.samples.get(rolloutId) ?? []) {
      const row = toRow(await readBytes(samples, place));
      if (row !== undefined) rows.push(row);
    }
    const place = { groupIndex, index };
    return { rolloutId, ...(await readEpisode(rolloutId)), samples: rows, place };
  };
  try {
    let members: FoundMember<Row>[] = [];
    for (const attempt of attempts) {
      const isNext = members[0]?.place.groupIndex !== attempt.groupIndex;
      if (members.length > 0 && isNext) {
        yield firstScored(members, size);
        members = [];
      }
      members.push(await readMember(attempt));
    }
    if (members.length > 0) yield firstScored(members, size);
  } finally {
    await episodes.close();
    await samples.close();
  }
}

/** The position and number of a line. */
type NumberedRange = Pick<ScannedLine, "line" | "start" | "end">;

async function placesOf(
  files: Files,
  file: string,
): Promise<ReadonlyMap<string, readonly NumberedRange[]>> {
  const places = new Map<string, NumberedRange[]>();
  await scanLines(files, file, ({ bytes, line, start, end }) => {
    const rolloutId = rolloutIdOfLine(bytes);
    if (rolloutId !== undefined) appendToList(places, rolloutId, { line, start, end });
  });
  return places;
}
