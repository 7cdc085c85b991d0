import type { Command } from "commander";
import { columnNames } from "../../columns/column-specs.ts";
import { UsageError } from "../../errors.ts";
import { openStoredRun, type StoredRun } from "../../report/read-run.ts";
import { showEpisode } from "../../report/show-episode.ts";
import { showTokens } from "../../report/show-tokens.ts";
import { plainStyle, terminalStyle, type TextStyle } from "../../report/text-style.ts";
import type { EpisodeRow } from "../../run/folder/run-folder.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { storedSettings } from "../../composition/config/stored-settings.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { findRollout } from "../find-rollout.ts";
import { noteDamaged } from "../note-damaged.ts";
import { listEpisodes, listFieldNames } from "../show/list-episodes.ts";
import { writeError, writeOut } from "../write-out.ts";

interface ShowFlags {
  readonly tokens?: boolean;
  readonly full?: boolean;
  readonly json?: boolean;
  readonly model?: string;
  readonly filter?: string;
  readonly sort?: string;
  readonly failed?: boolean;
}

/** `turnwright show`: prints one conversation of a run. */
export function defineShow(command: Command): void {
  command
    .description(
      "Prints an episode turn by turn with its reward and what differs from what was " +
        "wanted. Without an episode, lists the episodes.\n\n" +
        "A filter has words with blanks between them, as in the viewer: conditions such as reward<1, turns>=10, " +
        "task=12, outcome:truncated or reward=none, and texts that the id, the user's first words or the reason " +
        `contain. Its fields, by which --sort sorts as well, are ${listFieldNames.join(", ")}, and ` +
        "reward.NAME for a component of the reward.",
    )
    .option("--failed", "list only the episodes that are not a success")
    .option("--filter <words>", "list only the episodes that match, such as 'task=12 reward<1'")
    .option("--sort <field>", "sort the list by a field; -FIELD: in descending order")
    .option("--tokens", "print the training rows instead, with the sampled tokens marked")
    .option("--model <dir>", "model folder to decode tokens with (default: the run's)")
    .option("--full", "print long texts whole")
    .option("--json", "print the episode as JSON")
    .action(show);
}

async function show(dir: string, episode: string | undefined, flags: ShowFlags): Promise<void> {
  const run = await openStoredRun(dir, { onDamaged: noteDamaged });
  if (episode === undefined) {
    let count = 0;
    for await (const line of listEpisodes(run, flags)) {
      count += 1;
      await writeOut(`${line}\n`);
    }
    if (count === 0) writeError("no finished episode is listed\n");
    return;
  }
  const listFlag = (["failed", "filter", "sort"] as const).find(
    (name) => flags[name] !== undefined,
  );
  if (listFlag !== undefined) {
    throw new UsageError(
      `Cannot use --${listFlag} with an episode: it is for the list of all episodes`,
    );
  }
  const row = await findEpisode(run, episode);
  const style: TextStyle = process.stdout.isTTY ? terminalStyle : plainStyle;
  const full = flags.full === true;
  if (flags.json === true) await writeOut(`${JSON.stringify(row)}\n`);
  else if (flags.tokens === true) await showRows(run, row, { style, full, model: flags.model });
  else await writeOut(`${showEpisode(row, { style, full })}\n`);
}

/**
 * Finds an episode.
 * @throws UsageError if no episode or several episodes match; the message names those that match.
 */
async function findEpisode(run: StoredRun, wanted: string): Promise<EpisodeRow> {
  const rows = new Map<string, EpisodeRow>();
  // Keeps only episodes that can match, because a run may have many.
  const isMeant = ({ rolloutId, taskIndex }: EpisodeRow): boolean =>
    rolloutId.includes(wanted) || String(taskIndex) === wanted;
  for await (const row of run.rows()) {
    if (isMeant(row)) rows.set(row.rolloutId, row);
  }
  const none = "no finished episode has this id (without an id they are listed)";
  return rows.get(findRollout([...rows.values()], wanted, { place: run.dir, none }))!;
}

async function showRows(
  run: StoredRun,
  { rolloutId }: EpisodeRow,
  { style, full, model }: { style: TextStyle; full: boolean; model: string | undefined },
): Promise<void> {
  const codec = await findCodec(run, model);
  let rowCount = 0;
  for await (const sample of run.samplesOf(rolloutId)) {
    rowCount++;
    const text = await showTokens(sample, {
      style,
      full,
      ...(codec !== undefined && { codec }),
    });
    await writeOut(`${text}\n${columnsLine(sample)}\n`);
  }
  await codec?.close?.();
  if (rowCount > 0) return;
  throw new UsageError(`Cannot show the tokens of ${rolloutId}: ${run.dir} has no samples of it`);
}

/** Returns a line that names the row's side columns. Returns `""` if the row has none. */
function columnsLine({ columns = {} }: Sample): string {
  const named = columnNames.flatMap((name) => {
    const parts = columns[name];
    if (parts === undefined) return [];
    return [`${name} ${parts.reduce((sum, { rows }) => sum + rows, 0)} rows`];
  });
  return named.length === 0 ? "" : `side columns: ${named.join(", ")}\n`;
}

/** Loads the run's tokenizer; returns `undefined` if its folder is gone, and ids are shown then. */
async function findCodec(
  run: StoredRun,
  model: string | undefined,
): Promise<TokenCodec | undefined> {
  if (model !== undefined) return await loadTokenCodec(model);
  const { model: folder } = storedSettings(run.manifest);
  if (typeof folder === "string") {
    try {
      return await loadTokenCodec(folder);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
    }
  }
  writeError("the run's tokenizer is not here: ids are shown (name it with --model)\n");
  return undefined;
}
