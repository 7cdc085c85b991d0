import path from "node:path";
import { RolloutError } from "../errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { JsonlJournal } from "../run/disk/jsonl-journal.ts";
import { readJsonl } from "../run/disk/read-jsonl.ts";
import { writeJsonAtomically } from "../run/disk/write-atomically.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { ChatModel } from "../user/chat/chat-model.ts";
import { UsageMeter, findFault } from "./fault-judge.ts";
import type { FaultParty, FaultType, JudgedEpisode } from "./fault.ts";
import { judgeContext } from "./judge-context.ts";
import { numberedEpisodes, numberTrials, type TrialNumbers } from "./number-trials.ts";
import type { StoredRun } from "./read-run.ts";
import type { TaskInfo } from "./tau-bench-results.ts";

/** The files of an error identification, in the run's folder. */
export const errorFiles = {
  /** One `JudgedEpisode` per line. */
  judged: "errors.jsonl",
  summary: "errors.json",
  /** The result in the format of τ-bench's own script. */
  tauBench: "errors.tau-bench.json",
} as const;

/** Options of `identifyErrors()`. */
interface IdentifyOptions {
  readonly judge: ChatModel;
  /** Returns the facts about a task that the judge sees. */
  readonly taskInfo: TaskInfo;
  /** The number of episodes that are judged at the same time. At least 1. */
  readonly concurrency: number;
  /** Maximum number of episodes to judge, in the order of tasks and trials. */
  readonly maxCount: number;
  readonly signal: AbortSignal;
  /** Removes secrets from the verdicts before they are written and reported. */
  readonly redactor?: Redactor;
  readonly onJudged?: (judged: JudgedEpisode) => void;
}

/** The result of an error identification. JSON-able. */
export interface ErrorSummary {
  readonly format: 1;
  readonly judge: string;
  /** The number of unsuccessful episodes to judge. */
  readonly episodeCount: number;
  readonly judgedCount: number;
  readonly byParty: Readonly<Partial<Record<FaultParty, number>>>;
  /** The agent's errors by type. */
  readonly byType: Readonly<Partial<Record<FaultType, number>>>;
  /** The numbers of episodes that could not be judged, by error code. */
  readonly failures: Readonly<Partial<Record<string, number>>>;
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** The cost in US dollars. Absent if no price is known. */
  readonly costUsd?: number;
}

/**
 * The highest reward that counts as no success. **Source:** tau-bench,
 * auto_error_identification.py.
 */
const failedReward = 1e-3;

/**
 * Asks a judge which party caused each unsuccessful episode, and which error the agent made. Writes each verdict
 * immediately. A second call with the same judge continues, and asks again only if the judge failed. Verdicts are found
 * by the judge and the episode's id, because an episode's trial number can change while the run continues. Verdicts of
 * other judges stay in the file and are not counted. Episodes without a score already have their failure and are not
 * judged.
 * @throws the signal's reason if it is aborted.
 */
export async function identifyErrors(
  run: StoredRun,
  options: IdentifyOptions,
): Promise<ErrorSummary> {
  const { redactor, judge: model } = options;
  const file = path.join(run.dir, errorFiles.judged);
  const judge = redactor?.clean(model.name) ?? model.name;
  const trials = await numberTrials(run);
  const hashes = await unsuccessful(run, { trials, maxCount: options.maxCount });
  const known = await readJudged(file, { judge, hashes });
  const waiting = new Set([...hashes.keys()].filter((id) => known.get(id)?.fault === undefined));
  {
    await using journal = await JsonlJournal.open(file);
    await judgeAll(run, { trials, waiting }, options, async (verdict) => {
      // Later calls find the verdict by the episode's ids.
      const { rolloutId, taskId, episodeHash } = verdict;
      const said = redactor?.clean(verdict) ?? verdict;
      const judged = { ...said, rolloutId, taskId, judge, episodeHash };
      await journal.append(judged);
      known.set(judged.rolloutId, judged);
      options.onJudged?.(judged);
    });
  }
  const judged = [...hashes.keys()].flatMap((id) => known.get(id) ?? []);
  const summary = summarise(judged, hashes.size, judge);
  await writeJsonAtomically(path.join(run.dir, errorFiles.summary), summary);
  await writeJsonAtomically(path.join(run.dir, errorFiles.tauBench), toTauBench(judged));
  return summary;
}

/** Reads this judge's earlier verdicts on these episodes, by episode id. */
async function readJudged(
  file: string,
  { judge, hashes }: { readonly judge: string; readonly hashes: ReadonlyMap<string, string> },
): Promise<Map<string, JudgedEpisode>> {
  const known = new Map<string, JudgedEpisode>();
  for await (const value of readJsonl(file)) {
    const judged = value as JudgedEpisode;
    const { rolloutId, episodeHash } = judged;
    if (episodeHash === hashes.get(rolloutId) && judged.judge === judge)
      known.set(rolloutId, judged);
  }
  return known;
}

/** Returns the episodes to judge, by task and trial, with the hashes of their rows. */
async function unsuccessful(
  run: StoredRun,
  { trials, maxCount }: { readonly trials: TrialNumbers; readonly maxCount: number },
): Promise<ReadonlyMap<string, string>> {
  type Found = Pick<JudgedEpisode, "rolloutId" | "taskIndex">;
  const found: (Found & { readonly trial: number; readonly hash: string })[] = [];
  for await (const { row, trial } of numberedEpisodes(run, trials)) {
    const { rolloutId, taskIndex, reward } = row;
    if (reward === undefined || reward > failedReward) continue;
    found.push({ rolloutId, taskIndex, trial, hash: hashRow(row) });
  }
  found.sort((a, b) => a.taskIndex - b.taskIndex || a.trial - b.trial);
  return new Map(found.slice(0, maxCount).map(({ rolloutId, hash }) => [rolloutId, hash]));
}

/** The judge's verdict about an episode. */
type Verdict = Omit<JudgedEpisode, "judge">;

/** Judges episodes. Reads conversations one by one, so that memory has only those being judged. */
async function judgeAll(
  run: StoredRun,
  { trials, waiting }: { readonly trials: TrialNumbers; readonly waiting: ReadonlySet<string> },
  options: IdentifyOptions,
  keep: (verdict: Verdict) => Promise<void>,
): Promise<void> {
  const episodes = numberedEpisodes(run, trials);
  const work = async () => {
    for (;;) {
      options.signal.throwIfAborted();
      const next = await episodes.next();
      if (next.done === true) return;
      if (waiting.has(next.value.row.rolloutId))
        await keep(await judgeEpisode(next.value.row, options));
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: options.concurrency }, work));
  await episodes.return(undefined);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function judgeEpisode(
  row: EpisodeRow,
  { judge, taskInfo, signal }: IdentifyOptions,
): Promise<Verdict> {
  const { rolloutId, taskId, taskIndex, reward = 0 } = row;
  const meter = new UsageMeter();
  const episodeHash = hashRow(row);
  const place = { rolloutId, taskId, taskIndex, reward, episodeHash };
  try {
    const context = judgeContext(row, taskInfo(row));
    const fault = await findFault(context, { judge, usage: meter, signal });
    return { ...place, fault, usage: meter.usage };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RolloutError)) throw error;
    return { ...place, failure: error.toFailure(), usage: meter.usage };
  }
}

function summarise(
  judged: readonly JudgedEpisode[],
  episodeCount: number,
  judge: string,
): ErrorSummary {
  const byParty: Partial<Record<FaultParty, number>> = {};
  const byType: Partial<Record<FaultType, number>> = {};
  const failures: Partial<Record<string, number>> = {};
  const total = { inputTokenCount: 0, outputTokenCount: 0 };
  let costUsd: number | undefined;
  for (const { fault, failure, usage } of judged) {
    if (fault !== undefined) byParty[fault.party] = (byParty[fault.party] ?? 0) + 1;
    if (fault?.type !== undefined) byType[fault.type] = (byType[fault.type] ?? 0) + 1;
    if (failure !== undefined) failures[failure.code] = (failures[failure.code] ?? 0) + 1;
    total.inputTokenCount += usage.inputTokenCount;
    total.outputTokenCount += usage.outputTokenCount;
    if (usage.costUsd !== undefined) costUsd = (costUsd ?? 0) + usage.costUsd;
  }
  return {
    format: 1,
    judge,
    episodeCount,
    judgedCount: judged.filter(({ fault }) => fault !== undefined).length,
    byParty,
    byType,
    failures,
    ...total,
    ...(costUsd !== undefined && { costUsd }),
  };
}

/**
 * Converts verdicts to the format of τ-bench's script.
 * **Source:** sierra-research/tau-bench, auto_error_identification.py (its output file).
 */
function toTauBench(judged: readonly JudgedEpisode[]): object {
  return {
    fault_assignment_analysis: judged.flatMap(({ taskIndex, fault }) =>
      fault === undefined
        ? []
        : [{ task_id: taskIndex, author: fault.party, description: fault.reason }],
    ),
    fault_type_analysis: judged.flatMap(({ taskIndex, fault }) =>
      fault?.type === undefined
        ? []
        : [{ task_id: taskIndex, fault_type: fault.type, description: fault.typeReason ?? "" }],
    ),
  };
}
