import path from "node:path";
import { restoreStory } from "../episode/stored-story.ts";
import { UsageError } from "../errors.ts";
import type { EpisodeStory } from "../run/folder/episode-row.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { LineReader, readPlacedLines, type LinePlace } from "../run/disk/placed-lines.ts";

/** Finds episodes of a batch's folder by rollout id, while the file still grows. */
export class BatchStories {
  readonly #file: string;
  readonly #places = new Map<string, LinePlace>();
  /** The number of indexed bytes at the start of the file. */
  #end = 0;
  /** Resolves when the last search ends. Searches run one after the other. */
  #looking: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#file = path.join(folder, "episodes.jsonl");
  }

  /**
   * Returns the latest line of each named episode.
   * @throws UsageError if one is missing, for example because its folder was removed.
   */
  async read(rolloutIds: readonly string[]): Promise<ReadonlyMap<string, EpisodeStory>> {
    const found = await this.#readOnce(rolloutIds, { isReindexed: false });
    if (found !== undefined) return found;
    // A resumed batch may rewrite its file, which moves the lines.
    return (await this.#readOnce(rolloutIds, { isReindexed: true })) ?? this.#refuse(rolloutIds);
  }

  /**
   * Reads the episodes at their known positions. Returns `undefined` if a position is unknown or has another episode.
   */
  async #readOnce(
    rolloutIds: readonly string[],
    { isReindexed }: { readonly isReindexed: boolean },
  ): Promise<ReadonlyMap<string, EpisodeStory> | undefined> {
    const found = new Map<string, EpisodeStory>();
    if (rolloutIds.length === 0) return found;
    const places = await this.#placesOf(rolloutIds, isReindexed);
    await using reader = await LineReader.open(storedFiles, this.#file);
    for (const rolloutId of rolloutIds) {
      const place = places.get(rolloutId);
      if (place === undefined) return undefined;
      const text = await reader.read(place);
      if (rolloutIdOf(text) !== rolloutId) return undefined;
      found.set(rolloutId, restoreStory(JSON.parse(text)) as EpisodeStory);
    }
    return found;
  }

  /**
   * Returns the positions of lines. Indexes the file again if another reader has found that all positions are wrong.
   */
  async #placesOf(
    rolloutIds: readonly string[],
    isReindexed: boolean,
  ): Promise<ReadonlyMap<string, LinePlace>> {
    const looked = this.#looking.then(async () => {
      if (isReindexed) {
        this.#places.clear();
        this.#end = 0;
      }
      await this.#look(rolloutIds);
      return new Map(
        rolloutIds.flatMap((id) => {
          const place = this.#places.get(id);
          return place === undefined ? [] : [[id, place] as const];
        }),
      );
    });
    this.#looking = looked.catch(() => {});
    return await looked;
  }

  /** Reads the lines that were written since the last call, if the position of one of the rollouts is unknown. */
  async #look(rolloutIds: readonly string[]): Promise<void> {
    if (rolloutIds.every((rolloutId) => this.#places.has(rolloutId))) return;
    try {
      for await (const { text, place } of readPlacedLines(storedFiles, this.#file, this.#end)) {
        const rolloutId = rolloutIdOf(text);
        // The last line may be incomplete. The next call reads it again.
        if (rolloutId === undefined) continue;
        this.#places.set(rolloutId, place);
        this.#end = place.offset + place.length + 1;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      throw this.#absent(rolloutIds[0]!);
    }
  }

  #refuse(rolloutIds: readonly string[]): never {
    throw this.#absent(rolloutIds.find((id) => !this.#places.has(id)) ?? rolloutIds[0]!);
  }

  #absent(rolloutId: string): UsageError {
    return new UsageError(
      `Cannot find ${rolloutId} in ${path.basename(path.dirname(this.#file))}/episodes.jsonl: ` +
        "expected the batch's folder as the service wrote it",
    );
  }
}

function rolloutIdOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { readonly rolloutId: string }).rolloutId;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
