import type { EnvironmentConfig } from "../../composition/config/scope-config.ts";
import {
  playActions as playTauActions,
  replayCalls as replayTauCalls,
  type ReplayCall,
  type TauEnvironment,
} from "../../../environments/tau-bench/index.ts";
import { readArguments } from "../../../environments/tau-bench/replay.ts";
import type { Action, Environment } from "../../environment/environment.ts";
import { playInWorld, replayCalls } from "../../environment/play-actions.ts";
import {
  isPyDict,
  type PlainJson,
  type PyDict,
} from "../../../packages/python-values/src/value.ts";
import type { Task } from "../../task.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import { readLine } from "../../user/read-line.ts";
import type { User, UserLine } from "../../user/user.ts";
import { openJudgedWorld } from "./open-judged-world.ts";
import { isTauName } from "../../composition/environment/environment-names.ts";
import {
  loadEnvironment,
  loadOwnUser,
  loadTauEnvironment,
} from "../../composition/environment/environments.ts";
import { dictListMember, LineError, listMember, textMember } from "../json-lines.ts";

/** Answers the JSON lines of `env play` and `env replay`. */
export interface EnvironmentLines {
  readonly play: (line: PyDict) => Promise<PlainJson>;
  readonly replay: (line: PyDict) => Promise<PlainJson>;
}

/** Opens an environment for JSON lines. τ-bench's environments get the answers of the original. */
export async function openEnvironmentLines(config: EnvironmentConfig): Promise<EnvironmentLines> {
  const { name, dataDir } = config;
  if (isTauName(name)) return tauLines(await loadTauEnvironment(name, dataDir));
  return environmentLines(await loadEnvironment(config), await loadOwnUser(config));
}

function tauLines(environment: TauEnvironment): EnvironmentLines {
  const { signal } = new AbortController();
  return {
    async play(line) {
      const task = environment.task(textMember(line, "split"), indexMember(line, "taskIndex"));
      const userReplies = repliesOf(line);
      const actions = callsOf(line, "actions");
      return toJson(await playTauActions(environment, { task, userReplies, actions }, { signal }));
    },
    async replay(line) {
      return toJson(await replayTauCalls(environment, callsOf(line, "calls"), { signal }));
    },
  };
}

function environmentLines(environment: Environment, ownUser: User | undefined): EnvironmentLines {
  const { signal } = new AbortController();
  return {
    async play(line) {
      const task = environment.task(textMember(line, "split"), indexMember(line, "taskIndex"));
      const isScripted = isGiven(line, "userReplies") || ownUser === undefined;
      const user = isScripted ? createScriptedUser({ lines: repliesOf(line) }) : ownUser;
      const seed = isGiven(line, "seed") ? indexMember(line, "seed") : 0;
      const actions = actionsOf(line, "actions");
      await using world = await openJudgedWorld({ environment, task, user, seed, signal });
      const { opening, steps, score } = await playInWorld(world, actions);
      const isDone = steps.at(-1)?.done !== undefined;
      return toJson({
        resetObservation: opening,
        steps: steps.map(({ observation, done, source }) => ({
          observation,
          reward: done === undefined ? 0 : score.reward,
          done: done !== undefined,
          source,
        })),
        reward: score.reward,
        outcome: isDone ? "completed" : "truncated",
        rewardInfo: score.details,
      });
    },
    async replay(line) {
      const calls = actionsOf(line, "calls").filter((action) => action.type === "call");
      return toJson(
        await replayCalls(environment, { task: taskOf(line, environment), calls }, { signal }),
      );
    },
  };
}

/** Returns the task that the line names, otherwise the first task of the test split. */
function taskOf(line: PyDict, environment: Environment): Task {
  const names = Object.keys(environment.splits);
  const split = names.includes("test") ? "test" : (names[0] ?? "");
  return environment.task(
    isGiven(line, "split") ? textMember(line, "split") : split,
    isGiven(line, "taskIndex") ? indexMember(line, "taskIndex") : 0,
  );
}

/** Reads the agent's actions. The tool `respond` with `content` is a message to the user. */
function actionsOf(line: PyDict, member: "actions" | "calls"): readonly Action[] {
  return callsOf(line, member).map((call, index) => {
    const place = `${member}[${index}]`;
    const given = readArguments(call, place);
    if (call.name !== "respond" || member === "calls") {
      return { type: "call", name: call.name, arguments: given };
    }
    const content = given.get("content");
    if (typeof content === "string") return { type: "say", content };
    throw new LineError("bad-line", `"${member}"[${index}].arguments.content must be a text`);
  });
}

function callsOf(line: PyDict, member: string): readonly ReplayCall[] {
  return dictListMember(line, member).map((call, index) => {
    const name = call.get("name");
    const given = call.get("arguments");
    const text = call.get("argumentsText");
    const place = `"${member}"[${index}]`;
    if (typeof name !== "string") throw new LineError("bad-line", `${place}.name must be a text`);
    if (typeof text === "string") return { name, argumentsText: text };
    if (given === undefined || given === null) return { name };
    if (isPyDict(given)) return { name, arguments: given };
    throw new LineError("bad-line", `${place}.arguments must be an object`);
  });
}

function repliesOf(line: PyDict): readonly UserLine[] {
  return listMember(line, "userReplies").map((reply, index) => {
    const read = readLine(isPyDict(reply) ? Object.fromEntries(reply) : reply);
    if (read !== undefined) return read;
    throw new LineError(
      "bad-line",
      `"userReplies"[${index}] must be a text, or {"text": …, "leaves": true}`,
    );
  });
}

function indexMember(line: PyDict, name: string): number {
  const value = line.get(name);
  if (typeof value === "bigint" && Number.isSafeInteger(Number(value))) return Number(value);
  throw new LineError("bad-line", `"${name}" must be a whole number below 2^53`);
}

function isGiven(line: PyDict, name: string): boolean {
  return line.get(name) !== undefined && line.get(name) !== null;
}

function toJson(value: object): PlainJson {
  return JSON.parse(JSON.stringify(value)) as PlainJson;
}
