/** Checks on a delivered group: each attempt is there with all of its rows, natively and in a trainer's form. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

const sumOf = (numbers) => numbers.reduce((sum, each) => sum + each, 0);
const trainedCount = ({ lossMask }) => sumOf(lossMask);

/** Returns the faults of a group's attempts: missing ones, and those that are there in part. */
export function groupFaults({ attempts }, samples) {
  const faults = [];
  if (attempts.length !== samples) faults.push(`${attempts.length} attempts of ${samples}`);
  for (const [index, attempt] of attempts.entries()) {
    if (attempt.sampleIndex !== index) faults.push(`attempt ${attempt.sampleIndex} at ${index}`);
    faults.push(...attemptFaults(attempt).map((fault) => `${attempt.rolloutId}: ${fault}`));
  }
  return faults;
}

function attemptFaults({ rolloutId, outcome, reward, rows }) {
  const faults = [];
  // One in some thousand attempts meets the limit of turns.
  if (!["completed", "truncated"].includes(outcome)) faults.push(`its outcome is ${outcome}`);
  if (rows.length === 0) faults.push("no rows");
  const tokenCount = sumOf(rows.map(trainedCount));
  for (const [index, row] of rows.entries()) {
    const { lineage } = row.metadata;
    const { row: place = 0, rowCount = 1, attemptTokenCount = tokenCount } = lineage ?? {};
    if (place !== index) faults.push(`row ${place} at ${index}`);
    if (rowCount !== rows.length) faults.push(`${rows.length} rows of ${rowCount}`);
    if ((lineage === undefined) !== (rows.length === 1)) faults.push(`lineage at ${index}`);
    if (attemptTokenCount !== tokenCount)
      faults.push(`${tokenCount} trained tokens of ${attemptTokenCount}`);
    if (trainedCount(row) === 0) faults.push(`row ${index} trains nothing`);
    if (row.rolloutId !== rolloutId) faults.push(`row ${index} is of ${row.rolloutId}`);
    if (row.reward !== reward) faults.push(`row ${index} has the reward ${row.reward}`);
  }
  const firstTurns = rows.map(({ turns }) => turns[0]?.turnIndex);
  if (firstTurns.some((turn, index) => index > 0 && turn <= firstTurns[index - 1]))
    faults.push(`rows in the order ${firstTurns.join()}`);
  return faults;
}

/** Returns the complete lines of a run's file. A kill may leave a part of a line after them. */
function linesOf(folder, name) {
  const file = path.join(folder, name);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
}

/** Returns the hashes of the rows of each attempt in a run's folder, in their order. */
export function hashesOnDisk(folder) {
  const hashes = new Map();
  for (const line of linesOf(folder, "samples.jsonl")) {
    const row = JSON.parse(line);
    hashes.set(row.rolloutId, [...(hashes.get(row.rolloutId) ?? []), hashOf(row)]);
  }
  return hashes;
}

/** Returns the faults of a group whose rows are not the ones in its run's folder. */
export function diskFaults({ attempts }, hashes) {
  return attempts
    .filter(
      ({ rolloutId, rows }) => rows.map(hashOf).join() !== (hashes.get(rolloutId) ?? []).join(),
    )
    .map(({ rolloutId }) => `${rolloutId}: the folder has other rows`);
}

function hashOf(row) {
  return createHash("sha256").update(JSON.stringify(row)).digest("hex");
}

/**
 * Returns the faults of a group in a trainer's form: each attempt's rows must be there, adjacent and in
 * order, with their tokens and the attempt's whole reward.
 */
export function formFaults({ format, records, notes, refused }, group) {
  const formed = rowsOfForm[format](records);
  const rows = group.attempts.flatMap((attempt) => attempt.rows);
  const faults = refused === undefined ? [] : [`refused: ${refused}`];
  faults.push(
    ...notes.filter(({ action }) => action !== "cut").map(({ message }) => `left out: ${message}`),
  );
  if (formed.length !== rows.length) faults.push(`${formed.length} rows of ${rows.length}`);
  for (const [index, { rolloutId, tokens, reward }] of formed.entries()) {
    const row = rows[index];
    if (row === undefined) break;
    const least = row.lossMask.lastIndexOf(1) + 1;
    const isSame =
      rolloutId === row.rolloutId &&
      reward === row.reward &&
      tokens.length >= least &&
      tokens.every((token, place) => token === row.tokenIds[place]);
    if (!isSame) faults.push(`row ${index} of ${format} is not that of ${row.rolloutId}`);
  }
  return faults.map((fault) => `${group.groupId} for ${format}: ${fault}`);
}

/** The rows in a trainer's records, by the trainer. */
const rowsOfForm = {
  slime: (records) =>
    records.map(({ session_id: rolloutId, tokens, reward }) => ({ rolloutId, tokens, reward })),
  verl: (records) =>
    records
      .flatMap((record) => record.outputs ?? [record])
      .map((output) => ({
        rolloutId: output.extra_fields.rollout_id,
        tokens: [...output.prompt_ids, ...output.response_ids],
        reward: output.reward_score,
      })),
  skyrl: (records) =>
    records.flatMap((columns) =>
      columns.response_ids.map((ids, index) => {
        const { instance_id: group, repetition_id: repetition } = columns.trajectory_ids[index];
        return {
          rolloutId: `${group}#${repetition}`,
          tokens: [...columns.prompt_token_ids[index], ...ids],
          reward: columns.rewards[index],
        };
      }),
    ),
};

/** The trainers whose form `formFaults()` reads. */
export const formats = Object.keys(rowsOfForm);
