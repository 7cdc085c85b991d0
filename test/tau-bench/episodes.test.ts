import path from "node:path";
import { describe, expect, test } from "vitest";
import type {
  PlayedEpisode,
  TauEnvironment,
  TauTaskData,
} from "../../environments/tau-bench/index.ts";
import {
  createTauAirline,
  createTauRetail,
  loadTauBenchBundle,
  playActions,
  readTauTask,
} from "../../environments/tau-bench/index.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PlainJson, PyDict } from "../../packages/python-values/src/value.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import type { Task } from "../../src/task.ts";
import { sharedData } from "../../src/testing/shared-data.fixture.ts";
import type { RecordedAction, RecordedObservation } from "../support/tau-bench-golden.ts";
import {
  asRecorded,
  openInventedTau,
  readGolden,
  readOwnGolden,
  recordedObservation,
} from "../support/tau-bench-golden.ts";

const shared = sharedData();
const signal = new AbortController().signal;

interface RecordedRewardInfo {
  readonly reward: number;
  readonly info: Readonly<Record<string, unknown>>;
  readonly action_names: readonly string[];
}

interface RecordedStep extends RecordedAction {
  readonly reward?: number;
  readonly done?: boolean;
  readonly source?: string;
  readonly reward_info?: RecordedRewardInfo;
  readonly raises?: { readonly type: string; readonly message: string };
}

interface RecordedEpisode {
  readonly id: number;
  readonly kind: string;
  readonly env: "retail" | "airline";
  readonly split: string;
  readonly task_index: number | null;
  readonly task?: PlainJson;
  readonly user_script: readonly string[];
  readonly reset_observation: string;
  readonly steps: readonly RecordedStep[];
  readonly agent_data_hash_at_reward: readonly string[];
  readonly final_env_data_hash: string;
}

interface RecordedRun {
  readonly task_id: number;
  readonly trial: number;
  readonly reward: number;
  /** `null` where the run was never scored. */
  readonly reward_info: Readonly<Record<string, unknown>> | null;
  readonly events: readonly RecordedEvent[];
}

type RecordedToolEvent = RecordedObservation & {
  readonly tool: string;
  readonly arguments: string;
};

interface RecordedUserEvent {
  readonly user: string;
}

type RecordedEvent = RecordedUserEvent | { readonly respond: string } | RecordedToolEvent;

/** Plays the recorded episodes, and expects the recorded observations, rewards and hashes. */
async function expectRecorded(
  environment: TauEnvironment,
  episodes: readonly RecordedEpisode[],
): Promise<void> {
  for (const episode of episodes) {
    const place = `episode ${episode.id} (${episode.kind})`;
    const task = taskOf(environment, episode);
    const end = episode.steps.findIndex(({ done }) => done === true);
    const recorded = end === -1 ? episode.steps : episode.steps.slice(0, end + 1);
    const userReplies = episode.user_script;
    const played = await playActions(
      environment,
      { task, userReplies, actions: recorded.map(asAction) },
      { signal },
    );
    expect(played.resetObservation, place).toBe(episode.reset_observation);
    if (!recorded.some(({ raises }) => raises !== undefined)) {
      expect(played.outcome, place).toBe(end === -1 ? "truncated" : "completed");
    }
    expectSteps(played, recorded, place);
    if (end !== -1) {
      await expectHashes(environment, task, episode, place);
      const rest = episode.steps.slice(end + 1);
      if (rest.length > 0) {
        const actions = episode.steps.map(asAction);
        await expect(
          playActions(environment, { task, userReplies, actions }, { signal }),
        ).rejects.toThrow(
          `Cannot play actions[${end + 1}]: the episode was done after actions[${end}]`,
        );
      }
    }
  }
}

describe("τ-bench's episodes on invented data", () => {
  test.each(["retail", "airline"] as const)(
    "%s: observations, sources, rewards and hashes are those of the Python original",
    async (name) => {
      await using tau = await openInventedTau();
      const rows = readOwnGolden<Omit<RecordedEpisode, "id" | "split" | "task_index">>("episodes");
      const episodes = rows
        .map((row, id) => ({ ...row, id, split: "custom", task_index: null }))
        .filter(({ env }) => env === name);
      expect(episodes).toHaveLength(128);
      await expectRecorded(tau[name], episodes);
    },
  );
});

describe.skipIf(shared === null)(
  "τ-bench episodes against recordings of the Python original",
  () => {
    const environments = loadEnvironments(path.join(shared ?? "", "data/tau-bench"));

    test.each(["retail", "airline"] as const)(
      "%s: observations, sources, rewards and hashes are as recorded",
      async (name) => {
        const environment = (await environments)[name];
        const episodes = readGolden<RecordedEpisode>(shared ?? "", "episodes").filter(
          ({ env }) => env === name,
        );
        await expectRecorded(environment, episodes);
        expect(episodes.length).toBeGreaterThan(100);
      },
      120_000,
    );

    test("airline: the 200 published gpt-4o runs observe and earn the same as before", async () => {
      const { airline } = await environments;
      for (const run of readGolden<RecordedRun>(shared ?? "", "recorded-gpt4o-airline")) {
        const place = `task ${run.task_id}, trial ${run.trial}`;
        const actions = run.events.flatMap((event) => (isUserEvent(event) ? [] : [event]));
        const played = await playActions(
          airline,
          {
            task: airline.task("test", run.task_id),
            userReplies: run.events.flatMap((event) => (isUserEvent(event) ? [event.user] : [])),
            actions: actions.map((event) =>
              isToolEvent(event)
                ? { name: event.tool, argumentsText: event.arguments }
                : { name: "respond", arguments: new Map([["content", event.respond]]) },
            ),
          },
          { signal },
        );
        for (const [index, event] of actions.entries()) {
          if (!isToolEvent(event)) continue;
          const step = played.steps[index];
          expect(asRecorded(step?.observation ?? null, event), `${place}, action ${index}`).toEqual(
            recordedObservation(event),
          );
        }
        expect(played.reward, place).toBe(run.reward);
        // The published hashes are those of the data of their time.
        const { gt_data_hash: _published, ...judged } = run.reward_info ?? {};
        if (played.rewardInfo !== null) {
          expect(played.rewardInfo["info"], place).toMatchObject(judged);
        }
      }
    });
  },
);

function isUserEvent(event: RecordedEvent): event is RecordedUserEvent {
  return "user" in event;
}

function isToolEvent(event: RecordedEvent): event is RecordedToolEvent {
  return "tool" in event;
}

async function loadEnvironments(
  folder: string,
): Promise<Record<"retail" | "airline", TauEnvironment>> {
  if (shared === null) return {} as never;
  const bundle = await loadTauBenchBundle(folder);
  return { retail: createTauRetail({ bundle }), airline: createTauAirline({ bundle }) };
}

function taskOf(environment: TauEnvironment, episode: RecordedEpisode): Task<TauTaskData> {
  if (episode.task_index !== null) return environment.task(episode.split, episode.task_index);
  const place = { environment: environment.name, split: "custom", index: episode.id };
  return readTauTask(toPyValue(episode.task ?? null), place, `episode ${episode.id}`);
}

function asAction({ name, kwargs_json }: RecordedAction) {
  return { name, argumentsText: kwargs_json };
}

function expectSteps(
  played: PlayedEpisode,
  recorded: readonly RecordedStep[],
  place: string,
): void {
  for (const [index, step] of recorded.entries()) {
    const got = played.steps[index];
    const at = `${place}, step ${index}: ${step.name} ${step.kwargs_json}`;
    if (step.raises !== undefined) {
      expectInPlaceOfRaise(got, played, step.raises, at);
      continue;
    }
    expect(asRecorded(got?.observation ?? null, step), at).toEqual(recordedObservation(step));
    expect([got?.reward, got?.done, got?.source], at).toEqual([
      step.reward,
      step.done,
      step.source,
    ]);
    if (step.reward_info !== undefined) expectRewardInfo(played, step.reward_info, at);
  }
}

/** The original raises out of these steps, and its benchmark run then counts the episode as 0. */
function expectInPlaceOfRaise(
  got: PlayedEpisode["steps"][number] | undefined,
  played: PlayedEpisode,
  raises: NonNullable<RecordedStep["raises"]>,
  at: string,
): void {
  if (raises.type === "AttributeError") {
    expect(got, at).toMatchObject({ reward: 0, done: true, source: "user" });
    expect(played.rewardInfo, at).toEqual({ error: raises.message, exception: raises.type });
  } else if (got?.source === "respond") {
    expect(got, at).toMatchObject({ observation: `Error: ${raises.message}`, done: false });
  }
}

function expectRewardInfo(played: PlayedEpisode, recorded: RecordedRewardInfo, at: string): void {
  const actions = played.rewardInfo?.["actions"] as readonly { readonly name: string }[];
  expect(
    {
      reward: played.rewardInfo?.["reward"],
      info: played.rewardInfo?.["info"],
      action_names: actions.map(({ name }) => name),
    },
    at,
  ).toEqual(recorded);
}

/** The agent's database at the end, and the wanted one, which the original leaves in the environment. */
async function expectHashes(
  environment: TauEnvironment,
  task: Task<TauTaskData>,
  episode: RecordedEpisode,
  place: string,
): Promise<void> {
  const end = episode.steps.findIndex(({ done }) => done === true);
  const toolbox = environment.openTools();
  for (const { name, kwargs_json } of episode.steps.slice(0, end + 1)) {
    toolbox.call({ name, arguments: parsePythonJson(kwargs_json) as PyDict });
  }
  expect(await toolbox.hash(), place).toBe(episode.agent_data_hash_at_reward[0]);
  const wanted = environment.openTools();
  for (const { name, kwargs } of task.data.actions) {
    if (name !== "transfer_to_human_agents") wanted.call({ name, arguments: kwargs });
  }
  expect(await wanted.hash(), place).toBe(episode.final_env_data_hash);
}
