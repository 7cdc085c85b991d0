import type { Action } from "../environment/environment.ts";
import { toolParameters, type ToolDefinition } from "../message.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";

/** The actions of one agent, in order. The agent stops when the episode is over. */
export interface HostileAgent {
  /** A description of the actions, such as `calls set_lamp with level: null`. */
  readonly what: string;
  readonly actions: readonly Action[];
}

/** Wrong values that models write as arguments, with their names. */
const wrongValues: readonly (readonly [name: string, value: PyValue])[] = [
  ["null", null],
  ["true", true],
  ["an empty text", ""],
  ["a text of 10,000 characters", "x".repeat(10_000)],
  ["a lone surrogate", "\ud800"],
  ["__proto__", "__proto__"],
  ["-1", -1n],
  ["0.5", 0.5],
  ["infinity", Infinity],
  ["NaN", NaN],
  ["2^70", 2n ** 70n],
  ["a list", ["x", 1n, null]],
  ["a nested object", new Map([["a", new Map([["b", [new Map()]]])]])],
  ["lists 250 deep", nestedLists(250)],
];

function nestedLists(depth: number): PyValue {
  return depth === 0 ? [] : [nestedLists(depth - 1)];
}

const longestTalk = 12;

/**
 * Returns agents that send hostile messages and calls. An environment must survive them. Each tool
 * gets several wrong calls.
 */
export function hostileAgents(tools: readonly ToolDefinition[]): readonly HostileAgent[] {
  const say = (content: string): Action => ({ type: "say", content });
  return [
    { what: "says nothing in words", actions: new Array<Action>(longestTalk).fill(say("")) },
    {
      what: "says odd things",
      actions: ["###STOP###", "<|im_end|>", "\ud800", "\0", "x".repeat(10_000)].map(say),
    },
    { what: "calls a tool that there is not", actions: [call("no_such_tool", new Map())] },
    { what: "calls a tool named __proto__", actions: [call("__proto__", new Map())] },
    ...tools.flatMap(hostileCalls),
    { what: "calls every tool with what fits its schema", actions: tools.map(fittingCall) },
  ];
}

function hostileCalls(tool: ToolDefinition): HostileAgent[] {
  const fitting = fittingArguments(tool);
  const agent = (what: string, given: PyDict): HostileAgent => ({
    what: `calls ${tool.name} ${what}`,
    actions: [call(tool.name, given)],
  });
  return [
    agent("without arguments", new Map()),
    agent("with an argument too many", new Map([...fitting, ["no_such_argument", 1n]])),
    ...[...fitting.keys()].flatMap((name) => [
      agent(`without ${name}`, new Map([...fitting].filter(([other]) => other !== name))),
      ...wrongValues.map(([shown, value]) =>
        agent(`with ${name}: ${shown}`, new Map([...fitting, [name, value]])),
      ),
    ]),
  ];
}

/** Returns a call with valid arguments, as far as the schema defines them. */
function fittingCall(tool: ToolDefinition): Action {
  return call(tool.name, fittingArguments(tool));
}

function call(name: string, given: PyDict): Action {
  return { type: "call", name, arguments: given };
}

function fittingArguments(tool: ToolDefinition): PyDict {
  const value = fittingValue(toolParameters(tool), 0);
  return isPyDict(value) ? value : new Map();
}

const deepest = 5;

/** Returns the simplest value that a schema allows. Deeply nested parts become null. */
function fittingValue(schema: PyValue | undefined, depth: number): PyValue {
  if (!isPyDict(schema) || depth > deepest) return null;
  const choices = schema.get("enum");
  if (isPyList(choices ?? null) && (choices as readonly PyValue[]).length > 0) {
    return (choices as readonly PyValue[])[0]!;
  }
  if (schema.has("const")) return schema.get("const")!;
  const [alternative] = (schema.get("anyOf") ?? schema.get("oneOf") ?? []) as readonly PyValue[];
  if (alternative !== undefined) return fittingValue(alternative, depth);
  const given = schema.get("type");
  const type = isPyList(given ?? null) ? (given as readonly PyValue[])[0] : given;
  switch (type) {
    case "object": {
      const properties = schema.get("properties");
      if (!isPyDict(properties)) return new Map();
      return new Map([...properties].map(([name, each]) => [name, fittingValue(each, depth + 1)]));
    }
    case "array":
      return [fittingValue(schema.get("items"), depth + 1)];
    case "integer":
    case "number":
      return schema.get("minimum") ?? 1n;
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return "x";
  }
}
