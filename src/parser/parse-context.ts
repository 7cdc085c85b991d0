import type { ToolDefinition } from "../message.ts";
import { toolParameters } from "../message.ts";
import type { PyDict } from "../python/value.ts";
import { isPyDict } from "../python/value.ts";
import { resolveEngineVersion } from "./engine-version.ts";
import type { Dialect, ParseOptions } from "./tool-call-parser.ts";

/** What a grammar is told about the request: its tools, and whose behaviour is wanted. */
export interface ParseContext {
  readonly tools: readonly ToolDefinition[];
  readonly dialect: Dialect;
  /** A release that the dialect knows. */
  readonly engineVersion: string;
  /** Tool name to its position in the request; the last one where a name is given twice. */
  readonly toolPositions: ReadonlyMap<string, number>;
  /** True if the engine is set to hand on calls to unknown tools. */
  readonly forwardUnknownTools: boolean;
  /** Special tokens of the model's vocabulary, in its order; empty where it is not known. */
  readonly vocabulary: readonly string[];
  /** The model's own `response_template`. */
  readonly responseTemplate?: PyDict;
}

/**
 * Reads the options of one parser call.
 *
 * @throws UsageError if the dialect does not know the engine release.
 */
export function createParseContext(options: ParseOptions): ParseContext {
  const dialect = options.dialect ?? "sglang";
  const context = {
    tools: options.tools,
    dialect,
    engineVersion: resolveEngineVersion(dialect, options.engineVersion),
    toolPositions: positionsOf(options.tools),
    forwardUnknownTools: options.forwardUnknownTools ?? false,
    vocabulary: options.vocabulary ?? [],
  };
  const { responseTemplate } = options;
  return responseTemplate === undefined ? context : { ...context, responseTemplate };
}

interface KnownPositions {
  readonly tools: readonly ToolDefinition[];
  readonly positions: ReadonlyMap<string, number>;
}

/** By the first of the tools: each episode has a list of its own, of tools that all share. */
const knownPositions = new WeakMap<ToolDefinition, KnownPositions>();

/** The same tools are offered in every turn. */
function positionsOf(tools: readonly ToolDefinition[]): ReadonlyMap<string, number> {
  const [first] = tools;
  if (first === undefined) return noPositions;
  const known = knownPositions.get(first);
  if (known !== undefined && isSameList(known.tools, tools)) return known.positions;
  const positions = new Map<string, number>();
  for (const [index, { name }] of tools.entries()) if (name !== "") positions.set(name, index);
  knownPositions.set(first, { tools: [...tools], positions });
  return positions;
}

const noPositions: ReadonlyMap<string, number> = new Map();

function isSameList(left: readonly ToolDefinition[], right: readonly ToolDefinition[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) if (left[index] !== right[index]) return false;
  return true;
}

/** The JSON Schema of the tool's parameters where it is a dictionary. */
export function schemaOfTool(context: ParseContext, name: string): PyDict | undefined {
  const position = context.toolPositions.get(name);
  const tool = position === undefined ? undefined : context.tools[position];
  const schema = tool === undefined ? undefined : toolParameters(tool);
  return isPyDict(schema) ? schema : undefined;
}
