import type { Action } from "../../environment/environment.ts";
import { defaultLimits } from "../../episode/limits.ts";
import { toolParameters, type ToolDefinition } from "../../message.ts";
import { isPyDict, type PyDict } from "../../../packages/python-values/src/value.ts";
import { fittingArguments, listIn, propertiesIn } from "./fitting-value.ts";
import { triedValues, without } from "./tried-values.ts";

/** The actions of one agent, in order. The agent stops when the episode is over. */
export interface HostileAgent {
  /** A description of the actions, such as `calls set_lamp with level: null`. */
  readonly what: string;
  readonly actions: readonly Action[];
}

/** The agent that shows the user's and the environment's behaviour without any action. */
export const idleAgent: HostileAgent = { what: "does nothing", actions: [] };

/** The agent that lets a user talk until it leaves, or until the number of turns that a run allows. */
export const patientAgent: HostileAgent = {
  what: "asks the user until they leave",
  actions: repeated("How can I help you?", defaultLimits.maxTurns),
};

/** The agents that only talk. */
export const talkers: readonly HostileAgent[] = [
  patientAgent,
  { what: "says nothing in words", actions: repeated("", 12) },
  {
    what: "says odd things",
    actions: ["###STOP###", "<|im_end|>", "\ud800", "\0", "x".repeat(10_000)].map(say),
  },
];

/** Returns the agent that calls every tool once with what fits its schema. */
export function fittingAgent(tools: readonly ToolDefinition[]): HostileAgent {
  const actions = tools.map((tool) => call(tool.name, fittingArguments(tool)));
  return { what: "calls every tool with what fits its schema", actions };
}

/** Returns agents that make wrong calls. An environment must survive them. Each tool gets several wrong calls. */
export function callers(tools: readonly ToolDefinition[]): readonly HostileAgent[] {
  return [
    { what: "calls a tool that there is not", actions: [call("no_such_tool", new Map())] },
    { what: "calls a tool named __proto__", actions: [call("__proto__", new Map())] },
    ...tools.flatMap(callersOf),
  ];
}

function callersOf(tool: ToolDefinition): readonly HostileAgent[] {
  const schema = toolParameters(tool);
  const parameters: PyDict = isPyDict(schema) ? schema : new Map();
  const fitting = fittingArguments(tool);
  const agent = (what: string, given: PyDict): HostileAgent => ({
    what: `calls ${tool.name} ${what}`,
    actions: [call(tool.name, given)],
  });
  const needed = new Set(listIn(parameters, "required"));
  const required = new Map([...fitting].filter(([name]) => needed.has(name)));
  return [
    agent("without arguments", new Map()),
    agent("with an argument too many", new Map([...fitting, ["no_such_argument", 1n]])),
    ...(required.size > 0 && required.size < fitting.size
      ? [agent("with the required arguments alone", required)]
      : []),
    ...[...propertiesIn(parameters)].flatMap(([name, each]) => [
      agent(`without ${name}`, without(fitting, name)),
      ...triedValues(each).map(([what, value]) =>
        agent(`with ${name}: ${what}`, new Map([...fitting, [name, value]])),
      ),
    ]),
  ];
}

function repeated(content: string, count: number): readonly Action[] {
  return new Array<Action>(count).fill(say(content));
}

function say(content: string): Action {
  return { type: "say", content };
}

function call(name: string, given: PyDict): Action {
  return { type: "call", name, arguments: given };
}
