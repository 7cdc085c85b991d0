import type { Intent, Observed, Reading } from "../../agent/agent.ts";
import type { Action, AgentTurn, Step, World } from "../../environment/environment.ts";
import { RolloutError, describeError } from "../../errors.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { checkStep, copyStep } from "../check/check-foreign.ts";
import type { TurnRecord, TurnStep } from "../episode.ts";
import { askWorld, isTimeOver, type Play } from "../play.ts";

/** The result of performing a turn's intents. */
export interface Performed {
  readonly observed: readonly Observed[];
  /** The reason why the world is done. Absent if the episode continues. */
  readonly done?: NonNullable<Step["done"]>;
  /** Present if the episode's time was over before all intents were performed. */
  readonly isLate?: true;
  readonly failure?: RolloutError;
}

/**
 * Performs a turn's intents in order, and adds each result to `steps`. Stops after the first intent that ends the
 * episode or fails.
 */
export async function performIntents(
  play: Play,
  world: World,
  turn: {
    readonly reading: Reading;
    readonly finish: "stop" | "length";
    /** The tokens of the turn. Absent if the engine reports none. */
    readonly usage?: NonNullable<AgentTurn["usage"]>;
    readonly steps: TurnStep[];
    /** Adds members to the turn's record. */
    readonly note: (more: Pick<TurnRecord, "parseMs" | "userMs" | "environmentMs">) => void;
    /** The episode's time after sampling. */
    readonly sampledAtMs: number;
  },
): Promise<Performed> {
  const { reading, finish, usage, steps, note, sampledAtMs } = turn;
  const { intents, message } = reading;
  const actions = intents.filter(isAct);
  const whole: AgentTurn = { message, finish, actions, ...(usage && { usage }) };
  const spent = { parseMs: 0, userMs: 0, environmentMs: 0 };
  const observed: Observed[] = [];
  let isFirst = true;
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
    if (!isFirst && isTimeOver(play)) return { observed, isLate: true };
    const startedAtMs = play.inputs.now();
    if (isFirst) spent.parseMs = startedAtMs - sampledAtMs;
    isFirst = false;
    const part = intent.action.type === "say" ? "userMs" : "environmentMs";
    try {
      // Arguments that cannot be recorded must not be performed.
      const written = writeArguments(play, intent);
      const step = await perform(play, world, intent.action, whole);
      steps.push(toTurnStep(intent, written, step));
      const { source: name, from, observation: text } = step;
      observed.push({ callId: intent.callId, name, from, text });
      if (step.done !== undefined) return { observed, done: step.done };
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      return { observed, failure: error };
    } finally {
      spent[part] += play.inputs.now() - startedAtMs;
      note(spent);
    }
  }
  return { observed };
}

type Act = Extract<Intent, { type: "act" }>;

function isAct(intent: Intent): intent is Act {
  return intent.type === "act";
}

/**
 * Returns a call's arguments as JSON, or `undefined` for words.
 *
 * @throws RolloutError `agent/bad-reading` if the arguments are not Python values.
 */
function writeArguments({ setup }: Play, { action }: Act): string | undefined {
  if (action.type !== "call") return undefined;
  try {
    return stringifyPythonJson(action.arguments);
  } catch (cause) {
    throw new RolloutError(
      "agent/bad-reading",
      `Cannot use the answer of agent.read() of ${setup.agent.strategy}: the arguments of ` +
        `${action.name} cannot be written as JSON (${describeError(cause)}), expected plain values`,
      { cause },
    );
  }
}

function toTurnStep(
  { callId, repaired }: Act,
  written: string | undefined,
  { source, observation, isError }: Step,
): TurnStep {
  return {
    source,
    callId,
    ...(written !== undefined && { arguments: written }),
    observation,
    result: "acted",
    ...(isError === true && { isError }),
    ...(repaired === true && { repaired }),
  };
}

function perform(play: Play, world: World, action: Action, turn: AgentTurn): Promise<Step> {
  const { assignment, redactor, setup } = play;
  const { limits, environment } = setup;
  const { id } = assignment.task;
  const isSaid = action.type === "say";
  const place = isSaid
    ? `world.step() for words to the user in task ${id} of ${environment.name}`
    : `world.step() for tool ${action.name} in task ${id} of ${environment.name}`;
  // A copy of a step with getters. JSON does not see getters, so the hash and the redactor miss them.
  let copied: Step | undefined;
  const answered = askWorld(
    play,
    {
      party: "environment",
      what: isSaid
        ? `pass on what the agent said in task ${id}`
        : `call tool ${action.name} in task ${id}`,
      timeoutMs: isSaid ? limits.userTimeoutMs : limits.toolTimeoutMs,
    },
    async (signal) => {
      const step = checkStep(await world.step(action, { signal, turn }), place);
      if (environment.repeatable !== true) return copyStep(step);
      if (Object.getPrototypeOf(step) !== Object.prototype) copied = copyStep(step);
      return step;
    },
    isSaid ? "step say" : `step ${action.name}`,
  );
  return answered.then((answer) => (copied === undefined ? answer : redactor.without(copied)));
}
