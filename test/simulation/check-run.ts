import path from "node:path";
import type { Failure } from "../../src/errors.ts";
import type { EpisodeRow } from "../../src/run/folder/run-folder.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { checkRow, drawnIn } from "./check-row.ts";
import type { Scenario } from "./scenario.ts";
import type { SimulatedRun, SimulatedRunOptions } from "./simulated-run.ts";
import { samplingSeed } from "./simulated-setup.ts";
import type { SampledTurn, SimulatedWorld } from "./simulated-world.ts";

/** A run's files on the disk. */
export interface FinishedRun {
  readonly options: SimulatedRunOptions;
  readonly episodes: readonly EpisodeRow[];
  readonly samples: readonly Sample[];
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

/** Reads a run's files. */
export function readFinished(world: SimulatedWorld, options: SimulatedRunOptions): FinishedRun {
  const linesOf = (name: string): readonly unknown[] =>
    world.disk
      .text(path.join(options.dir, name))
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as unknown);
  return {
    options,
    episodes: linesOf("episodes.jsonl") as readonly EpisodeRow[],
    samples: linesOf("samples.jsonl") as readonly Sample[],
    events: linesOf("events.jsonl") as FinishedRun["events"],
  };
}

/** Checks a finished run. */
export function checkRun(
  world: SimulatedWorld,
  scenario: Scenario,
  { run, found }: { readonly run: SimulatedRun; readonly found: FinishedRun },
): readonly string[] {
  const { episodes, options, samples } = found;
  const { begun, seed } = options;
  const wrong = [
    ...checkGroups(scenario, run, found),
    ...checkEnds(found),
    ...checkDropped(scenario, run, found),
    ...checkBlame(found),
  ];
  const byId = new Map(episodes.map((episode) => [episode.rolloutId, episode]));
  for (const sample of samples) {
    const episode = byId.get(sample.rolloutId);
    if (episode === undefined) {
      wrong.push(`${sample.rolloutId} has a row, but is not an episode`);
      continue;
    }
    const { groupIndex = 0, sampleIndex } = episode;
    const own = seed + groupIndex * begun + sampleIndex;
    const seedOf = (turnIndex: number): number => (samplingSeed + own * 1009 + turnIndex) % 2 ** 31;
    const sampled = world.sampled.get(sample.rolloutId) ?? [];
    wrong.push(...checkRow(sample, { episode, sampled, seedOf }));
  }
  return wrong;
}

/** Each group is complete, and was delivered or was omitted for a reported reason. */
function checkGroups(
  { keep, redeliver, staleness }: Scenario,
  run: SimulatedRun,
  { episodes, events, options, samples }: FinishedRun,
): readonly string[] {
  const { begun, size, wanted } = options;
  const wrong: string[] = [];
  const groupCount = wanted.type === "fork" ? 1 : wanted.count;
  const leftOut = new Map(
    events
      .filter(({ type }) => type === "group-left-out")
      .map(({ groupIndex, reason }) => [groupIndex, reason]),
  );
  for (let groupIndex = 0; groupIndex < groupCount; groupIndex++) {
    const inGroup = episodes.filter((episode) => episode.groupIndex === groupIndex);
    const scored = inGroup.filter(({ reward }) => reward !== undefined);
    if (scored.length < size && inGroup.length < begun) {
      wrong.push(`group ${groupIndex} has ${inGroup.length} of ${begun} attempts`);
    }
    const reason = leftOut.get(groupIndex);
    const mayBeLeftOut = keep !== undefined || staleness?.beyond === "drop";
    if (reason !== undefined && !mayBeLeftOut) wrong.push(`group ${groupIndex} is left out`);
    if (redeliver && reason === undefined && !run.trainer.handedOut.has(groupIndex)) {
      wrong.push(`group ${groupIndex} was never handed out`);
    }
  }
  for (const episode of [...run.trainer.handedOut.values()].flatMap((group) => group.episodes)) {
    if (episode.outcome === "failed") continue;
    const rows = samples.filter(({ rolloutId }) => rolloutId === episode.rolloutId);
    const idsOf = (parts: readonly { readonly tokenIds: readonly number[] }[]): string =>
      parts.map(({ tokenIds }) => tokenIds.join()).join(";");
    if (idsOf(rows) === idsOf(episode.segments)) continue;
    wrong.push(`${episode.rolloutId} was handed out with other ids than its rows have`);
  }
  return wrong;
}

/** Each episode is there once, in its place, with as many rows as it ought to have. */
function checkEnds({ episodes, options, samples }: FinishedRun): readonly string[] {
  const { begun, size, wanted } = options;
  const wrong: string[] = [];
  const ids = episodes.map(({ rolloutId }) => rolloutId);
  if (new Set(ids).size < ids.length) wrong.push(`an episode is there twice: ${ids.join()}`);
  const placeOf = ({ groupIndex = 0, sampleIndex }: EpisodeRow): number =>
    groupIndex * begun + sampleIndex;
  const places = new Map(episodes.map((episode) => [episode.rolloutId, placeOf(episode)]));
  for (const { groupId, groupIndex = 0, rolloutId, sampleIndex } of episodes) {
    const group =
      wanted.type === "fork"
        ? wanted.groupId
        : wanted.source === "feed"
          ? groupId
          : `tally/test/${groupIndex}`;
    if (rolloutId !== `${group}#${sampleIndex}`) wrong.push(`${rolloutId} is in group ${group}`);
  }
  if (begun === size && wanted.type === "tasks" && ids.length !== wanted.count * size) {
    wrong.push(`episodes are ${ids.toSorted().join(", ")}`);
  }
  const rowPlaces = samples.map(({ rolloutId }) => places.get(rolloutId) ?? -1);
  if (rowPlaces.some((place, index) => place < (rowPlaces[index - 1] ?? 0))) {
    wrong.push("rows are not in their order");
  }
  for (const { outcome, reward, rolloutId, turns, forkedFrom } of episodes) {
    const rowCount = samples.filter((sample) => sample.rolloutId === rolloutId).length;
    const hasOwn = turns.length > (forkedFrom?.turnIndex ?? 0);
    if (outcome === "aborted") wrong.push(`${rolloutId} is aborted in a run that is finished`);
    if (outcome !== "failed" && rowCount !== (hasOwn ? 1 : rowCount)) {
      wrong.push(`${rolloutId} has ${rowCount} rows`);
    }
    if (rowCount > 1) wrong.push(`${rolloutId} has ${rowCount} rows`);
    if (outcome === "failed" && reward !== undefined)
      wrong.push(`${rolloutId} failed, and is scored`);
  }
  return wrong;
}

/** Only parts of the simulated world fail, and never the program that plays it. */
function checkBlame({ events }: FinishedRun): readonly string[] {
  return events
    .map(({ failure, rolloutId }) => ({ failure: failure as Failure | undefined, rolloutId }))
    .filter(({ failure }) => failure?.party === "internal" || failure?.party === "grader")
    .map(({ failure, rolloutId }) => `${String(rolloutId)} failed by ${failure!.message}`);
}

/** No recorded attempt is discarded while all parts behave as before. */
function checkDropped(
  { agent }: Scenario,
  { tornPlays }: SimulatedRun,
  { events }: FinishedRun,
): readonly string[] {
  if (agent === "fickle") return [];
  return events
    .filter(({ type }) => type === "recording-dropped")
    .filter(({ attempt, rolloutId }) => !tornPlays.has(`${String(rolloutId)}:${String(attempt)}`))
    .map(
      ({ message, rolloutId }) =>
        `${String(rolloutId)} started again from its first turn: ${String(message)}`,
    );
}

/**
 * Checks that branches and forks start with the ids of their original, train none of them, and
 * request none of them; a drawn number is only in rows that share the place where it was drawn.
 */
export function checkBranches(
  world: SimulatedWorld,
  { agent }: Scenario,
  runs: readonly FinishedRun[],
): readonly string[] {
  const wrong: string[] = [];
  const rows = new Map<string, Sample>();
  const episodes = new Map<string, EpisodeRow>();
  for (const { episodes: ended, samples } of runs) {
    for (const sample of samples) {
      if (rows.has(sample.rolloutId)) wrong.push(`${sample.rolloutId} is in two places`);
      rows.set(sample.rolloutId, sample);
    }
    for (const episode of ended) episodes.set(episode.rolloutId, episode);
  }
  for (const [rolloutId, { forkedFrom, lossMask, tokenIds, turns }] of rows) {
    if (forkedFrom === undefined) {
      if (turns.some(({ turnIndex }, index) => turnIndex !== index)) {
        wrong.push(`${rolloutId} trains the turns ${turns.map((turn) => turn.turnIndex).join()}`);
      }
      continue;
    }
    const { rolloutId: trunkId, turnIndex } = forkedFrom;
    const trunk = rows.get(trunkId);
    const place = `${rolloutId} branches from ${trunkId} at turn ${turnIndex}`;
    if (trunk === undefined) {
      wrong.push(`${place}, which has no row`);
      continue;
    }
    if (trunk.reward === undefined) wrong.push(`${place}, which nothing scored`);
    const [first] = turns;
    const parted = first?.start ?? tokenIds.length;
    if (turns.some((turn, index) => turn.turnIndex !== turnIndex + index)) {
      wrong.push(`${place}, and trains the turns ${turns.map((turn) => turn.turnIndex).join()}`);
    }
    const expected = episodes.get(trunkId)!.turns[turnIndex]?.promptTokenCount;
    // Before its first turn no sampled tokens are shared: a fickle agent may open differently.
    if (turnIndex === 0 && agent === "fickle") continue;
    if (expected !== parted) wrong.push(`${place} at ${parted}, and there it is at ${expected}`);
    if (tokenIds.slice(0, parted).some((id, index) => id !== trunk.tokenIds[index])) {
      wrong.push(`${place}, and does not begin as that does`);
    }
    if (lossMask.slice(0, parted).some((bit) => bit === 1)) wrong.push(`${place}, and trains it`);
    const sampledOf = (id: string): readonly SampledTurn[] =>
      (world.sampled.get(id) ?? []).filter(({ attempt }) => attempt === episodes.get(id)!.attempt);
    // Before that a worker may have played it as no branch, for a start that was killed and knew no trunk.
    const trunkEnd = Math.max(0, ...sampledOf(trunkId).map(({ number }) => number));
    const again = sampledOf(rolloutId).some(
      ({ number, promptLength }) => number > trunkEnd && promptLength < parted,
    );
    if (again) wrong.push(`${place}, and what they share was sampled again`);
    if (episodes.get(rolloutId)!.seed !== episodes.get(trunkId)!.seed) {
      wrong.push(`${place}, and has another user`);
    }
  }
  return [...wrong, ...checkDrawn(rows)];
}

function checkDrawn(rows: ReadonlyMap<string, Sample>): readonly string[] {
  const rootOf = (rolloutId: string): string => {
    const from = rows.get(rolloutId)?.forkedFrom?.rolloutId;
    return from === undefined ? rolloutId : rootOf(from);
  };
  const roots = new Map<number, string>();
  const wrong: string[] = [];
  for (const [rolloutId, sample] of rows) {
    for (const drawn of drawnIn(sample)) {
      const root = rootOf(rolloutId);
      const other = roots.get(drawn);
      // In an undisturbed run, all draw the same.
      if (drawn > 0 && other !== undefined && other !== root) {
        wrong.push(`${rolloutId} has what was drawn for ${other}`);
      }
      roots.set(drawn, root);
    }
  }
  return wrong;
}
