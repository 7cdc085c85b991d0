import { toolParameters, type ToolDefinition } from "./tool-definition.ts";
import { isPyDict, type PyDict } from "../../python-values/src/index.ts";
import { resolveEngineVersion } from "./engine-version.ts";
import type { Dialect, ParseOptions } from "./tool-call-parser.ts";

/** The facts about a request that a grammar needs: its tools, and the engine to reproduce. */
export interface ParseContext {
  readonly tools: readonly ToolDefinition[];
  readonly dialect: Dialect;
  /** A release of the dialect. */
  readonly engineVersion: string;
  /** The position of each tool in the request, by name. For a repeated name, the last position. */
  readonly toolPositions: ReadonlyMap<string, number>;
  /** True if the engine is set to report calls to unknown tools. */
  readonly forwardUnknownTools: boolean;
  /** The special tokens of the model's vocabulary, in the vocabulary's order. Empty if they are unknown. */
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

/**
 * The positions of known lists of tools, by the first tool. Each episode has its own list, with the
 * same tools in it.
 */
const knownPositions = new WeakMap<ToolDefinition, KnownPositions>();

/**
 * Returns the positions of the tools. They are computed once for each list, because every turn offers the same tools.
 */
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

/** The JSON Schema of the tool's parameters, if it is a dictionary. */
export function schemaOfTool(context: ParseContext, name: string): PyDict | undefined {
  const position = context.toolPositions.get(name);
  const tool = position === undefined ? undefined : context.tools[position];
  const schema = tool === undefined ? undefined : toolParameters(tool);
  return isPyDict(schema) ? schema : undefined;
}
