import type { Episode } from "../../episode/episode.ts";
import { WeightLimit } from "../../async/weight-limit.ts";
import { UsageError } from "../../errors.ts";
import { acquireBytes } from "../../text/lent-bytes.ts";
import { type EncodedLine, encodeLine, encodeRow } from "../disk/encode-line.ts";
import type { JsonlJournal } from "../disk/jsonl-journal.ts";
import type { SlimeAttempt, SlimeChoice, SlimeSummary } from "../slime/slime-file.ts";
import { writeSlimeFile } from "../slime/slime-file.ts";
import { storeStory } from "../../episode/stored-story.ts";
import { rowMembers, type StoredEpisodeRow } from "./episode-row.ts";
import { episodeSamples } from "./episode-samples.ts";
import type { LockedFolder } from "./locked-folder.ts";
import { packedOf } from "../packed/packed-episode.ts";
import { indexEpisodes, type EpisodeIndex } from "./read-episodes.ts";
import { rolloutIdOfLine } from "./sample-line.ts";
import { sortRows } from "./sort-rows.ts";

interface EpisodeJournals {
  readonly episodes: JsonlJournal;
  readonly samples: JsonlJournal;
}

/** Maximum number of tokens whose rows are encoded and written at once: about 15 bytes of memory each. */
const mostRowTokens = 2_000_000;

/** Writes the finished episodes of a run's folder, with their training rows, and reads them back. */
export class FolderEpisodes {
  readonly #folder: LockedFolder;
  readonly #journals: EpisodeJournals;
  /** The limit of rows in memory. Many long episodes can end at the same time, and their rows are long. */
  readonly #rowLimit = new WeightLimit(mostRowTokens);
  /** The positions of the episodes in their files; replaced when an episode is not found. */
  #index: Promise<EpisodeIndex> | undefined;

  #syncColumns: (() => Promise<void>) | undefined;

  constructor(folder: LockedFolder, journals: EpisodeJournals) {
    this.#folder = folder;
    this.#journals = journals;
  }

  /** Makes each write wait for the side columns that its rows name. */
  syncsFirst(syncColumns: () => Promise<void>): void {
    this.#syncColumns = syncColumns;
  }

  /**
   * Writes an episode. Resolves when its training rows, and after them its own line, are synced.
   *
   * @param beforeLine - Runs between the rows and the line.
   * @returns the hash of its line (see `hashRow()`).
   */
  async write(episode: Episode, beforeLine: () => Promise<void>): Promise<string> {
    const packed = packedOf(episode);
    await this.#syncColumns?.();
    const hashes =
      packed === undefined
        ? await this.#rowLimit.run(episode.counts.tokenCount, () => this.#encodeRows(episode))
        : await this.#appendRows(packed.samples);
    await beforeLine();
    const line = packed?.line ?? (await encodeStory(episode, hashes));
    await this.#journals.episodes.appendLines([line]);
    return line.hash;
  }

  /** Encodes and appends an episode's rows. Returns their hashes. */
  async #encodeRows(episode: Episode): Promise<readonly string[]> {
    const lines: EncodedLine[] = [];
    for (const row of episodeSamples(episode)) lines.push(await encodeRow(row, acquireBytes));
    return await this.#appendRows(lines);
  }

  async #appendRows(lines: readonly EncodedLine[]): Promise<readonly string[]> {
    if (lines.length > 0) await this.#journals.samples.appendLines(lines);
    return lines.map(({ hash }) => hash);
  }

  /**
   * Reads finished episodes.
   *
   * @throws UsageError if one of them is missing, or the disk fails.
   */
  async read(wanted: ReadonlySet<string>): Promise<readonly Episode[]> {
    const known = this.#index;
    const found = (await (await known)?.read(wanted)) ?? [];
    if (found.length === wanted.size) return found;
    // Some episodes were written after the files were indexed.
    if (this.#index === known) {
      this.#index = indexEpisodes(this.#folder.dir, this.#folder.files);
    }
    const all = await (await this.#index!).read(wanted);
    if (all.length === wanted.size) return all;
    const present = new Set(all.map(({ rolloutId }) => rolloutId));
    const missing = [...wanted].find((rolloutId) => !present.has(rolloutId));
    throw new UsageError(
      `Cannot read ${missing} back from ${this.#folder.dir}: it was finished there, and its line or its rows are ` +
        "no longer in the files, as if another program had changed them; start again, and it is played again",
    );
  }

  /** Sorts the training rows by rollout, in the order given, and closes their journal. */
  async sortSamples(rolloutIds: readonly string[]): Promise<void> {
    const { files } = this.#folder;
    const { samples } = this.#journals;
    const ranks = new Map(rolloutIds.map((rolloutId, index) => [rolloutId, index]));
    const rankOf = (line: Buffer): number =>
      ranks.get(rolloutIdOfLine(line) ?? "") ?? rolloutIds.length;
    await this.#folder.whileLocked(async () => {
      await samples[Symbol.asyncDispose]();
      this.#index = undefined;
      await sortRows(samples.path, rankOf, { files });
    });
  }

  /** Writes the rows of complete groups in slime's format. */
  async writeSlime(
    file: string,
    attempts: readonly SlimeAttempt[],
    choice: SlimeChoice,
  ): Promise<SlimeSummary> {
    const { episodes, samples } = this.#journals;
    const sources = { episodesFile: episodes.path, samplesFile: samples.path };
    const options = { ...sources, ...choice, files: this.#folder.files };
    return await this.#folder.whileLocked(
      async () => await writeSlimeFile(file, attempts, options),
    );
  }
}

async function encodeStory(
  episode: Episode,
  sampleHashes: readonly string[],
): Promise<EncodedLine> {
  const { segments: _written, ...story } = episode;
  const row: StoredEpisodeRow = { ...storeStory(story), ...rowMembers(episode, sampleHashes) };
  return await encodeLine(row, acquireBytes);
}
