import type { Agent, Intent, Observed, Reading } from "../agent/agent.ts";
import type { Engine, Generation, SamplingParameters } from "../engine/engine.ts";
import type { Environment, Step, World } from "../environment/environment.ts";
import { RolloutError } from "../errors.ts";
import { withDeadline } from "../internal/deadline.ts";
import { takeTurn } from "../internal/take-turn.ts";
import type { Message, ToolDefinition } from "../message.ts";
import { opensReasoning } from "../renderer/continues.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { Task } from "../task.ts";
import type { RolloutEnd, StopReason } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import type { User } from "../user/user.ts";
import { attribute } from "./attribute.ts";
import { countEpisode } from "./count-episode.ts";
import type { Episode, TurnRecord, TurnStep } from "./episode.ts";
import type { EpisodeLimits } from "./limits.ts";
import { recordForm } from "./record-form.ts";

/** Which attempt at which task. */
export interface EpisodeAssignment {
  readonly task: Task;
  /** Unique within the run, such as `tau-retail/test/7#3`. */
  readonly rolloutId: string;
  /** Shared by the attempts that are compared with each other. */
  readonly groupId: string;
  /** 0-based place within the group. */
  readonly sampleIndex: number;
  /** Seeds the user and, where sampling asks for it, the engine. */
  readonly seed: number;
  /** 1 for the first play, 2 for the play after a failure, and so on. Default 1. */
  readonly attempt?: number;
}

/** Who plays, and how. One value serves any number of episodes at once. */
export interface EpisodeSetup {
  readonly environment: Environment;
  readonly user: User;
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly agent: Agent;
  readonly sampling: SamplingParameters;
  readonly limits: EpisodeLimits;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Told of each turn as it ends; for progress. */
  readonly onTurn?: (turn: TurnRecord) => void;
}

/** What grows while an episode is played. */
interface Play {
  readonly assignment: EpisodeAssignment;
  readonly setup: EpisodeSetup;
  readonly recorder: TrajectoryRecorder;
  readonly messages: Message[];
  readonly turns: TurnRecord[];
  tools: readonly ToolDefinition[];
  /** Whether the prompt that comes next ends inside an opened reasoning block. */
  reasoningOpened: boolean;
  formatErrorCount: number;
}

/** Why the turns ended without a failure. */
interface TurnsEnd {
  readonly outcome: "completed" | "truncated";
  readonly stopReason: StopReason;
}

/**
 * Plays one episode: opens the world, lets the policy and the environment take turns until one of
 * them or a limit ends it, scores it, and returns the record of everything.
 *
 * An outage ends the episode as `failed` with what was recorded so far and without a reward.
 *
 * @throws the signal's reason where the caller aborts: an episode that was not played to its end is
 *   no episode.
 * @throws InvariantError on our own bugs.
 */
export async function playEpisode(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  { signal }: { signal: AbortSignal },
): Promise<Episode> {
  const { task, seed } = assignment;
  const { environment, limits, now } = setup;
  const startedAtMs = now();
  await takeTurn();
  const user = setup.user.open(task, { seed });
  const play: Play = {
    assignment,
    setup,
    recorder: new TrajectoryRecorder(),
    messages: [],
    turns: [],
    tools: environment.tools,
    reasoningOpened: false,
    formatErrorCount: 0,
  };
  const end = await settle(signal, async () => {
    await using world = await environment.open(task, { user, signal });
    const turnsEnd = await playUntilDeadline(play, world, signal);
    if (turnsEnd.stopReason === "deadline") return turnsEnd;
    const score = await attribute(
      {
        code: "grader/exception",
        timeoutCode: "grader/timeout",
        what: `score task ${task.id}`,
        timeoutMs: limits.scoreTimeoutMs,
        signal,
      },
      (scoreSignal) => world.score({ signal: scoreSignal }),
    );
    return { ...turnsEnd, reward: score.reward, rewardDetails: score.details };
  });
  await takeTurn();
  const segments = play.recorder.segmentCount === 0 ? [] : play.recorder.toSegments();
  return {
    format: 1,
    rolloutId: assignment.rolloutId,
    groupId: assignment.groupId,
    taskId: task.id,
    environment: environment.name,
    split: task.split,
    taskIndex: task.index,
    sampleIndex: assignment.sampleIndex,
    seed,
    ...end,
    counts: countEpisode(play.turns, segments, play.formatErrorCount),
    userUsage: user.usage(),
    startedAtMs,
    durationMs: now() - startedAtMs,
    messages: play.messages,
    turns: play.turns,
    segments,
  };
}

/** Turns a failure that is attributed to a party into the episode's end; lets all else pass. */
async function settle(
  signal: AbortSignal,
  work: () => Promise<RolloutEnd & Pick<Episode, "rewardDetails">>,
): Promise<RolloutEnd & Pick<Episode, "rewardDetails">> {
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RolloutError)) throw error;
    return { outcome: "failed", stopReason: "failure", failure: error.toFailure() };
  }
}

async function playUntilDeadline(play: Play, world: World, signal: AbortSignal): Promise<TurnsEnd> {
  return await withDeadline<TurnsEnd>((inner) => playTurns(play, world, inner), {
    ms: play.setup.limits.episodeTimeoutMs,
    signal,
    onLate: () => ({ outcome: "truncated", stopReason: "deadline" }),
  });
}

async function playTurns(play: Play, world: World, signal: AbortSignal): Promise<TurnsEnd> {
  const { limits } = play.setup;
  await openConversation(play, world, signal);
  for (let turnIndex = 0; turnIndex < limits.maxTurns; turnIndex++) {
    const room = remainingTokens(play);
    if (room.tokens <= 0) return { outcome: "truncated", stopReason: room.stopReason };
    const end = await playTurn(play, world, { turnIndex, maxNewTokens: room.tokens, signal });
    if (end !== undefined) return end;
  }
  return { outcome: "truncated", stopReason: "max-turns" };
}

async function openConversation(play: Play, world: World, signal: AbortSignal): Promise<void> {
  const { agent, environment, limits, renderer } = play.setup;
  const firstUserText = await attribute(
    {
      code: "user/exception",
      timeoutCode: "user/timeout",
      what: `hear the user's first line of task ${play.assignment.task.id}`,
      timeoutMs: limits.userTimeoutMs,
      signal,
    },
    (beginSignal) => world.begin({ signal: beginSignal }),
  );
  const { policyText, tools } = environment;
  await takeTurn();
  const { seed, task } = play.assignment;
  const opening = agent.open({ policyText, tools, firstUserText, seed, taskIndex: task.index });
  play.messages.push(...opening.messages);
  play.tools = opening.tools;
  const prompt = await renderer.prompt({ messages: play.messages, tools: play.tools });
  play.recorder.openSegment(prompt.ids);
  play.reasoningOpened = opensReasoning(prompt.text);
}

/** How many ids the next turn may sample, and which limit says so where it may sample none. */
function remainingTokens({ setup, recorder }: Play): { tokens: number; stopReason: StopReason } {
  const { maxTokensPerTurn, maxEpisodeTokens, maxContextTokens } = setup.limits;
  const inContext = maxContextTokens - recorder.length;
  const inEpisode = maxEpisodeTokens - recorder.responseLength;
  return {
    tokens: Math.min(maxTokensPerTurn, inContext, inEpisode),
    stopReason: inContext <= inEpisode ? "context-full" : "max-tokens",
  };
}

async function playTurn(
  play: Play,
  world: World,
  turn: { turnIndex: number; maxNewTokens: number; signal: AbortSignal },
): Promise<TurnsEnd | undefined> {
  const { setup, recorder, assignment } = play;
  const { turnIndex, maxNewTokens, signal } = turn;
  await takeTurn();
  const askedAtMs = setup.now();
  const promptTokenCount = recorder.length;
  const generation = await setup.engine.generate(
    {
      promptIds: recorder.promptIds,
      sampling: seeded(setup.sampling, assignment.seed, turnIndex),
      maxNewTokens,
      stopTokenIds: setup.renderer.stopTokenIds,
      vocabularySize: setup.renderer.codec.vocabularySize,
      requestId: `${assignment.rolloutId}:${assignment.attempt ?? 1}:${turnIndex};`,
      sessionId: assignment.rolloutId,
    },
    { signal },
  );
  const answeredAtMs = setup.now();
  await takeTurn();
  recorder.appendTurn(generation);
  const { text, stopText } = await turnText(setup.renderer, generation);
  await takeTurn();
  const reading = setup.agent.read({
    text,
    stopText,
    tools: setup.environment.tools,
    turnIndex,
    finish: generation.finish.type,
    reasoningOpened: play.reasoningOpened,
  });
  const form = await recordForm(reading.form, setup.renderer.codec, {
    ids: generation.outputIds,
    text: text + stopText,
  });
  const cutOff = generation.finish.type === "length";
  const intents = cutOff && setup.limits.onLength === "end" ? [] : reading.intents;
  const acted = await performAll(play, world, intents, signal);
  const record: TurnRecord = {
    turnIndex,
    text,
    ...(reading.reasoning === "" ? {} : { reasoning: reading.reasoning }),
    finish: generation.finish.type,
    sampledTokenCount: generation.outputIds.length,
    promptTokenCount,
    ...optional("cachedTokenCount", generation.cachedTokenCount),
    attemptCounts: reading.attemptCounts,
    ...form,
    steps: acted.steps,
    ...(generation.discarded.length === 0 ? {} : { discarded: generation.discarded }),
    ...optional("interruptionCount", countInterruptions(generation)),
    engineMs: answeredAtMs - askedAtMs,
    environmentMs: setup.now() - answeredAtMs,
  };
  play.turns.push(record);
  setup.onTurn?.(record);
  if (acted.failure !== undefined) throw acted.failure;
  if (cutOff && setup.limits.onLength === "end") {
    play.messages.push(reading.message);
    return { outcome: "truncated", stopReason: "length" };
  }
  if (acted.done !== undefined) {
    play.messages.push(reading.message, ...setup.agent.observe(acted.observed));
    return { outcome: "completed", stopReason: acted.done };
  }
  await appendObservations(play, reading, acted.observed, generation);
  if (isFormatError(reading.intents) && ++play.formatErrorCount >= setup.limits.maxFormatErrors) {
    return { outcome: "truncated", stopReason: "format-errors" };
  }
  return undefined;
}

function seeded(sampling: SamplingParameters, seed: number, turnIndex: number): SamplingParameters {
  return sampling.seed === undefined
    ? sampling
    : { ...sampling, seed: (sampling.seed + seed * 1009 + turnIndex) % 2 ** 31 };
}

/** A piece of another request than the one before it was resumed after an interruption. */
function countInterruptions({ pieces }: Generation): number | undefined {
  const count = new Set(pieces.map(({ requestId }) => requestId)).size - 1;
  return count > 0 ? count : undefined;
}

/** The sampled text, and apart from it the stop token that closes it. For reading only. */
async function turnText(
  { codec, stopTokenIds }: Renderer,
  { outputIds }: Generation,
): Promise<{ readonly text: string; readonly stopText: string }> {
  const last = outputIds.at(-1);
  if (last === undefined || !stopTokenIds.includes(last)) {
    return { text: await codec.decode(outputIds), stopText: "" };
  }
  return {
    text: await codec.decode(outputIds.slice(0, -1)),
    stopText: codec.tokenOf(last) ?? "",
  };
}

interface Performed {
  readonly steps: readonly TurnStep[];
  readonly observed: readonly Observed[];
  readonly done?: NonNullable<Step["done"]>;
  readonly failure?: RolloutError;
}

/** Performs a turn's intents in order, up to the one that ends the episode or fails. */
async function performAll(
  play: Play,
  world: World,
  intents: readonly Intent[],
  signal: AbortSignal,
): Promise<Performed> {
  const steps: TurnStep[] = [];
  const observed: Observed[] = [];
  for (const intent of intents) {
    if (intent.type === "ignore") {
      const { callId, name } = intent;
      steps.push({ source: name, callId, observation: "", result: "ignored" });
      continue;
    }
    if (intent.type === "refuse") {
      const { callId, name, observation } = intent;
      steps.push({ source: name, callId, observation, result: "refused", isError: true });
      observed.push({ callId, name, from: "tool", text: observation });
      continue;
    }
    try {
      const step = await perform(play, world, intent.action, signal);
      const { source, observation, from } = step;
      const { callId } = intent;
      const isError = step.isError === true ? { isError: true } : {};
      const repaired = intent.repaired === true ? ({ repaired: true } as const) : {};
      steps.push({ source, callId, observation, result: "acted", ...isError, ...repaired });
      observed.push({ callId, name: source, from, text: observation });
      if (step.done !== undefined) return { steps, observed, done: step.done };
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      return { steps, observed, failure: error };
    }
  }
  return { steps, observed };
}

async function perform(
  play: Play,
  world: World,
  action: Extract<Intent, { type: "act" }>["action"],
  signal: AbortSignal,
): Promise<Step> {
  const { limits } = play.setup;
  const toUser = action.type === "say";
  return await attribute(
    {
      code: toUser ? "user/exception" : "environment/exception",
      timeoutCode: toUser ? "user/timeout" : "environment/timeout",
      what: toUser
        ? `hear the user's reply in task ${play.assignment.task.id}`
        : `call tool ${action.name} in task ${play.assignment.task.id}`,
      timeoutMs: toUser ? limits.userTimeoutMs : limits.toolTimeoutMs,
      signal,
    },
    (stepSignal) => world.step(action, { signal: stepSignal }),
  );
}

/** A turn that tried to call tools and did not get one call right. */
function isFormatError(intents: readonly Intent[]): boolean {
  return intents
    .filter((intent) => intent.type !== "ignore")
    .every((intent) => intent.type === "refuse" && intent.status !== "extra-call");
}

async function appendObservations(
  play: Play,
  reading: Reading,
  observed: readonly Observed[],
  generation: Generation,
): Promise<void> {
  const { agent, renderer } = play.setup;
  await takeTurn();
  const environment = agent.observe(observed);
  const turn = {
    history: play.messages,
    assistant: reading.message,
    environment,
    tools: play.tools,
  };
  const rewritten = await renderer.rerender?.(turn);
  if (rewritten === undefined) {
    const lastSampledId = generation.outputIds.at(-1);
    const delta = await renderer.delta({ ...turn, lastSampledId });
    play.recorder.appendDelta(delta);
    play.reasoningOpened = opensReasoning(delta.text);
  } else {
    play.recorder.openSegment(rewritten.ids);
    play.reasoningOpened = opensReasoning(rewritten.text);
  }
  play.messages.push(reading.message, ...environment);
}

function optional<Key extends string, Value>(
  key: Key,
  value: Value | undefined,
): { [K in Key]?: Value } {
  return value === undefined ? {} : ({ [key]: value } as { [K in Key]: Value });
}
