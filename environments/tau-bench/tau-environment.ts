import type { Environment, World } from "../../src/environment/environment.ts";
import { UsageError } from "../../src/errors.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import type { Task } from "../../src/task.ts";
import type { UserSession } from "../../src/user/user.ts";
import type { DomainData } from "./bundle.ts";
import type { ToolOutcome } from "./call-tool.ts";
import { callTool } from "./call-tool.ts";
import { DatabaseHasher } from "./database-hash.ts";
import { GroundTruths } from "./ground-truth.ts";
import type { Tables, TauDomain } from "./tau-domain.ts";
import { openDatabase } from "./tau-domain.ts";
import type { TauTaskData } from "./tau-task.ts";
import { TauWorld } from "./tau-world.ts";

/** A τ-bench domain as an environment, with additional members for verification. */
export interface TauEnvironment extends Environment<TauTaskData> {
  /** Rules that the original defines and never shows to the agent. */
  readonly rules: readonly string[];
  /** Opens fresh data for tool calls outside of any episode. */
  openTools(): TauToolbox;
}

/** Tools with their own data. */
export interface TauToolbox {
  /** Calls a tool; `undefined` if the domain has no such tool. */
  call(call: { readonly name: string; readonly arguments: PyDict }): ToolOutcome | undefined;
  /** τ-bench's own hash of the current data. */
  hash(): Promise<string>;
}

/** The parts of a τ-bench environment. */
interface TauEnvironmentOptions<Database extends Tables> {
  readonly domain: TauDomain<Database>;
  readonly data: DomainData;
  /** The folder of the data. */
  readonly directory: string;
}

/** Makes an environment of a domain and its data. */
export function createTauEnvironment<Database extends Tables>({
  domain,
  data,
  directory,
}: TauEnvironmentOptions<Database>): TauEnvironment {
  const name = `tau-${domain.name}`;
  const hasher = new DatabaseHasher(data.tables);
  const { terminatingTools } = data;
  const groundTruths = new GroundTruths({ domain, shared: data.tables, terminatingTools, hasher });
  return {
    name,
    source: `sierra-research/tau-bench (MIT), ${domain.name}, from ${directory}`,
    splits: Object.fromEntries(
      Object.entries(data.tasks).map(([split, tasks]) => [split, tasks.length]),
    ),
    tools: data.tools,
    policyText: data.wiki,
    rules: data.rules,
    repeatable: true,
    task: (split, index) => findTask({ name, data, split, index }),
    async open(
      task: Task<TauTaskData>,
      { user, signal }: { user: UserSession; signal: AbortSignal },
    ): Promise<World> {
      signal.throwIfAborted();
      if (task.environment !== name) {
        throw new UsageError(
          `Cannot open task ${task.id}: it belongs to ${task.environment}, expected one of ${name}`,
        );
      }
      const database = openDatabase(domain, data.tables);
      return new TauWorld({
        domain,
        database,
        terminatingTools,
        task: task.data,
        groundTruths,
        user,
      });
    },
    openTools() {
      const database = openDatabase(domain, data.tables);
      return {
        call: (call) => callTool(domain, database, call),
        hash: () => hasher.hash(database),
      };
    },
  };
}

interface TaskQuery {
  readonly name: string;
  readonly data: DomainData;
  readonly split: string;
  readonly index: number;
}

function findTask({ name, data, split, index }: TaskQuery): Task<TauTaskData> {
  const tasks = Object.hasOwn(data.tasks, split) ? data.tasks[split] : undefined;
  if (tasks === undefined) {
    throw new UsageError(
      `Cannot find split ${JSON.stringify(split)} of ${name}: ` +
        `expected one of ${Object.keys(data.tasks).join(", ")}`,
    );
  }
  const task = tasks.at(index);
  if (task === undefined) {
    throw new UsageError(
      `Cannot find task ${index} of ${name}/${split}: ` +
        (tasks.length === 0 ? "the split is empty" : `expected 0 to ${tasks.length - 1}`),
    );
  }
  return task;
}
