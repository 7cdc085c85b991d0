import { refusableNotes, repairableStatuses, type CallPolicy } from "../../agent/call-policy.ts";
import type { FewShotDraw } from "../../agent/few-shot-agent.ts";
import { toolUsePolicies, type ToolUsePolicy } from "../../agent/tool-use-policy.ts";
import { UsageError } from "../../errors.ts";
import { isModulePath } from "../environment/environment-names.ts";
import { count, text, type Setting, type SettingValues } from "./setting.ts";

const toolUseNames = Object.keys(toolUsePolicies) as readonly (keyof typeof toolUsePolicies)[];

/** The strategy around the policy. */
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
    help: "a program that is the agent: it finds the policy in OPENAI_BASE_URL and ANTHROPIC_BASE_URL",
  },
  {
    name: "tool-use",
    kind: { type: "choice", choices: toolUseNames },
    help: "how many calls a turn may make, and where the model is told",
    default: "many",
  },
  {
    name: "unknown-tools",
    kind: { type: "choice", choices: ["refuse", "perform"] },
    help: "calls of unknown tools: refuse them, or leave the answer to the environment",
    default: "refuse",
  },
  {
    name: "execute-calls",
    kind: { type: "choice", choices: ["well-formed", "reported"] },
    help: "what a call is: what is well-formed, or what the engine's own parser would report",
    default: "well-formed",
  },
  {
    name: "refuse-calls",
    kind: { type: "list", choices: refusableNotes },
    value: "note",
    help: `what keeps a call from being executed; several of ${refusableNotes.join(", ")}`,
  },
  {
    name: "repair-calls",
    kind: { type: "list", choices: repairableStatuses },
    value: "status",
    help: `malformed calls to mend, execute and mark; several of ${repairableStatuses.join(", ")}`,
  },
  {
    name: "invalid-action",
    kind: { type: "choice", choices: ["say", "refuse"] },
    help: "act and react: say an action that is no JSON to the user, or refuse it",
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
    help: "few-shot: what examples are drawn anew for",
    default: "episode",
  },
] as const satisfies readonly Setting[];

/** How tool calls are offered and taken. */
export interface ToolCallingConfig {
  readonly toolUse: ToolUsePolicy;
  readonly calls: CallPolicy;
}

/** The examples that a few-shot agent shows. */
export interface ExamplesConfig {
  readonly count: number;
  /** Absent: those of the environment's own bundle. */
  readonly file?: string;
  readonly draw: FewShotDraw;
  /** The run's. */
  readonly seed: number;
}

/** An agent that was written elsewhere, and that keeps its conversations itself. */
export type ForeignAgentConfig =
  /** The path of a module that exports `run()`. */
  | { readonly strategy: "module"; readonly file: string }
  /** A line for the shell. */
  | { readonly strategy: "command"; readonly command: string };

/** The strategy around the policy. */
export type AgentConfig =
  | ForeignAgentConfig
  | ({ readonly strategy: "tool-calling" } & ToolCallingConfig)
  | ({ readonly strategy: "few-shot"; readonly examples: ExamplesConfig } & ToolCallingConfig)
  | { readonly strategy: "act" | "react"; readonly invalidAction: "say" | "refuse" };

type AgentValues = SettingValues<(typeof agentSettings)[number]>;

/**
 * Reads the strategy around the policy; `seed` is the run's.
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

/** Settings of the built-in strategies, which another agent has no use for. */
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

/** Whether an agent keeps its conversations itself. */
export function isForeignAgent(config: AgentConfig): config is ForeignAgentConfig {
  return config.strategy === "module" || config.strategy === "command";
}
