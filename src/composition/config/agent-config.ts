import { refusableNotes, repairableStatuses, type CallPolicy } from "../../agent/call-policy.ts";
import type { FewShotDraw } from "../../agent/few-shot-agent.ts";
import { toolUsePolicies, type ToolUsePolicy } from "../../agent/tool-use-policy.ts";
import { UsageError } from "../../errors.ts";
import { isModulePath } from "../environment/environment-names.ts";
import { count, text, type Setting, type SettingValues } from "./setting.ts";

const toolUseNames = Object.keys(toolUsePolicies) as readonly (keyof typeof toolUsePolicies)[];

/** The settings of the agent. */
export const agentSettings = [
  {
    name: "agent",
    kind: text,
    value: "name",
    help: "strategy around the policy: tool-calling, act, react, few-shot, or a module such as ./my-agent.js",
    default: "tool-calling",
  },
  {
    name: "agent-command",
    kind: text,
    value: "line",
    help: "program to run as the agent; OPENAI_BASE_URL and ANTHROPIC_BASE_URL point to the policy",
  },
  {
    name: "tool-use",
    kind: { type: "choice", choices: toolUseNames },
    help: "number of calls in a turn, and how the model learns of it",
    default: "many",
  },
  {
    name: "unknown-tools",
    kind: { type: "choice", choices: ["refuse", "perform"] },
    help: "calls of unknown tools: refuse them, or pass them to the environment",
    default: "refuse",
  },
  {
    name: "execute-calls",
    kind: { type: "choice", choices: ["well-formed", "reported"] },
    help: "calls to execute: those that are well-formed, or those that the engine's parser reports",
    default: "well-formed",
  },
  {
    name: "refuse-calls",
    kind: { type: "list", choices: refusableNotes },
    value: "note",
    help: `problem that prevents a call's execution; repeatable: ${refusableNotes.join(", ")}`,
  },
  {
    name: "repair-calls",
    kind: { type: "list", choices: repairableStatuses },
    value: "status",
    help: `kind of malformed call to repair, execute and mark; repeatable: ${repairableStatuses.join(", ")}`,
  },
  {
    name: "invalid-action",
    kind: { type: "choice", choices: ["say", "refuse"] },
    help: "act and react: an action that is not JSON is said to the user, or refused",
    default: "say",
  },
  {
    name: "few-shot-examples",
    kind: count(1),
    value: "n",
    help: "few-shot: examples shown",
    default: 5,
  },
  {
    name: "few-shot-file",
    kind: text,
    value: "file",
    help: "few-shot: JSON lines with messages_display (default: the bundle's for the environment)",
    operational: true,
  },
  {
    name: "few-shot-draw",
    kind: { type: "choice", choices: ["episode", "task", "run"] },
    help: "few-shot: draw new examples for each episode or task, or once for the run",
    default: "episode",
  },
] as const satisfies readonly Setting[];

/** The configuration of an agent that calls tools. */
export interface ToolCallingConfig {
  readonly toolUse: ToolUsePolicy;
  readonly calls: CallPolicy;
}

/** The examples that a few-shot agent shows. */
export interface ExamplesConfig {
  readonly count: number;
  /** A file with examples. Absent: those of the environment's own bundle. */
  readonly file?: string;
  readonly draw: FewShotDraw;
  /** The run's seed. */
  readonly seed: number;
}

/** An agent of your own, which manages its own conversations. */
export type ForeignAgentConfig =
  /** The path of a module that exports `run()`. */
  | { readonly strategy: "module"; readonly file: string }
  /** A command line for the shell. */
  | { readonly strategy: "command"; readonly command: string };

/** The configuration of the agent. */
export type AgentConfig =
  | ForeignAgentConfig
  | ({ readonly strategy: "tool-calling" } & ToolCallingConfig)
  | ({ readonly strategy: "few-shot"; readonly examples: ExamplesConfig } & ToolCallingConfig)
  | { readonly strategy: "act" | "react"; readonly invalidAction: "say" | "refuse" };

type AgentValues = SettingValues<(typeof agentSettings)[number]>;

/**
 * Reads the configuration of the agent. `seed` is the run's seed.
 *
 * @throws UsageError for settings that exclude each other.
 */
export function readAgentConfig(values: AgentValues, seed: number): AgentConfig {
  const { "tool-use": toolUse } = values;
  const foreign = readForeignAgent(values);
  if (foreign !== undefined) return foreign;
  const strategy = readStrategy(values.agent);
  if (strategy === "act" || strategy === "react") {
    if (toolUse !== "many") {
      throw new UsageError(
        `Cannot use --tool-use ${toolUse} with --agent ${strategy}: ` +
          "it calls no tools through the chat template, and takes one action a turn anyway",
      );
    }
    return { strategy, invalidAction: values["invalid-action"] };
  }
  const calling: ToolCallingConfig = {
    toolUse: toolUsePolicies[toolUse],
    calls: {
      unknownTools: values["unknown-tools"],
      execute: values["execute-calls"],
      refuse: values["refuse-calls"] ?? [],
      repair: values["repair-calls"] ?? [],
    },
  };
  if (strategy === "tool-calling") return { strategy, ...calling };
  const file = values["few-shot-file"];
  const examples = {
    count: values["few-shot-examples"],
    draw: values["few-shot-draw"],
    seed,
    ...(file !== undefined && { file }),
  };
  return { strategy, ...calling, examples };
}

const strategies = ["tool-calling", "act", "react", "few-shot"] as const;

function readStrategy(name: string): (typeof strategies)[number] {
  const known = strategies.find((strategy) => strategy === name);
  if (known !== undefined) return known;
  throw new UsageError(
    `Cannot use --agent ${name}: expected one of ${strategies.join(", ")}, or a module such as ` +
      `./${name}.js`,
  );
}

/** Settings that only the built-in strategies use. */
const ownSettings = [
  "tool-use",
  "unknown-tools",
  "execute-calls",
  "refuse-calls",
  "repair-calls",
  "invalid-action",
  "few-shot-examples",
  "few-shot-file",
  "few-shot-draw",
] as const;

function readForeignAgent(values: AgentValues): ForeignAgentConfig | undefined {
  const { agent, "agent-command": command } = values;
  const isModule = isModulePath(agent);
  if (!isModule && command === undefined) return undefined;
  if (command !== undefined && agent !== "tool-calling") {
    throw new UsageError("Cannot use --agent with --agent-command: there is one agent");
  }
  const flag = isModule ? "--agent with a module" : "--agent-command";
  const table: readonly Setting[] = agentSettings;
  const given = ownSettings.find((name) => {
    const value = (values as Readonly<Record<string, unknown>>)[name];
    return value !== undefined && value !== table.find((each) => each.name === name)?.default;
  });
  if (given !== undefined) {
    throw new UsageError(`Cannot use --${given} with ${flag}: the agent decides that itself`);
  }
  if (command === undefined) return { strategy: "module", file: agent };
  if (command.trim() !== "") return { strategy: "command", command };
  throw new UsageError("Cannot use --agent-command: it is empty, expected a line for the shell");
}

/** True if the agent manages its own conversations. */
export function isForeignAgent(config: AgentConfig): config is ForeignAgentConfig {
  return config.strategy === "module" || config.strategy === "command";
}
