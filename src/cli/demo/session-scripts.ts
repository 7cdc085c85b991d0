import type { TauTaskData } from "../../../environments/tau-bench/index.ts";
import {
  demonstrate,
  createSeededRandom,
  type StorefrontData,
} from "../../../environments/storefront/index.ts";
import type { Environment } from "../../environment/environment.ts";
import type { PlannedEpisode } from "../../run/schedule/plan-run.ts";
import type { Task } from "../../task.ts";
import type { SessionScripts } from "../../testing/policies/session-script-policy.ts";
import type { TokenCodec } from "../../tokenizer/codec.ts";
import { groundTruthTurns } from "./ground-truth-turns.ts";

const stopLiteral = "<|im_end|>";
const turnMarker = "<|im_start|>assistant\n";

/**
 * Returns the turns of a scripted policy for each episode of a plan, as ids of a ChatML tokenizer:
 * the task's expected actions, with mistakes in a share of the episodes.
 */
export async function scriptSessions(
  plan: Iterable<PlannedEpisode>,
  {
    environment,
    codec,
    mistakeRate,
  }: {
    readonly environment: Environment;
    readonly codec: TokenCodec;
    readonly mistakeRate: number;
  },
): Promise<SessionScripts> {
  const sessions: Record<string, number[][]> = {};
  for (const planned of plan) {
    const turns = await turnsOf(planned, environment, mistakeRate);
    sessions[planned.rolloutId] = await Promise.all(
      turns.map((text) => codec.encode(`${text}${stopLiteral}`)),
    );
  }
  return {
    turnMarkerIds: await codec.encode(turnMarker),
    sessions,
    otherwise: await codec.encode(`Goodbye!${stopLiteral}`),
  };
}

async function turnsOf(
  { task, seed }: PlannedEpisode,
  environment: Environment,
  mistakeRate: number,
): Promise<readonly string[]> {
  if (environment.name === "storefront") {
    // The rate is per turn. An episode has about seven turns.
    const slipRate = mistakeRate / 3;
    const { turns } = await demonstrate(task as Task<StorefrontData>, { seed, slipRate });
    return turns.map(({ text }) => text);
  }
  return groundTruthTurns(task.data as TauTaskData, {
    random: createSeededRandom(`demo/${seed}`),
    mistakeRate,
  });
}
